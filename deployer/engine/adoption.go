package engine

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/diff"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Adoption describes what a release adopts from another tool. Fields that the tool has applied are treated as if the release had
// applied them: they stay if the release has them, and are removed otherwise, unless another manager owns them. For its tasks,
// such a release is an upgrade.
type Adoption struct {
	// Objects may be adopted; those that the release does not have are left alone.
	Objects []schema.ObjectRef
	// Manager is the field manager of the other tool. Objects and fields that it does not own are left alone.
	Manager string
	// Restart accepts that pods start again, because their template changes.
	Restart bool
}

// mayAdopt reports whether an object is listed for adoption.
func (d *decider) mayAdopt(s *step) bool {
	a := d.release.Adopt
	return a != nil && slices.ContainsFunc(a.Objects, func(o schema.ObjectRef) bool { return record.KeyOf(o) == record.KeyOf(s.Object) })
}

// adopts reports whether the existing object may be adopted: the other tool has applied it, or an interrupted adoption has.
func (d *decider) adopts(s *step) bool {
	return d.mayAdopt(s) && slices.ContainsFunc(s.live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == d.release.Adopt.Manager || isSelf(entry.Manager)
	})
}

// former returns the managers whose fields of an object are replaced without a conflict.
func (d *decider) former(s *step) []string {
	if d.adopts(s) {
		return []string{cluster.FieldManager, d.release.Adopt.Manager}
	}
	return []string{cluster.FieldManager}
}

// adopted returns the existing object as if the engine owned the fields of the other tool; nil if that owns none.
func (d *decider) adopted(s *step) *unstructured.Unstructured {
	if !d.mayAdopt(s) {
		return nil
	}
	var others []metav1.ManagedFieldsEntry
	var last *metav1.ManagedFieldsEntry
	fields := map[string]any{}
	for _, entry := range s.live.GetManagedFields() {
		former := entry.Manager == d.release.Adopt.Manager
		ours := isSelf(entry.Manager) && entry.Operation == metav1.ManagedFieldsOperationApply
		var set map[string]any
		if entry.Subresource != "" || !former && !ours || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &set) != nil {
			others = append(others, entry)
			continue
		}
		if diff.Unite(fields, set); former {
			last = &entry
		}
	}
	if last == nil {
		return nil
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	last.Manager, last.Operation, last.FieldsV1 = cluster.FieldManager, metav1.ManagedFieldsOperationApply, metav1.NewFieldsV1(string(text))
	adopted := s.live.DeepCopy()
	adopted.SetManagedFields(append(others, *last))
	return adopted
}

// adoptFields transfers the ownership of the other tool's fields to the engine, and changes nothing else.
func (r *run) adoptFields(ctx context.Context, s *step) error {
	if s.adopted == nil {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": s.live.GetUID(), "resourceVersion": s.live.GetResourceVersion(), "managedFields": s.adopted.GetManagedFields(),
	}})
	if err != nil {
		return err
	}
	s.live, err = r.Cluster.Patch(ctx, s.live, types.MergePatchType, patch, cluster.WriteOptions{})
	return err
}

// adoptTaskObjects adopts, as they are, the objects of the other tool's tasks that no task of this operation applies.
func (r *run) adoptTaskObjects(ctx context.Context) error {
	for _, t := range r.plan.decider.tasks {
		if t.chosen || t.known.UID == "" || !r.plan.decider.mayAdopt(t.step) {
			continue
		}
		err := cluster.ErrChanged
		for attempt := 0; errors.Is(err, cluster.ErrChanged) && attempt < attempts; attempt++ {
			err = r.label(ctx, t.step)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// label sets the label of the release on a recorded object and transfers the other tool's fields to the engine.
func (r *run) label(ctx context.Context, s *step) (err error) {
	s.live, err = r.plan.decider.find(ctx, s)
	if err != nil || s.live == nil || string(s.live.GetUID()) != s.known.UID || s.live.GetLabels()[schema.LabelRelease] == r.plan.Release.ID() {
		return err
	}
	s.adopted = r.plan.decider.adopted(s)
	if err = r.adoptFields(ctx, s); err != nil {
		return err
	}
	object := diff.AppliedPart(s.live)
	cluster.SetLabel(object, schema.LabelRelease, r.plan.Release.ID())
	object.SetUID(s.live.GetUID())
	object.SetResourceVersion(s.live.GetResourceVersion())
	_, err = r.Cluster.Apply(ctx, object, cluster.WriteOptions{})
	return err
}

// withoutFormer asks the server for the object without the fields that only the other tool owns. Result is the object with them.
func (d *decider) withoutFormer(ctx context.Context, s *step, result *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	former, others := map[string]any{}, map[string]any{}
	for _, o := range diff.Owners(result) {
		if o.Manager == d.release.Adopt.Manager {
			diff.Unite(former, o.Fields)
		} else {
			diff.Unite(others, o.Fields)
		}
	}
	rest, _ := diff.Without(former, others, result.Object).(map[string]any)
	if reflect.DeepEqual(rest, result.Object) {
		return result, nil
	}
	patch := diff.Patch(diff.WithoutBookkeeping(s.live), diff.WithoutBookkeeping(&unstructured.Unstructured{Object: rest}))
	patch = append(patch, diff.Operation{Op: "add", Path: "/metadata/resourceVersion", Value: s.live.GetResourceVersion()})
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	return d.Cluster.Patch(ctx, s.live, types.JSONPatchType, data, cluster.WriteOptions{DryRun: true}) // the server fills in its defaults
}

// podsOf are kinds whose pods restart when their template changes.
var podsOf = map[kube.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true, {Group: "apps", Kind: "DaemonSet"}: true,
}

// checkRestart refuses to adopt a workload if its pods would restart, unless that is accepted.
func (d *decider) checkRestart(s *step) error {
	if !d.adopts(s) || !podsOf[kindOfRef(s.Object).GroupKind()] {
		return nil
	}
	var paths []string
	for _, f := range s.Fields {
		if strings.HasPrefix(f.Path, "spec.template.") {
			paths = append(paths, f.Path)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	changed := strings.Join(paths, ", ")
	if !d.release.Adopt.Restart {
		return report.Errorf(report.Refused, "the pods of %s would restart, because it gets other values in %s", s.Object, changed).
			WithHint("give its component the values that it was deployed with, or accept the restart: %s", report.Accept("accept-restart").About(s.Object.String()+": "+changed))
	}
	s.Note = "its pods restart: " + changed
	return nil
}
