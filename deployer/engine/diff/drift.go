package diff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
)

// Drift returns the fields of an object that solutionctl has applied and that others have changed or removed since, with the managers that
// own them now. It does not ask the server: a manager that changes a field becomes its owner, so a field that is still ours has the value
// that we applied, however the server writes it.
func Drift(desired, live *unstructured.Unstructured) []schema.FieldChange {
	d := drift{differ{owners: Owners(live), secret: live.GroupVersionKind() == cluster.SecretKind}}
	var mine map[string]any
	_, fields := applied(live)
	_ = json.Unmarshal([]byte(fields), &mine) // without fields nothing is ours
	want := WithoutBookkeeping(desired)
	delete(want, "apiVersion")
	delete(want, "kind")
	if IsScaled(live) {
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

// drift collects the changed fields.
type drift struct{ differ }

// value compares the wanted value at a place with the live one. Mine are our fields of it: nil for none, and empty for a value that is
// ours as a whole, or all of whose fields are no longer ours.
func (d *drift) value(at []place, mine map[string]any, want, have any) {
	if want == nil {
		return
	}
	if mine != nil && len(mine) == 0 {
		if !isPartlyOwned(d.owners, at) && !lacks(want, have) {
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
			return // the server does not keep an empty value
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

// lacks reports whether a wanted field is missing. The server does not keep empty fields.
func lacks(want, have any) bool {
	w, _ := want.(map[string]any)
	h, _ := have.(map[string]any)
	for name, value := range w {
		if _, ok := h[name]; !ok && !isEmpty(value) {
			return true
		}
	}
	return false
}

func isEmpty(value any) bool {
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

// list matches elements by the key that the server uses, else by the field that names them. A list whose elements have no names is one
// value.
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

// ownedElement returns our fields of an element of a list, and the key of the element, of which some fields may be defaults. An element
// that is not a map is its own key.
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

// elementWith returns the element of a list that has the values of a key; nil if there is none.
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
