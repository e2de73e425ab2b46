package deployer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema/report"
)

// migration is a definition in the cluster whose objects have to be stored in one version.
type migration struct {
	definition *unstructured.Unstructured
	version    string
}

// migrateStorage stores every object of these definitions anew in one version, and then says in the status of the
// definitions that no other version is in the store. Only then does the API server let a version go. As the status comes
// last, a run that was interrupted is done again from the start, which does no harm.
func (d *Deployer) migrateStorage(ctx context.Context, migrations []migration) error {
	for _, m := range migrations {
		// It was read when the work was planned; only what it is now may be changed.
		live, err := d.Cluster.Get(ctx, crdKind, "", m.definition.GetName())
		if err != nil {
			return err
		}
		if live == nil || live.GetUID() != m.definition.GetUID() {
			return report.Errorf(report.Conflict, "custom resource definition %s was deleted meanwhile", m.definition.GetName()).
				WithHint("run the command again")
		}
		event := report.Event{Step: "migrate", Name: live.GetName(), State: report.Started, Unit: "objects"}
		d.sink().Emit(event)
		event.Done, err = d.migrateObjects(ctx, live, m.version)
		event.State = report.Done
		if err != nil {
			event.State = report.Failed
		}
		d.sink().Emit(event)
		if err != nil {
			return fmt.Errorf("store the objects of %s anew: %w", live.GetName(), err)
		}
	}
	return nil
}

// migrateObjects returns how many objects it has stored.
func (d *Deployer) migrateObjects(ctx context.Context, live *unstructured.Unstructured, version string) (stored int64, err error) {
	live, err = d.storeIn(ctx, live, version)
	if err != nil {
		return 0, err
	}
	def, err := definition(live)
	if err != nil {
		return 0, err
	}
	kind := kube.GroupVersionKind{Group: def.Spec.Group, Version: version, Kind: def.Spec.Names.Kind}
	for object, err := range d.Cluster.List(ctx, kind, "", metav1.ListOptions{}) {
		if err != nil {
			return stored, err
		}
		if err := d.storeAnew(ctx, object, version); err != nil {
			return stored, err
		}
		stored++
	}
	if err = unstructured.SetNestedStringSlice(live.Object, []string{version}, "status", "storedVersions"); err != nil {
		return stored, err
	}
	_, err = d.Cluster.UpdateStatus(ctx, live, cluster.WriteOptions{})
	return stored, err
}

// storeIn makes a definition store a version. The next apply would take what is written here for somebody else's, as it
// keeps updates and applies apart; so the statement that it was written is taken back.
func (d *Deployer) storeIn(ctx context.Context, live *unstructured.Unstructured, version string) (*unstructured.Unstructured, error) {
	versions, _, err := unstructured.NestedSlice(live.Object, "spec", "versions")
	if err != nil {
		return nil, err
	}
	changed := false
	for _, v := range versions {
		one, _ := v.(map[string]any)
		wanted := one["name"] == version
		changed = changed || one["storage"] != wanted
		one["storage"] = wanted
	}
	if changed {
		if err = unstructured.SetNestedSlice(live.Object, versions, "spec", "versions"); err != nil {
			return nil, err
		}
		if live, err = d.Cluster.Update(ctx, live, cluster.WriteOptions{}); err != nil {
			return nil, err
		}
	}
	kept := slices.DeleteFunc(live.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == cluster.FieldManager && m.Operation == metav1.ManagedFieldsOperationUpdate && m.Subresource == ""
	})
	if len(kept) == len(live.GetManagedFields()) {
		return live, nil
	}
	live.SetManagedFields(kept)
	return d.Cluster.Update(ctx, live, cluster.WriteOptions{})
}

// storeAnew writes an object as it is: the API server then stores it in the present version. What other versions of it were
// said to be managed by whom is dropped, because nobody can read such a statement once its version has gone.
func (d *Deployer) storeAnew(ctx context.Context, object *unstructured.Unstructured, storage string) error {
	apiVersion := kube.GroupVersion{Group: object.GroupVersionKind().Group, Version: storage}.String()
	for {
		kept := slices.DeleteFunc(object.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool { return m.APIVersion != apiVersion })
		if len(kept) == 0 {
			kept = []metav1.ManagedFieldsEntry{{}} // how the API server is told to forget all of it
		}
		object.SetManagedFields(kept)
		_, err := d.Cluster.Update(ctx, object, cluster.WriteOptions{})
		if !errors.Is(err, cluster.ErrChanged) {
			return err
		}
		now, err := d.Cluster.Get(ctx, object.GroupVersionKind(), object.GetNamespace(), object.GetName())
		if err != nil || now == nil || now.GetUID() != object.GetUID() {
			return err // gone, or a new one, which is stored in the present version
		}
		object = now
	}
}
