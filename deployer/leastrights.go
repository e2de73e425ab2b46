package deployer

import (
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/kube/rbac"
	"github.com/solutionctl/solutionctl/schema"
)

// leastRights are those that carrying a task out takes, whoever interrupts it and whenever, and no more: what it changes by name, what
// is only read besides.
func (d *Deployer) leastRights(ctx context.Context, t *task) ([]cluster.Permission, error) {
	writes := slices.ContainsFunc(t.plans, func(p *engine.Plan) bool { return len(p.Changes) > 0 })
	list := append(rights.Plan(writes), t.needs...)
	namespaces := map[string]bool{}
	for _, p := range t.plans {
		namespaces[p.Release.Namespace] = true
		more, err := d.rightsOf(ctx, p, writes)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	delete(namespaces, "")
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		list = append(list, rights.Wait(namespace)...)
	}
	return list, nil
}

// RepairRights are those that [Deployer.Repair] takes in an environment: to look, and with change to bring back whatever may be gone or
// changed. Definitions are never touched.
func (d *Deployer) RepairRights(ctx context.Context, environment string, change bool) ([]cluster.Permission, error) {
	states, _, _, err := d.Survey.Deployed(ctx, survey.Selection{Environment: environment})
	if err != nil {
		return nil, err
	}
	releases, _, err := d.Records.Engine.Deployed(ctx, states)
	if err != nil {
		return nil, err
	}
	t := &task{}
	for i := range releases {
		plan := &engine.Plan{Release: releases[i]}
		if change {
			repairAll(plan)
		}
		t.plans = append(t.plans, plan)
	}
	list, err := d.leastRights(ctx, t)
	if !change {
		list = slices.DeleteFunc(list, func(p cluster.Permission) bool { return !slices.Contains([]string{"get", "list", "watch"}, p.Verb) })
	}
	return list, err
}

// repairAll makes of a plan the one that has the most to repair: every object is gone. Jobs and Pods of tasks are only read, as no
// repair runs them again.
func repairAll(plan *engine.Plan) {
	objects := slices.Clone(plan.Release.Objects)
	for _, task := range plan.Release.Tasks {
		if task.Runs() {
			plan.Changes = append(plan.Changes, schema.Change{Action: schema.ActionNone, Object: records.RefOf(task.Object.GroupVersionKind(), task.Object)})
			continue
		}
		objects = append(objects, task.Object)
	}
	for _, object := range objects {
		plan.Changes = append(plan.Changes, schema.Change{Action: schema.ActionCreate, Object: records.RefOf(object.GroupVersionKind(), object)})
	}
	plan.Release.Objects, plan.Release.Tasks = objects, nil
}

// rightsOf are those that a plan takes, and those that making it takes. Whoever writes also asks the API server, by dry runs, what would
// become of objects that are there, and whether tasks could run: also where they stay as they are, and are in no change of the plan.
func (d *Deployer) rightsOf(ctx context.Context, p *engine.Plan, writes bool) ([]cluster.Permission, error) {
	objects := slices.Clone(p.Release.Objects)
	verbs := map[schema.ObjectRef][]string{}
	for _, task := range p.Release.Tasks {
		objects = append(objects, task.Object)
		if writes {
			verbs[records.RefOf(task.Object.GroupVersionKind(), task.Object)] = []string{"create"}
		}
	}
	refs := make([]schema.ObjectRef, 0, len(objects)+len(p.Changes))
	var list []cluster.Permission
	for _, object := range objects {
		ref := records.RefOf(object.GroupVersionKind(), object)
		if refs = append(refs, ref); !writes {
			continue
		}
		verbs[ref] = append(verbs[ref], "patch")
		given, err := given(object, p.Release.Objects)
		if err != nil {
			return nil, err
		}
		list = append(list, given...)
	}
	for _, c := range p.Changes { // of what is no longer wanted, too
		refs = append(refs, c.Object)
		verbs[c.Object] = append(verbs[c.Object], verbsFor(c, true)...)
	}
	seen := map[schema.ObjectRef]bool{}
	for _, ref := range refs {
		if seen[ref] {
			continue
		}
		seen[ref] = true
		more, err := d.rightsOn(ctx, ref, verbs[ref])
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

// rightsOn are those to look at one object and to do more with it: nobody can be held to a name who makes, lists or watches.
func (d *Deployer) rightsOn(ctx context.Context, ref schema.ObjectRef, more []string) ([]cluster.Permission, error) {
	verbs := []string{"get", "list"}
	if engine.Awaits(ref) {
		verbs = append(verbs, "watch")
	}
	for _, verb := range more {
		if !slices.Contains(verbs, verb) {
			verbs = append(verbs, verb)
		}
	}
	list, err := d.Cluster.PermissionsOn(ctx, kube.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), ref.Namespace, verbs...)
	if errors.Is(err, cluster.ErrNoKind) {
		return nil, nil // whoever brings the kind is asked then
	}
	list = cluster.Only(ref.Name, list)
	for i := range list {
		list[i].Name, list[i].One = list[i].One, ""
	}
	return list, err
}

// given are the rights that a role gives away, which nobody can who does not have them; of a binding to a role that is not among the
// objects it is the one to bind it.
func given(object *unstructured.Unstructured, objects []*unstructured.Unstructured) ([]cluster.Permission, error) {
	if object.GroupVersionKind().Group != rbacGroup {
		return nil, nil
	}
	if kind := object.GetKind(); kind == "Role" || kind == "ClusterRole" {
		role, err := rbac.FromObject(object.Object)
		if err != nil {
			return nil, err
		}
		var list []cluster.Permission
		for _, rule := range role.Rules {
			list = append(list, permissions(rule, object.GetNamespace())...)
		}
		return list, nil
	}
	kind, _, _ := unstructured.NestedString(object.Object, "roleRef", "kind")
	name, _, _ := unstructured.NestedString(object.Object, "roleRef", "name")
	if slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name }) {
		return nil, nil
	}
	namespace, resource := object.GetNamespace(), "roles"
	if kind == "ClusterRole" {
		namespace, resource = "", "clusterroles"
	}
	return cluster.Permission{Group: rbacGroup, Resource: resource, Namespace: namespace, Name: name}.Each("bind"), nil
}
