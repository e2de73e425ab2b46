package engine

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Adoption is what a release takes over from another tool. What that has applied counts as if the release had: it stays where it is
// wanted, and goes where it is not and nobody else has it. Installing such a release is an upgrade to its tasks.
type Adoption struct {
	// Objects are those that may be taken over; those that the release does not have are left alone.
	Objects []schema.ObjectRef
	// Manager is the field manager of the other tool. Objects that it has no fields of are left alone, and so are fields of others.
	Manager string
	// Restart accepts that pods start again, as their template changes.
	Restart bool
}

// mayAdopt tells whether an object is among those that may be taken over.
func (j *judge) mayAdopt(s *step) bool {
	a := j.release.Adopt
	return a != nil && slices.ContainsFunc(a.Objects, func(o schema.ObjectRef) bool { return keyOfRef(o) == keyOfRef(s.Object) })
}

// adopts tells whether the object that is there may be taken over: the other tool has applied it, or a run that was taking it over.
func (j *judge) adopts(s *step) bool {
	return j.mayAdopt(s) && slices.ContainsFunc(s.live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == j.release.Adopt.Manager || isUs(entry.Manager)
	})
}

// former are the managers from whom fields of an object are taken without a word.
func (j *judge) former(s *step) []string {
	if j.adopts(s) {
		return []string{cluster.FieldManager, j.release.Adopt.Manager}
	}
	return []string{cluster.FieldManager}
}

// heir returns the object that is there as if the engine had applied what the other tool has, nil when that has nothing of it.
func (j *judge) heir(s *step) *unstructured.Unstructured {
	if !j.mayAdopt(s) {
		return nil
	}
	var others []metav1.ManagedFieldsEntry
	var last *metav1.ManagedFieldsEntry
	fields := map[string]any{}
	for _, entry := range s.live.GetManagedFields() {
		former := entry.Manager == j.release.Adopt.Manager
		ours := isUs(entry.Manager) && entry.Operation == metav1.ManagedFieldsOperationApply
		var set map[string]any
		if entry.Subresource != "" || !former && !ours || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &set) != nil {
			others = append(others, entry)
			continue
		}
		if unite(fields, set); former {
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
	heir := s.live.DeepCopy()
	heir.SetManagedFields(append(others, *last))
	return heir
}

// unite adds a set of fields to another one, see the format FieldsV1 of the API server. One that names nothing within is whole.
func unite(all, set map[string]any) {
	for name, field := range set {
		more, _ := field.(map[string]any)
		there, known := all[name].(map[string]any)
		within := maps.Clone(there)
		if within == nil {
			within = map[string]any{}
		}
		if unite(within, more); name != "." && known && (len(there) == 0) != (len(more) == 0) {
			within["."] = map[string]any{}
		}
		all[name] = within
	}
}

// inherit makes what the other tool has applied the engine's own, and changes nothing else.
func (r *run) inherit(ctx context.Context, s *step) error {
	if s.heir == nil {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": s.live.GetUID(), "resourceVersion": s.live.GetResourceVersion(), "managedFields": s.heir.GetManagedFields(),
	}})
	if err != nil {
		return err
	}
	s.live, err = r.Cluster.Patch(ctx, s.live, types.MergePatchType, patch, cluster.WriteOptions{})
	return err
}

// takeLeft takes over what tasks of the other tool have left and no task of this operation applies, as it is.
func (r *run) takeLeft(ctx context.Context) error {
	for _, t := range r.plan.judge.turns {
		if t.chosen || t.known.UID == "" || !r.plan.judge.mayAdopt(t.step) {
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

// label gives the object that the record names the label of the release, and the engine what the other tool has applied of it.
func (r *run) label(ctx context.Context, s *step) (err error) {
	s.live, err = r.plan.judge.find(ctx, s)
	if err != nil || s.live == nil || string(s.live.GetUID()) != s.known.UID || s.live.GetLabels()[LabelRelease] == r.plan.Release.ID() {
		return err
	}
	s.heir = r.plan.judge.heir(s)
	if err = r.inherit(ctx, s); err != nil {
		return err
	}
	object := owned(s.live)
	labels := maps.Clone(object.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[LabelRelease] = r.plan.Release.ID()
	object.SetLabels(labels)
	object.SetUID(s.live.GetUID())
	object.SetResourceVersion(s.live.GetResourceVersion())
	_, err = r.Cluster.Apply(ctx, object, cluster.WriteOptions{})
	return err
}

// withoutFormer asks what becomes of an object when what the other tool has applied, and nobody else, goes. Result is what it would
// become otherwise.
func (j *judge) withoutFormer(ctx context.Context, s *step, result *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	former, others := map[string]any{}, map[string]any{}
	for _, o := range ownersOf(result) {
		if o.manager == j.release.Adopt.Manager {
			unite(former, o.fields)
		} else {
			unite(others, o.fields)
		}
	}
	rest, _ := without(former, others, result.Object).(map[string]any)
	if reflect.DeepEqual(rest, result.Object) {
		return result, nil
	}
	patch := replacing("", withoutBookkeeping(s.live), withoutBookkeeping(&unstructured.Unstructured{Object: rest}))
	patch = append(patch, operation{"add", "/metadata/resourceVersion", s.live.GetResourceVersion()})
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	return j.Cluster.Patch(ctx, s.live, types.JSONPatchType, data, cluster.WriteOptions{DryRun: true}) // the server fills in what it always does
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// replacing are the operations that make of an object another one, each of a whole field of it or of its metadata.
func replacing(at string, before, after map[string]any) (patch []operation) {
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		path := at + "/" + name
		value, is := after[name]
		if path == "/metadata" {
			was, _ := before[name].(map[string]any)
			fields, _ := value.(map[string]any)
			patch = append(patch, replacing(path, was, fields)...)
		} else if !is {
			patch = append(patch, operation{Op: "remove", Path: path})
		} else if !reflect.DeepEqual(before[name], value) {
			patch = append(patch, operation{"add", path, value})
		}
	}
	return patch
}

// without returns a value without the fields of a set of which others have nothing. The value is not changed.
func without(set, others map[string]any, value any) any {
	child := func(name string, sub, value any) (rest any, kept bool) {
		theirs, kept := others[name].(map[string]any)
		if fields, _ := sub.(map[string]any); kept && len(theirs) > 0 && len(fields) > 0 {
			value = without(fields, theirs, value)
		}
		return value, kept
	}
	switch value := value.(type) {
	case map[string]any:
		rest := maps.Clone(value)
		for name, sub := range set {
			field, ok := strings.CutPrefix(name, "f:")
			if _, there := value[field]; !ok || !there {
				continue
			}
			var kept bool
			if rest[field], kept = child(name, sub, value[field]); !kept {
				delete(rest, field)
			}
		}
		return rest
	case []any:
		rest := make([]any, 0, len(value))
		for _, element := range value {
			kept := true
			if name := nameOf(set, element); name != "" {
				element, kept = child(name, set[name], element)
			}
			if kept {
				rest = append(rest, element)
			}
		}
		return rest
	default:
		return value
	}
}

// nameOf returns how a set of fields names an element of a list, "" when it has nothing of it.
func nameOf(fields map[string]any, element any) string {
	for name := range fields {
		if set, _ := setOf(map[string]any{name: fields[name]}, element); set != nil {
			return name
		}
	}
	return ""
}

// podsOf are the kinds whose pods start again when their template changes.
var podsOf = map[kube.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true, {Group: "apps", Kind: "DaemonSet"}: true,
}

// checkRestart refuses to take over what runs if its pods would start again for it, unless that is accepted.
func (j *judge) checkRestart(s *step) error {
	if !j.adopts(s) || !podsOf[kindOfRef(s.Object).GroupKind()] {
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
	if !j.release.Adopt.Restart {
		return report.Errorf(report.Refused, "the pods of %s would start again, as it gets other values in %s", s.Object, changed).
			WithHint("give its component the values that it was deployed with, or accept that: %s", report.Accept("accept-restart").About(s.Object.String()+": "+changed))
	}
	s.Note = "its pods start again: " + changed
	return nil
}
