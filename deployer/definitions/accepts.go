package definitions

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/kube/crd"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// JudgeInstances refuses a version whose schema does not accept, or would drop fields of, the custom resources that its
// operator will find in the namespaces. They are read in each version that the target knows, converted by the cluster.
// Those for which a loss is accepted are to be exported.
func (g *Guard) JudgeInstances(ctx context.Context, p *render.Payload, namespaces []metalk8s.Namespace, a Losses) (*Judgement, error) {
	objects, err := render.Definitions(p)
	if err != nil {
		return nil, err
	}
	j := &Judgement{accepted: a}
	definitions := ByName(objects)
	existing, err := g.Existing(ctx, slices.Sorted(maps.Keys(definitions))...)
	if err != nil {
		return nil, err
	}
	for _, live := range existing {
		if err := g.judgeInstancesOf(ctx, j, live, definitions[live.GetName()], namespaces); err != nil {
			return nil, err
		}
	}
	switch {
	case len(j.losses) > 0:
		return nil, report.Errorf(report.DataLoss, "version %s would lose data:\n  %s", p.Solution.Spec.Version, report.Some(j.losses)).
			WithHint("change these fields first, or choose a version that has them; to export all objects and continue: %s", j.acceptable.remedy())
	case len(j.invalid) > 0:
		return nil, report.Errorf(report.Refused, "version %s does not accept existing objects:\n  %s", p.Solution.Spec.Version, report.Some(j.invalid)).
			WithHint("change these values first, or choose a version that accepts them; to continue nevertheless: %s", j.acceptable.remedy())
	}
	return j, nil
}

// CheckLossesIn refuses names of definitions that none of the versions has.
func (a Losses) CheckLossesIn(payloads ...*render.Payload) error {
	all := map[string]*unstructured.Unstructured{}
	for _, p := range payloads {
		objects, err := render.Definitions(p)
		if err != nil {
			return err
		}
		maps.Copy(all, ByName(objects))
	}
	return a.CheckLosses(all)
}

// judgeInstancesOf judges the objects of one definition.
func (g *Guard) judgeInstancesOf(ctx context.Context, j *Judgement, live, desired *unstructured.Unstructured, namespaces []metalk8s.Namespace) error {
	rejected, lost, data, err := g.checkInstances(ctx, live, desired, namespaces)
	if err != nil {
		return err
	}
	name := live.GetName()
	if data.Objects > 0 {
		j.Data = append(j.Data, data)
	}
	switch {
	case len(rejected) == 0:
	case slices.Contains(j.accepted.AcceptInvalid, name):
		j.Notices = append(j.Notices, "accepted, though the version does not:\n  "+report.Some(rejected))
	default:
		j.invalid = append(j.invalid, rejected...)
		j.acceptable.rejects(name, rejected)
	}
	switch {
	case len(lost) == 0:
	case slices.Contains(j.accepted.AcceptDataLoss, name):
		for _, n := range namespaces {
			j.Exported = append(j.Exported, Scope{live, n.Name})
		}
		j.Notices = append(j.Notices, "accepted loss of data:\n  "+report.Some(lost))
	default:
		j.losses = append(j.losses, lost...)
		j.acceptable.loses(name, lost)
	}
	return nil
}

// checkInstances checks the objects of a definition in each version: one line for each problem and for each lost field.
func (g *Guard) checkInstances(ctx context.Context, live, desired *unstructured.Unstructured, namespaces []metalk8s.Namespace) (rejected, lost []string, data schema.DataChange, err error) {
	there, err := Parse(live)
	if err != nil {
		return nil, nil, data, err
	}
	wanted, err := Parse(desired)
	if err != nil {
		return nil, nil, data, err
	}
	checker, err := crd.NewChecker(wanted)
	if err != nil {
		return nil, nil, data, err
	}
	all, invalid, losing := map[types.UID]bool{}, map[types.UID]bool{}, map[types.UID]bool{} // an object is read in each version
	for _, version := range wanted.Spec.Versions {
		if !version.Served || !serves(there, version.Name) {
			continue
		}
		kind := kube.GroupVersionKind{Group: there.Spec.Group, Version: version.Name, Kind: there.Spec.Names.Kind}
		for _, n := range namespaces {
			for object, err := range g.objectsOf(ctx, live, kind, n.Name, g.Cluster.List) {
				if err != nil {
					return nil, nil, data, err
				}
				problems, dropped, err := checker.Check(ctx, version.Name, object.Object)
				if err != nil {
					return nil, nil, data, err
				}
				all[object.GetUID()] = true
				for _, problem := range problems {
					invalid[object.GetUID()] = true
					rejected = append(rejected, fmt.Sprintf("%s (%s): %s", cluster.NameOf(object), version.Name, problem))
				}
				for _, field := range dropped {
					losing[object.GetUID()] = true
					lost = append(lost, fmt.Sprintf("%s (%s): %s", cluster.NameOf(object), version.Name, field.Path))
				}
			}
		}
	}
	data = schema.DataChange{
		Definition: live.GetName(), Kind: there.Spec.Names.Kind, Outcome: schema.DataChecked, Objects: len(all), Losing: len(losing), Invalid: len(invalid),
	}
	return rejected, lost, data, nil
}
