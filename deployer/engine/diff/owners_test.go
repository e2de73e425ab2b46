package diff

import (
	"strings"
	"testing"
)

// TestManagers: the managers of a field, and when others than solutionctl have changed it.
func TestManagers(t *testing.T) {
	live := object(t, `{apiVersion: v1, kind: A, metadata: {name: a, managedFields: [
{manager: solutionctl, operation: Apply, apiVersion: v1, time: "2026-01-05T00:00:00Z", fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:a": {}, "f:b": {}}}},
{manager: kubectl, operation: Update, time: "2026-01-02T00:00:00Z", fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:a": {}}}},
{manager: hpa, operation: Update, time: "2026-01-03T00:00:00Z", fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:a": {}}}},
{manager: odd, operation: Update}]}}`)
	for field, want := range map[string]string{"a": "hpa, kubectl, solutionctl 2026-01-03", "b": "solutionctl ", "c": " "} {
		names, since := managersOf(Owners(live), []place{{field: "spec"}, {field: field}})
		if since != nil {
			names += " " + since.Format("2006-01-02")
		} else {
			names += " "
		}
		if names != want {
			t.Errorf("field %s: %q, want %q", field, names, want)
		}
	}
}

// TestFieldsOfManagers: whether solutionctl or others own a field, wholly, in part or by a field above it.
func TestFieldsOfManagers(t *testing.T) {
	managed := func(manager, fields string) string {
		return "{manager: " + manager + ", operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: " + fields + "}"
	}
	for name, test := range map[string]struct {
		managers     []string
		path         []string
		ours, others bool
	}{
		"no managers":                {nil, []string{"spec", "a"}, false, false},
		"ours":                       {[]string{managed("solutionctl", `{"f:spec": {"f:a": {}}}`)}, []string{"spec", "a"}, true, false},
		"a field beside it is ours":  {[]string{managed("solutionctl", `{"f:spec": {"f:b": {}}}`)}, []string{"spec", "a"}, false, false},
		"ours by the field above":    {[]string{managed("solutionctl", `{"f:spec": {}}`)}, []string{"spec", "a"}, true, false},
		"a part of it is ours":       {[]string{managed("solutionctl", `{"f:spec": {"f:a": {"f:x": {}}}}`)}, []string{"spec", "a"}, true, false},
		"theirs":                     {[]string{managed("kubectl", `{"f:spec": {"f:a": {}}}`)}, []string{"spec", "a"}, false, true},
		"shared":                     {[]string{managed("kubectl", `{"f:spec": {"f:a": {}}}`), managed("solutionctl", `{"f:spec": {"f:a": {}}}`)}, []string{"spec", "a"}, true, true},
		"a name that begins like us": {[]string{managed("solutionctl-loader", `{"f:spec": {"f:a": {}}}`)}, []string{"spec", "a"}, false, true},
		"fields of a list":           {[]string{managed("kubectl", `["f:spec"]`)}, []string{"spec", "a"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			live := object(t, "{apiVersion: v1, kind: A, metadata: {name: a, managedFields: ["+strings.Join(test.managers, ", ")+"]}}")
			if ours, others := IsOwned(live, test.path...), IsOwnedByOthers(live, test.path...); ours != test.ours || others != test.others {
				t.Errorf("ours %t, others %t, want %t, %t", ours, others, test.ours, test.others)
			}
		})
	}
}

// TestManagersOfElements: elements of lists are known by the key of the server, whatever the types of its values.
func TestManagersOfElements(t *testing.T) {
	live := object(t, `{apiVersion: v1, kind: A, metadata: {name: a, managedFields: [
{manager: hpa, operation: Apply, fieldsType: FieldsV1, fieldsV1: {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {"f:name": {}}}}},
{manager: odd, operation: Apply, fieldsType: FieldsV1, fieldsV1: {"f:ports": {'k:{broken': {"f:name": {}}, 'v:"word"': {}}}}]}}`)
	tcp, udp := map[string]any{"port": int64(80), "protocol": "TCP"}, map[string]any{"port": int64(80), "protocol": "UDP"}
	for _, test := range []struct {
		name string
		at   []place
		want string
	}{
		{"the element", []place{{field: "ports"}, {element: tcp}, {field: "name"}}, "hpa"},
		{"another element", []place{{field: "ports"}, {element: udp}, {field: "name"}}, ""},
		{"another field of it", []place{{field: "ports"}, {element: tcp}, {field: "target"}}, ""},
		{"a word", []place{{field: "ports"}, {element: "word"}}, ""},
		{"the list", []place{{field: "ports"}}, "hpa, odd"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, _ := managersOf(Owners(live), test.at); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestSameApplied(t *testing.T) {
	applied := func(version, fields, rest string) string {
		return "{apiVersion: v1, kind: A, metadata: {name: a, managedFields: [{manager: solutionctl, operation: Apply, apiVersion: " + version +
			", fieldsType: FieldsV1, fieldsV1: " + fields + "}" + rest + "]}}"
	}
	const spec, theirs = `{"f:spec": {"f:a": {}}}`, `, {manager: hpa, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:b": {}}}}`
	const nothing = "{apiVersion: v1, kind: A, metadata: {name: a}}"
	for name, test := range map[string]struct {
		a, b string
		want bool
	}{
		"the same":             {applied("v1", spec, ""), applied("v1", spec, ""), true},
		"fields of others":     {applied("v1", spec, ""), applied("v1", spec, theirs), true},
		"other fields":         {applied("v1", spec, ""), applied("v1", `{"f:spec": {"f:b": {}}}`, ""), false},
		"another API version":  {applied("v1", spec, ""), applied("v2", spec, ""), false},
		"nothing in either":    {nothing, nothing, true},
		"nothing in one":       {applied("v1", spec, ""), nothing, false},
		"nothing in the other": {nothing, applied("v1", spec, ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := SameApplied(object(t, test.a), object(t, test.b)); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// TestIsScaled: a number of replicas of others is left alone. The server records no owner of a zero.
func TestIsScaled(t *testing.T) {
	managed := func(manager, replicas string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, managedFields: [{manager: " + manager +
			`, operation: Apply, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}}}}]}, spec: {replicas: ` + replicas + "}}"
	}
	for name, test := range map[string]struct {
		live string
		want bool
	}{
		"ours":                   {managed("solutionctl", "2"), false},
		"ours, zero":             {managed("solutionctl", "0"), false},
		"an autoscaler's":        {managed("hpa", "2"), true},
		"zero without an owner":  {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 0}}", true},
		"the server's default":   {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 1}}", false},
		"a kind without scaling": {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsScaled(object(t, test.live)); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
