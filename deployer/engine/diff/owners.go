package diff

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
)

// Owner is a field manager with the fields that it owns.
type Owner struct {
	Manager string
	Time    *metav1.Time // of the last change of these fields
	Fields  map[string]any
}

// Owners returns the field managers of an object. Fields that cannot be parsed have none.
func Owners(object *unstructured.Unstructured) []Owner {
	var owners []Owner
	for _, entry := range object.GetManagedFields() {
		fields := map[string]any{}
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		owners = append(owners, Owner{entry.Manager, entry.Time, fields})
	}
	return owners
}

// managersOf returns the managers that own a field or a part of it, sorted, and the last change by another manager than solutionctl.
func managersOf(owners []Owner, at []place) (names string, since *time.Time) {
	deepest := 0
	for _, o := range owners {
		deepest = max(deepest, depth(o.Fields, at))
	}
	var managers []string
	for _, o := range owners {
		if depth(o.Fields, at) < deepest {
			continue
		}
		if !slices.Contains(managers, o.Manager) {
			managers = append(managers, o.Manager)
		}
		if o.Manager != cluster.FieldManager && o.Time != nil && (since == nil || since.Before(o.Time.Time)) {
			utc := o.Time.UTC()
			since = &utc
		}
	}
	slices.Sort(managers)
	return strings.Join(managers, ", "), since
}

// depth returns how many steps towards a place a set of fields has: all of them, or those to a field above it that was set as a whole. It
// is negative if the set has no part of it.
func depth(fields map[string]any, at []place) int {
	for i, p := range at {
		if len(fields) == 0 {
			return i
		}
		if fields = within(fields, p); fields == nil {
			return -1
		}
	}
	return len(at)
}

// isPartlyOwned reports whether a manager owns a part of the value at a place. Then no manager owns it as a whole.
func isPartlyOwned(owners []Owner, at []place) bool {
	return slices.ContainsFunc(owners, func(o Owner) bool {
		fields := o.Fields
		for _, p := range at {
			fields = within(fields, p)
		}
		return len(fields) > 0
	})
}

// within returns the set of fields one step further; nil if there is none.
func within(fields map[string]any, p place) map[string]any {
	if p.element == nil {
		next, _ := fields["f:"+p.field].(map[string]any)
		return next
	}
	for name, value := range fields {
		next, ok := value.(map[string]any)
		kind, text, _ := strings.Cut(name, ":")
		if !ok || kind != "k" {
			continue
		}
		var key map[string]any
		element, isMap := p.element.(map[string]any)
		if !isMap || json.Unmarshal([]byte(text), &key) != nil {
			continue
		}
		matches := true
		for k, v := range key {
			matches = matches && fmt.Sprint(element[k]) == fmt.Sprint(v)
		}
		if matches {
			return next
		}
	}
	return nil
}

// SameApplied reports whether solutionctl has applied the same fields of two states of an object, with the same API version.
func SameApplied(a, b *unstructured.Unstructured) bool {
	version, fields := applied(a)
	otherVersion, others := applied(b)
	return version == otherVersion && fields == others
}

// applied returns the fields of an object that solutionctl has applied, in the format FieldsV1, and the API version that they refer to.
// Both are empty if it has applied none.
func applied(object *unstructured.Unstructured) (version, fields string) {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == cluster.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.FieldsV1 != nil {
			return entry.APIVersion, entry.FieldsV1.GetRawString()
		}
	}
	return "", ""
}

// IsOwned reports whether solutionctl owns a field.
func IsOwned(object *unstructured.Unstructured, path ...string) bool {
	return isManaged(object, func(manager string) bool { return manager == cluster.FieldManager }, path)
}

// IsOwnedByOthers reports whether another manager than solutionctl owns a field.
func IsOwnedByOthers(object *unstructured.Unstructured, path ...string) bool {
	return isManaged(object, func(manager string) bool { return manager != cluster.FieldManager }, path)
}

func isManaged(object *unstructured.Unstructured, some func(manager string) bool, at []string) bool {
	var places []place
	for _, field := range at {
		places = append(places, place{field: field})
	}
	return slices.ContainsFunc(Owners(object), func(o Owner) bool { return some(o.Manager) && depth(o.Fields, places) >= 0 })
}

// IsScaled reports whether an autoscaler or an administrator has scaled an object. The server does not record who scales to zero, because
// it does not keep a zero.
func IsScaled(object *unstructured.Unstructured) bool {
	replicas, set, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	return IsOwnedByOthers(object, "spec", "replicas") || set && replicas == 0 && !IsOwned(object, "spec", "replicas")
}
