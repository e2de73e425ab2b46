package rights

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
)

// Work has the changes of a run.
type Work struct {
	Plans   []*engine.Plan
	Records []schema.Change      // of the shared documents
	Also    []cluster.Permission // for the steps before the plans
}

// Required returns the permissions to carry the work out, besides those to read what it is judged by. With wait they include those to
// wait until the changed objects are ready.
func (w *Work) Required(ctx context.Context, c *cluster.Cluster, wait bool) ([]cluster.Permission, error) {
	required := append(WriteRecords(), w.Also...)
	for _, record := range w.Records {
		if record.Object.Kind == cluster.ConfigMapKind.Kind {
			required = append(required, UpdateDocument(record.Object.Namespace, record.Object.Name)...)
			continue
		}
		more, err := forChange(ctx, c, record, wait)
		if err != nil {
			return nil, err
		}
		required = append(required, more...)
	}
	for _, plan := range w.Plans {
		for _, change := range plan.Changes {
			more, err := forChange(ctx, c, change, wait)
			if err != nil {
				return nil, err
			}
			required = append(required, more...)
		}
		more, err := toGrant(ctx, c, plan)
		if err != nil {
			return nil, err
		}
		required = append(required, more...)
	}
	return required, nil
}

// Least returns exactly the permissions to plan the work and to carry it out, including a resume after an interruption at any point. It
// names objects wherever RBAC can.
func (w *Work) Least(ctx context.Context, c *cluster.Cluster) ([]cluster.Permission, error) {
	writes := slices.ContainsFunc(w.Plans, func(p *engine.Plan) bool { return len(p.Changes) > 0 })
	least := append(Plan(writes), w.Also...)
	namespaces := map[string]bool{}
	for _, p := range w.Plans {
		namespaces[p.Release.Namespace] = true
		more, err := leastOf(ctx, c, p, writes)
		if err != nil {
			return nil, err
		}
		least = append(least, more...)
	}
	delete(namespaces, "")
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		least = append(least, Wait(namespace)...)
	}
	return least, nil
}

// leastOf returns the permissions to make a plan and to carry it out. A run that writes also asks the API server, by dry runs, what would
// become of existing objects, and whether tasks could run: also of objects that the plan does not change.
func leastOf(ctx context.Context, c *cluster.Cluster, p *engine.Plan, writes bool) ([]cluster.Permission, error) {
	objects := slices.Clone(p.Release.Objects)
	verbs := map[schema.ObjectRef][]string{}
	for _, task := range p.Release.Tasks {
		objects = append(objects, task.Object)
		if writes {
			verbs[refOf(task.Object)] = []string{"create"}
		}
	}
	refs := make([]schema.ObjectRef, 0, len(objects)+len(p.Changes))
	var least []cluster.Permission
	for _, object := range objects {
		ref := refOf(object)
		if refs = append(refs, ref); !writes {
			continue
		}
		verbs[ref] = append(verbs[ref], "patch")
		granted, err := grantedBy(object, p.Release.Objects)
		if err != nil {
			return nil, err
		}
		least = append(least, granted...)
	}
	for _, change := range p.Changes { // also of objects that are no longer part of the release
		refs = append(refs, change.Object)
		verbs[change.Object] = append(verbs[change.Object], verbsFor(change, true)...)
	}
	seen := map[schema.ObjectRef]bool{}
	for _, ref := range refs {
		if seen[ref] {
			continue
		}
		seen[ref] = true
		more, err := onObject(ctx, c, ref, verbs[ref])
		if err != nil {
			return nil, err
		}
		least = append(least, more...)
	}
	return least, nil
}

// Repair returns the least permissions to compare releases with the cluster, and with change to bring back every object of them.
func Repair(ctx context.Context, c *cluster.Cluster, releases []engine.Release, change bool) ([]cluster.Permission, error) {
	var w Work
	for _, release := range releases {
		plan := &engine.Plan{Release: release}
		if change {
			replaceAll(plan)
		}
		w.Plans = append(w.Plans, plan)
	}
	least, err := w.Least(ctx, c)
	if !change {
		least = slices.DeleteFunc(least, func(p cluster.Permission) bool { return !slices.Contains([]string{"get", "list", "watch"}, p.Verb) })
	}
	return least, err
}

// replaceAll turns a plan into the one that repairs most: every object is missing. Jobs and Pods of tasks are only read, because a repair
// does not run them again.
func replaceAll(plan *engine.Plan) {
	objects := slices.Clone(plan.Release.Objects)
	for _, task := range plan.Release.Tasks {
		if task.Runs() {
			plan.Changes = append(plan.Changes, schema.Change{Action: schema.ActionNone, Object: refOf(task.Object)})
			continue
		}
		objects = append(objects, task.Object)
	}
	for _, object := range objects {
		plan.Changes = append(plan.Changes, schema.Change{Action: schema.ActionCreate, Object: refOf(object)})
	}
	plan.Release.Objects, plan.Release.Tasks = objects, nil
}

func refOf(object *unstructured.Unstructured) schema.ObjectRef {
	return records.RefOf(object.GroupVersionKind(), object)
}
