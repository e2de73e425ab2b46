package chart_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/kube/chart"
)

// TestSetValue: one value changes, and nothing else, whatever was in its place.
func TestSetValue(t *testing.T) {
	for name, test := range map[string]struct {
		before map[string]any
		path   string
		value  any
		want   map[string]any
	}{
		"nothing before":      {nil, "a.b", "x", map[string]any{"a": map[string]any{"b": "x"}}},
		"beside another":      {map[string]any{"a": map[string]any{"c": 1.0}}, "a.b", "x", map[string]any{"a": map[string]any{"b": "x", "c": 1.0}}},
		"over a text":         {map[string]any{"a": "text"}, "a.b", "x", map[string]any{"a": map[string]any{"b": "x"}}},
		"a table for another": {map[string]any{"a": map[string]any{"b": map[string]any{"old": 1.0}}}, "a.b", map[string]any{"new": 2.0}, map[string]any{"a": map[string]any{"b": map[string]any{"new": 2.0}}}},
		"a dot in a key":      {nil, `kubernetes\.io/os`, "linux", map[string]any{"kubernetes.io/os": "linux"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := maps.Clone(test.before)
			got := chart.SetValue(test.before, test.path, test.value)
			if diff := cmp.Diff(got, test.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
			if diff := cmp.Diff(test.before, before); diff != "" {
				t.Errorf("the argument has changed (-got +want)\n%s", diff)
			}
		})
	}
}

// TestRemoveValue removes tables that are empty then, and no others.
func TestRemoveValue(t *testing.T) {
	before := map[string]any{"a": map[string]any{"b": map[string]any{"c": 1.0}}, "d": map[string]any{"e": 1.0, "f": 2.0}, "g": map[string]any{}}
	for path, want := range map[string]map[string]any{
		"a.b.c": {"d": map[string]any{"e": 1.0, "f": 2.0}, "g": map[string]any{}},
		"d.e":   {"a": before["a"], "d": map[string]any{"f": 2.0}, "g": map[string]any{}},
		"d.x.y": before,
		"d.e.f": before,
		"g":     {"a": before["a"], "d": before["d"]},
	} {
		if diff := cmp.Diff(chart.RemoveValue(before, path), want); diff != "" {
			t.Errorf("%s (-got +want)\n%s", path, diff)
		}
	}
}

// TestCheckValues: what a schema does not allow has the path of the value, also below a subchart, and never the value.
func TestCheckValues(t *testing.T) {
	c := load(t, pack(map[string]string{
		"web/Chart.yaml":                   "apiVersion: v2\nname: web\nversion: 1.2.0\ndependencies:\n- {name: db, version: 1.0.0, alias: store, repository: ''}\n",
		"web/values.yaml":                  "replicas: 2\nhost: ''\n",
		"web/values.schema.json":           `{"properties": {"replicas": {"maximum": 9}, "host": {"pattern": "^[a-z.]+$"}, "tls": {"required": ["key"], "additionalProperties": false, "properties": {"key": {}}}}}`,
		"web/charts/db/Chart.yaml":         "apiVersion: v2\nname: db\nversion: 1.0.0\n",
		"web/charts/db/values.schema.json": `{"properties": {"auth": {"properties": {"pin": {"type": "string"}}}}}`,
	}))
	for name, test := range map[string]struct {
		given map[string]any
		want  []chart.ValueProblem
	}{
		"valid":       {map[string]any{"host": "shop"}, nil},
		"the default": {nil, []chart.ValueProblem{{"host", "does not match pattern ^[a-z.]+$"}}},
		"several": {map[string]any{"host": "shop", "replicas": 10.0, "tls": map[string]any{"kye": "x"}}, []chart.ValueProblem{
			{"replicas", "is more than 9"}, {"tls.key", "is required"}, {"tls.kye", "is not among the values of the chart"},
		}},
		"a subchart": {map[string]any{"host": "shop", "store": map[string]any{"auth": map[string]any{"pin": 1234.0}}}, []chart.ValueProblem{
			{"store.auth.pin", "got number, want string"},
		}},
	} {
		got, err := c.CheckValues(test.given)
		if diff := cmp.Diff(got, test.want); diff != "" || err != nil {
			t.Errorf("%s: %v (-got +want)\n%s", name, err, diff)
		}
	}
}
