package definitions

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/kube/crd"
	"github.com/solutionctl/solutionctl/schema/report"
)

// JudgeInstances refuses a version whose schema does not accept, or would drop fields of, the custom resources that its
// operator will find in the namespaces. They are read in each version that the target knows, converted by the cluster.
// Those for which a loss is accepted are to be exported.
func (g *Guard) JudgeInstances(ctx context.Context, p *render.Payload, namespaces []metalk8s.Namespace, a Losses) (notices []string, exported []Scope, err error) {
	objects, err := render.Definitions(p)
	if err != nil {
		return nil, nil, err
	}
	definitions := ByName(objects)
	var rejected, lost []string
	var accepts acceptable
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		live, err := g.Cluster.Get(ctx, cluster.DefinitionKind, "", name)
		if err != nil {
			return nil, nil, err
		}
		if live == nil {
			continue
		}
		more, missing, err := g.judgeInstancesOf(ctx, live, definitions[name], namespaces)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case len(more) == 0:
		case slices.Contains(a.AcceptInvalid, name):
			notices = append(notices, "accepted, though the version does not:\n  "+report.Some(more))
		default:
			rejected = append(rejected, more...)
			accepts.rejects(name, more)
		}
		switch {
		case len(missing) == 0:
		case slices.Contains(a.AcceptDataLoss, name):
			for _, n := range namespaces {
				exported = append(exported, Scope{live, n.Name})
			}
			notices = append(notices, "accepted loss of data:\n  "+report.Some(missing))
		default:
			lost = append(lost, missing...)
			accepts.loses(name, missing)
		}
	}
	switch {
	case len(lost) > 0:
		return nil, nil, report.Errorf(report.DataLoss, "version %s would lose data:\n  %s", p.Solution.Spec.Version, report.Some(lost)).
			WithHint("change these fields first, or choose a version that has them; to export all objects and continue: %s", accepts.remedy())
	case len(rejected) > 0:
		return nil, nil, report.Errorf(report.Refused, "version %s does not accept existing objects:\n  %s", p.Solution.Spec.Version, report.Some(rejected)).
			WithHint("change these values first, or choose a version that accepts them; to continue nevertheless: %s", accepts.remedy())
	}
	return notices, exported, nil
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

func (g *Guard) judgeInstancesOf(ctx context.Context, live, desired *unstructured.Unstructured, namespaces []metalk8s.Namespace) (rejected, lost []string, err error) {
	there, err := Parse(live)
	if err != nil {
		return nil, nil, err
	}
	wanted, err := Parse(desired)
	if err != nil {
		return nil, nil, err
	}
	checker, err := crd.NewChecker(wanted)
	if err != nil {
		return nil, nil, err
	}
	for _, version := range wanted.Spec.Versions {
		if !version.Served || !serves(there, version.Name) {
			continue
		}
		kind := kube.GroupVersionKind{Group: there.Spec.Group, Version: version.Name, Kind: there.Spec.Names.Kind}
		for _, n := range namespaces {
			for object, err := range g.objectsOf(ctx, live, kind, n.Name, g.Cluster.List) {
				if err != nil {
					return nil, nil, err
				}
				invalid, dropped, err := checker.Check(ctx, version.Name, object.Object)
				if err != nil {
					return nil, nil, err
				}
				for _, problem := range invalid {
					rejected = append(rejected, fmt.Sprintf("%s (%s): %s", cluster.NameOf(object), version.Name, problem))
				}
				for _, field := range dropped {
					lost = append(lost, fmt.Sprintf("%s (%s): %s", cluster.NameOf(object), version.Name, field.Path))
				}
			}
		}
	}
	return rejected, lost, nil
}

func serves(d *crd.Definition, name string) bool {
	for _, version := range d.Spec.Versions {
		if version.Name == name {
			return version.Served
		}
	}
	return false
}
