package environments

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// usage returns what is used in namespaces by the documents of MetalK8s, the records and the cluster. Objects that a Solution deploys are
// part of it, and no use. The claims are all volume claims of the namespaces.
func (e *Environments) usage(ctx context.Context, namespaces []metalk8s.Namespace, states []*record.State) (
	usage []metalk8s.Use, claims []*unstructured.Unstructured, err error,
) {
	usage, claims, err = e.Records.Documents.Usage(ctx, namespaces)
	if err != nil {
		return nil, nil, err
	}
	brought := map[string]bool{}
	for _, s := range states {
		for _, object := range records.ObjectsOf(s) {
			if !object.Kept {
				brought[object.UID] = true
			}
		}
	}
	for i := range usage {
		usage[i].Objects = slices.DeleteFunc(usage[i].Objects, func(o *unstructured.Unstructured) bool { return brought[string(o.GetUID())] })
	}
	usage = slices.DeleteFunc(usage, func(u metalk8s.Use) bool { return u.Solution == "" && len(u.Objects) == 0 })
	for _, s := range states {
		version, deployed := records.DeployedVersion(s)
		listed := slices.ContainsFunc(usage, func(u metalk8s.Use) bool { return u.Namespace == s.Namespace && u.Solution == s.Name })
		if deployed && !listed {
			usage = append(usage, metalk8s.Use{Namespace: s.Namespace, Solution: s.Name, Version: version})
		}
	}
	return usage, claims, nil
}

// checkCreated refuses to delete namespaces with objects that were created since usage and others were listed: they are not in the export.
func (e *Environments) checkCreated(ctx context.Context, namespaces []metalk8s.Namespace, states []*record.State, usage []metalk8s.Use, others []schema.ObjectRef) error {
	known := map[types.UID]bool{}
	for _, use := range usage {
		for _, object := range use.Objects {
			known[object.GetUID()] = true
		}
	}
	now, _, err := e.usage(ctx, namespaces, states)
	if err != nil {
		return err
	}
	var created []string
	for _, use := range now {
		use.Objects = slices.DeleteFunc(use.Objects, func(o *unstructured.Unstructured) bool { return known[o.GetUID()] || o.GetDeletionTimestamp() != nil })
		if len(use.Objects) > 0 {
			created = append(created, use.String())
		}
	}
	more, err := e.Survey.OthersIn(ctx, namespaces, states)
	if err != nil {
		return err
	}
	more = slices.DeleteFunc(more, func(ref schema.ObjectRef) bool { return survey.IsSetting(ref) || slices.Contains(others, ref) })
	if created = append(created, survey.OtherTexts(more)...); len(created) == 0 {
		return nil
	}
	return report.Errorf(report.Conflict, "objects were created at the same time: %s", report.Several(created)).WithHint("run the command again")
}
