package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Deployed returns the releases as they were deployed, in the order of the states, all of which have a Current. Those whose
// objects are not there any more, or not as they were stored, are left out; why is returned by their keys.
func (e *Engine) Deployed(ctx context.Context, states []*State) (releases []Release, unread map[Key]error, err error) {
	all := make([]*Release, len(states))
	errs := make([]error, len(states))
	if err := each(len(states), true, func(i int) error {
		s := states[i]
		content, err := e.Content(ctx, s.Key, s.Current)
		if report.CodeOf(err) == report.Corrupt {
			errs[i] = err
			return nil
		}
		all[i] = &Release{
			Key: s.Key, Version: s.Current.Version, Operation: s.Current.Operation, Settings: s.Current.Settings, Components: s.Current.Components,
			Objects: content.Objects, Tasks: content.Tasks, Memory: content.Memory,
		}
		for _, name := range s.Current.Needs {
			all[i].Needs = append(all[i].Needs, Need{Key{s.Namespace, s.Name, name}, schema.UntilReady})
		}
		for _, object := range s.Current.Objects {
			if object.Stays {
				all[i].Stay = append(all[i].Stay, object.ObjectRef)
			}
		}
		return err
	}); err != nil {
		return nil, nil, err
	}
	unread = map[Key]error{}
	for i, s := range states {
		if errs[i] != nil {
			unread[s.Key] = errs[i]
		} else {
			releases = append(releases, *all[i])
		}
	}
	return releases, unread, nil
}

// decideRestore decides how to bring back the deployed fields of an object, and nothing beyond them. A field was changed if the
// server no longer counts it as ours; a plan that only looks needs no right to write.
func (j *judge) decideRestore(ctx context.Context, s *step) error {
	kind := s.desired.GroupVersionKind()
	switch _, err := j.Cluster.Mapping(ctx, kind); {
	case errors.Is(err, cluster.ErrNoKind):
		s.Action, s.Note = schema.ActionSkip, noKind(kind)
		return nil
	case err != nil:
		return err
	}
	if done, err := j.decideEnded(ctx, s); done || err != nil {
		return err
	}
	live, err := j.Cluster.Get(ctx, kind, s.Object.Namespace, s.Object.Name)
	if err != nil {
		return err
	}
	s.live = live
	switch {
	case live == nil && s.known.Name == "":
		s.Action, s.Note = schema.ActionCreate, "the cluster has its kind now"
	case live == nil:
		s.Action, s.Note = schema.ActionCreate, "it is gone"
	case live.GetDeletionTimestamp() != nil:
		s.Action, s.late, s.Note = schema.ActionCreate, !j.options.Look, terminating(live)
	default:
		s.Action, s.Fields = schema.ActionUpdate, drifted(s.desired, live)
		if !j.isOurs(s) {
			s.Action, s.Note = schema.ActionAdopt, "somebody made it again: "+describe(live)
		} else if len(s.Fields) == 0 {
			s.Action = schema.ActionNone
		}
	}
	if j.options.Look || s.Action == schema.ActionNone || s.Action == schema.ActionSkip || s.late {
		return nil
	}
	err = j.mayRestore(ctx, s)
	if j.options.Yield && conflicts(err) {
		s.Action, s.Note, err = schema.ActionKeep, err.Error(), nil
	}
	return err
}

// mayRestore asks the server whether what is planned can be done. What another manager applies is a conflict, as that manager
// would only apply it again; what somebody has edited is put back.
func (j *judge) mayRestore(ctx context.Context, s *step) error {
	phase := phaseOf(s.desired.GroupVersionKind().GroupKind())
	switch {
	case phase == phaseDefinitions:
		s.Action, s.Note = schema.ActionKeep, "a definition is changed by its activation only"
		return nil
	case s.Action == schema.ActionCreate:
		_, err := j.tryCreate(ctx, s)
		return err
	}
	if !j.options.Force {
		if taken := appliedByOthers(s); len(taken) > 0 {
			return report.Errorf(report.Conflict, "%s: somebody else applies these fields: %s", s.Object, strings.Join(taken, "; ")).
				WithHint("let the other manager give them up, or take them over with %s",
					report.Accept("force-conflicts").About(s.Object.String()+": "+strings.Join(taken, "; ")))
		}
	}
	drift, adopts := s.Fields, s.Action == schema.ActionAdopt
	if err := j.decideUpdate(ctx, s); err != nil || s.Action == schema.ActionNone || s.Action == schema.ActionReplace {
		return err
	}
	if !adopts {
		s.Fields = drift
	}
	return nil
}

// appliedByOthers lists the fields of a step that other managers set by applying them.
func appliedByOthers(s *step) []string {
	var taken []string
	for _, entry := range s.live.GetManagedFields() {
		if entry.Operation != metav1.ManagedFieldsOperationApply || entry.Manager == cluster.FieldManager {
			continue
		}
		for _, field := range s.Fields {
			if slices.Contains(strings.Split(field.Manager, ", "), entry.Manager) {
				taken = append(taken, fmt.Sprintf("%s (%q)", field.Path, entry.Manager))
			}
		}
	}
	return taken
}

// drifted returns the fields of an object that the engine applied, that somebody has changed or removed since, and who
// owns them now. It needs no help of the server: whoever changes a field takes it away from its owners, so that a field
// that the server still counts as ours has the value that we gave it, however the server writes it.
func drifted(desired, live *unstructured.Unstructured) []schema.FieldChange {
	d := drift{differ{owners: ownersOf(live), secret: live.GroupVersionKind() == cluster.SecretKind}}
	var mine map[string]any
	_, fields := applied(live)
	_ = json.Unmarshal([]byte(fields), &mine) // what cannot be read is not ours
	want := withoutBookkeeping(desired)
	delete(want, "apiVersion")
	delete(want, "kind")
	if scaledByOthers(live) {
		want = (&unstructured.Unstructured{Object: want}).DeepCopy().Object
		unstructured.RemoveNestedField(want, "spec", "replicas")
	}
	if metadata, ok := want["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "name")
		delete(metadata, "namespace")
		want["metadata"] = metadata
	}
	d.mapping(nil, mine, want, live.Object)
	return d.changes
}

// drift collects what was changed.
type drift struct{ differ }

// value compares what is wanted at a place with what is there. Mine is what of it is ours: nil for nothing, and empty for a
// value that is ours as a whole, or of which all that was in it is ours no longer.
func (d *drift) value(at []place, mine map[string]any, want, have any) {
	if want == nil {
		return
	}
	if mine != nil && len(mine) == 0 {
		if !takenApart(d.owners, at) && !lacks(want, have) {
			return
		}
		mine = nil
	}
	switch w := want.(type) {
	case map[string]any:
		if h, ok := have.(map[string]any); ok || have == nil && mine != nil {
			d.mapping(at, mine, w, h)
			return
		}
		if len(w) == 0 && have == nil {
			return // the server does not keep what is empty
		}
	case []any:
		if h, ok := have.([]any); ok {
			d.list(at, mine, w, h)
			return
		}
		if len(w) == 0 && have == nil {
			return
		}
	default:
		if mine != nil {
			return
		}
	}
	if !reflect.DeepEqual(want, have) {
		d.report(at, have, want)
	}
}

// lacks tells whether a wanted field is not there. The server does not keep fields that say nothing.
func lacks(want, have any) bool {
	w, _ := want.(map[string]any)
	h, _ := have.(map[string]any)
	for name, value := range w {
		if _, ok := h[name]; !ok && !saysNothing(value) {
			return true
		}
	}
	return false
}

func saysNothing(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return !lacks(v, nil)
	case []any:
		return len(v) == 0
	}
	return reflect.ValueOf(value).IsZero()
}

func (d *drift) mapping(at []place, mine, want, have map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		owned, _ := mine["f:"+name].(map[string]any)
		d.value(append(slices.Clip(at), place{field: name}), owned, want[name], have[name])
	}
}

// list matches elements by what the server tells them apart with, else by the field that names them. A list whose elements
// have no names is one value.
func (d *drift) list(at []place, mine map[string]any, want, have []any) {
	field := schema.ListKey(want, have)
	for i, w := range want {
		key, owned := ownedElement(mine, w)
		if m, ok := w.(map[string]any); ok && owned == nil && field != "" {
			key = map[string]any{field: m[field]}
		}
		if owned == nil && key == nil {
			if !reflect.DeepEqual(want, have) {
				d.report(at, have, want)
			}
			return
		}
		h := elementWith(have, key)
		next := append(slices.Clip(at), place{element: cmp.Or(h, w), index: i, label: labelOf(key)})
		d.value(next, owned, w, h)
	}
}

// ownedElement returns what is ours of an element of a list, and by which fields the server knows it: a part of them may be
// defaults. Elements that are no maps are their own names.
func ownedElement(mine map[string]any, element any) (key, owned map[string]any) {
	m, ok := element.(map[string]any)
	if !ok {
		data, err := json.Marshal(element)
		if err != nil {
			return nil, nil
		}
		owned, _ = mine["v:"+string(data)].(map[string]any)
		return nil, owned
	}
	for name, value := range mine {
		kind, text, _ := strings.Cut(name, ":")
		key = nil
		if kind != "k" || json.Unmarshal([]byte(text), &key) != nil {
			continue
		}
		given := 0
		for field, v := range key {
			if got, ok := m[field]; ok && fmt.Sprint(got) == fmt.Sprint(v) {
				given++
			} else if ok {
				given = -len(key)
			}
		}
		if given > 0 {
			owned, _ = value.(map[string]any)
			return key, owned
		}
	}
	return nil, nil
}

// elementWith finds the element of a list that has the values of a key.
func elementWith(list []any, key map[string]any) any {
	for _, element := range list {
		m, ok := element.(map[string]any)
		for field, value := range key {
			ok = ok && fmt.Sprint(m[field]) == fmt.Sprint(value)
		}
		if ok {
			return element
		}
	}
	return nil
}

func labelOf(key map[string]any) string {
	var b strings.Builder
	for _, field := range slices.Sorted(maps.Keys(key)) {
		fmt.Fprintf(&b, "[%s=%v]", field, key[field])
	}
	return b.String()
}
