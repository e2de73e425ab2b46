package survey

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// errHidden replaces the list of imports where the user is not allowed to read it.
var errHidden = report.Errorf(report.Forbidden, "you do not have permission to read it")

// observe returns the picture of an environment for a user who is not allowed to read the records, from the objects
// with the label of a Solution.
func (v *Survey) observe(ctx context.Context, e metalk8s.Environment) (*picture, error) {
	s := &picture{
		environments: []metalk8s.Environment{e}, solutions: &metalk8s.Solutions{}, catalog: &records.Catalog{Damage: errHidden},
		states: map[record.Key]*record.State{}, foreign: map[record.Key]*unstructured.Unstructured{},
		dim: map[string]bool{}, quiet: map[string]bool{},
	}
	found, err := v.Records.Engine.Labelled(ctx, workloads(), e.Names()...)
	if err != nil {
		return nil, err
	}
	kinds := map[kube.GroupVersionKind]bool{}
	for _, f := range found {
		if f.Namespace == "" {
			continue // it belongs to the whole cluster
		}
		state := s.states[f.Key]
		if state == nil {
			state = &record.State{Key: f.Key, Current: &schema.DeploymentRevision{}}
			s.states[f.Key] = state
		}
		state.Current.Version = records.VersionOn(f.Object, state.Current.Version)
		state.Current.Objects = append(state.Current.Objects, f.Deployed())
		kinds[f.Object.GroupVersionKind()] = true
	}
	live := observations{}
	for kind := range kinds {
		for _, n := range e.Namespaces {
			if err = v.listInto(ctx, live, kind, n.Name, schema.LabelRelease); err != nil && report.CodeOf(err) != report.Forbidden {
				return nil, err
			}
		}
	}
	var states []*record.State
	for _, key := range s.keys() {
		states = append(states, s.states[key])
	}
	crashes, err := v.crashes(ctx, states)
	if err != nil {
		return nil, err
	}
	if s.findings, err = v.judgeAll(ctx, states, live, crashes); err != nil {
		return nil, err
	}
	for _, n := range e.Namespaces {
		s.quiet[n.Name] = n.Hidden
		var missing []cluster.Permission
		if missing, err = v.missing(ctx, n.Name); err != nil {
			return nil, err
		}
		s.dim[n.Name] = slices.ContainsFunc(missing, func(p cluster.Permission) bool { return p.Resource == "deployments" })
	}
	if s.operators, err = v.unlabelledOperators(ctx, s.environments); err == nil {
		err = v.findForeign(ctx, s)
	}
	if report.CodeOf(err) == report.Forbidden {
		err = nil // missing already reports that
	}
	return s, err
}

// workloads are the kinds of objects in a namespace by which a Solution is found there.
func workloads() []kube.GroupVersionKind {
	return slices.DeleteFunc(slices.Clone(engine.CommonKinds), func(kind kube.GroupVersionKind) bool {
		return kind.Kind == cluster.DefinitionKind.Kind
	})
}

// missing returns the permissions that a user lacks for reading the deployed objects of a namespace.
func (v *Survey) missing(ctx context.Context, namespace string) ([]cluster.Permission, error) {
	var wanted []cluster.Permission
	for _, kind := range append(workloads(), cluster.PodKind) {
		rights, err := v.Cluster.PermissionsOn(ctx, kind, namespace, "get", "list")
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, rights...)
	}
	return v.Cluster.Missing(ctx, wanted...)
}

// unseen lists the parts of an environment that the user is not allowed to read, each with the missing permissions.
func (v *Survey) unseen(ctx context.Context, e *metalk8s.Environment) ([]schema.Unseen, error) {
	var found []schema.Unseen
	add := func(what string, missing []cluster.Permission) {
		if len(missing) > 0 {
			found = append(found, schema.Unseen{What: what, Rules: cluster.RulesByPlace(missing...)})
		}
	}
	ask := func(what string, wanted ...cluster.Permission) error {
		missing, err := v.Cluster.Missing(ctx, wanted...)
		add(what, missing)
		return err
	}
	if err := ask("other namespaces of this environment, if it has any", cluster.Permission{Resource: "namespaces"}.Each("list")...); err != nil {
		return nil, err
	}
	if err := ask("the records: which operations were begun and have not ended, what was changed since it was deployed, and what was imported",
		append(cluster.Permission{Resource: "secrets", Namespace: cluster.SystemNamespace}.Each("get", "list"),
			cluster.Permission{Verb: "get", Resource: "configmaps", Namespace: metalk8s.SolutionsNamespace, Name: metalk8s.SolutionsConfigMap})...); err != nil {
		return nil, err
	}
	for _, n := range e.Namespaces {
		if err := ask("which versions namespace "+n.Name+" asks for",
			cluster.Permission{Verb: "get", Resource: "configmaps", Namespace: n.Name, Name: metalk8s.EnvironmentConfigMap}); err != nil {
			return nil, err
		}
		missing, err := v.missing(ctx, n.Name)
		if err != nil {
			return nil, err
		}
		add("all that is deployed in namespace "+n.Name, missing)
	}
	return found, nil
}
