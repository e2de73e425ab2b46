package chart_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/kube/chart"
)

// described returns one line for each value.
func described(tb testing.TB, files map[string]string, preset map[string]any) string {
	tb.Helper()
	fields, err := load(tb, pack(files)).Describe(preset)
	if err != nil {
		tb.Fatal(err)
	}
	var lines []string
	for _, f := range fields {
		line := f.Path + " " + f.Type
		if f.Default != "" {
			line += " = " + f.Default
		}
		for text, true := range map[string]bool{" required": f.Required, " secret": f.Secret} {
			if true {
				line += text
			}
		}
		if len(f.Choices) > 0 {
			line += fmt.Sprint(" ", f.Choices)
		}
		if f.Description != "" {
			line += ": " + f.Description
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestDescribe reads values of charts as their authors document them.
func TestDescribe(t *testing.T) {
	const chartFile = "apiVersion: v2\nname: web\nversion: 1.2.0\n"
	for name, test := range map[string]struct {
		values, schema, want string
		preset               map[string]any
	}{
		"no values": {want: "\n"},
		"plain comments": {
			values: "# How many pods run.\n# More than one needs shared storage.\nreplicas: 2\n\n# A section\n\nimage:\n  tag: '1.0' # the version\n  pullPolicy: ''\nports: [80, 443]\nannotations: {}\nnothing:\n",
			want: "annotations object = {}\nimage.pullPolicy string = \"\"\nimage.tag string = \"1.0\": the version\nnothing any\n" +
				"ports array = [80,443]\nreplicas integer = 2: How many pods run.\n",
		},
		"helm-docs": {
			values: "# @section -- Storage\n# -- (string) Size of the volume, as Kubernetes writes it\n# @default -- 10Gi\nsize: 10Gi\n",
			want:   "size string = \"10Gi\": (string) Size of the volume, as Kubernetes writes it\n",
		},
		"Bitnami": {
			values: "## @section Auth\n## @param auth.username Name of the user\n## @param auth.password [string] Password of the user\n## ref: https://example.com\nauth:\n  username: app\n  password: \"\"\n",
			want:   "auth.password string = \"\" secret: Password of the user\nauth.username string = \"app\": Name of the user\n",
		},
		"a dot in a key": {
			values: "labels:\n  # Of the node.\n  kubernetes.io/os: linux\n",
			want:   `labels.kubernetes\.io/os string = "linux": Of the node.` + "\n",
		},
		"a schema": {
			values: "replicas: 2\nhost: ''\nmode: fast\nnames: []\n",
			schema: `{"required": ["host", "mode"], "definitions": {"port": {"type": "integer", "description": "A port. Below 1024 needs a right.", "maximum": 65535}}, "properties": {
				"replicas": {"type": ["integer", "null"]}, "host": {"type": "string", "description": "Where users reach it"},
				"mode": {"enum": ["fast", "safe"]}, "names": {"type": "array", "items": {"type": "string"}},
				"service": {"properties": {"port": {"$ref": "#/definitions/port"}, "key": {"type": "string", "writeOnly": true}}}}}`,
			want: "host string = \"\" required: Where users reach it\nmode string = \"fast\" [fast safe]\nnames list of string = []\nreplicas integer = 2\n" +
				"service.key string secret\nservice.port integer: A port.\n",
		},
		"a recursive schema": {
			schema: `{"properties": {"a": {"$ref": "#"}, "b": {"type": "string"}}}`,
			want:   "a.a.a.a.a any\na.a.a.a.b string\na.a.a.b string\na.a.b string\na.b string\nb string\n",
		},
		"values of the archive": {
			values: "replicas: 2\nhost: ''\n", preset: map[string]any{"replicas": 3.0, "host": nil, "more": map[string]any{"a": true}},
			want: "more.a boolean = true\nreplicas integer = 3\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"web/Chart.yaml": chartFile, "web/values.yaml": test.values}
			if test.schema != "" {
				files["web/values.schema.json"] = test.schema
			}
			if diff := cmp.Diff(test.want, described(t, files, test.preset)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDescribeSubcharts lists the values of enabled subcharts below their names, and globals once.
func TestDescribeSubcharts(t *testing.T) {
	files := map[string]string{
		"web/Chart.yaml":              "apiVersion: v2\nname: web\nversion: 1.2.0\ndependencies:\n- {name: db, version: 1.0.0, alias: store, repository: ''}\n- {name: cache, version: 1.0.0, condition: cache.enabled, repository: ''}\n",
		"web/values.yaml":             "global: {domain: example.com}\nstore:\n  # Of the vendor.\n  size: 5Gi\ncache: {enabled: false}\n",
		"web/charts/db/Chart.yaml":    "apiVersion: v2\nname: db\nversion: 1.0.0\n",
		"web/charts/db/values.yaml":   "# Size of the volume.\nsize: 1Gi\n# Of the administrator.\npassword: ''\nglobal: {domain: ''}\n",
		"web/charts/cache/Chart.yaml": "apiVersion: v2\nname: cache\nversion: 1.0.0\n", "web/charts/cache/values.yaml": "memory: 1Gi\n",
	}
	want := "cache.enabled boolean = false\nglobal.domain string = \"example.com\"\nstore.password string = \"\" secret: Of the administrator.\nstore.size string = \"5Gi\": Of the vendor.\n"
	if diff := cmp.Diff(want, described(t, files, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDescribeHostile refuses charts that would list without an end.
func TestDescribeHostile(t *testing.T) {
	const chartFile = "apiVersion: v2\nname: web\nversion: 1.2.0\n"
	recursive := map[string]any{}
	for i := range 300 {
		recursive[fmt.Sprint("field", i)] = map[string]any{"$ref": "#"}
	}
	encode := func(schema map[string]any) string {
		data, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	refers := func(rules map[string]any) string {
		properties := map[string]any{}
		for i := range 19_000 {
			properties[fmt.Sprint("field", i)] = map[string]any{"$ref": "#/definitions/a"}
		}
		return encode(map[string]any{"properties": properties, "definitions": map[string]any{"a": rules}})
	}
	needs := make([]string, 150_000)
	for i := range needs {
		needs[i] = fmt.Sprint(i)
	}
	long, choices := strings.Repeat("x", 500_000), make([]string, 100)
	for name, test := range map[string]struct{ values, schema, want string }{
		"one long pattern for all": {schema: refers(map[string]any{"pattern": long[:50_000]}), want: "more than 8 MiB"},
		"one long default for all": {schema: refers(map[string]any{"default": long}), want: "more than 8 MiB"},
		"the same choices for all": {schema: refers(map[string]any{"type": "string", "enum": choices}), want: "more than 8 MiB"},
		"one long title for all":   {schema: refers(map[string]any{"title": long}), want: "more than 8 MiB"},
		"many choices":             {schema: refers(map[string]any{"type": "string", "enum": make([]string, 10_000)})},
		"a long key":               {values: "? " + long + "\n: {a: 1, b: null}\n", want: "has more than 1000 bytes"},
		"recursion":                {schema: encode(map[string]any{"properties": recursive}), want: "there are more than 20000"},
		"a loop":                   {schema: `{"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}}}`},
		"long required lists":      {schema: refers(map[string]any{"required": needs, "properties": map[string]any{"a": true}})},
		"a long reference":         {schema: refers(map[string]any{"$ref": "#/" + strings.Repeat("a/", 400_000)})},
		"nothing there":            {schema: `{"$ref": "#/definitions/a/b"}`},
		"another kind":             {schema: `{"properties": [1], "required": "a", "type": 3, "enum": {}, "items": 1}`},
		"deep":                     {values: strings.Repeat("{a: ", 90) + "b" + strings.Repeat("}", 90)},
		"no schema":                {schema: "{", want: "values.schema.json: "},
		"a deep schema":            {schema: strings.Repeat(`{"properties": {"a": `, 500) + "{}" + strings.Repeat("}}", 500), want: "nested deeper than 128 levels"},
		"a long comment":           {values: "# " + strings.Repeat("long ", 100_000) + "\na: 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"web/Chart.yaml": chartFile, "web/values.yaml": test.values}
			if test.schema != "" {
				files["web/values.schema.json"] = test.schema
			}
			fields, err := load(t, pack(files)).Describe(nil)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%d fields, %v", len(fields), err)
			}
			for _, f := range fields {
				if len(f.Description)+len(f.Details) > 2*2000+10 {
					t.Errorf("%s is described with %d bytes", f.Path, len(f.Description))
				}
			}
		})
	}
}

// TestPaths: paths of values lead back to them.
func TestPaths(t *testing.T) {
	values := map[string]any{"a": 1, "b": map[string]any{"c.d": "x", `e\`: nil, "f": map[string]any{}}, "g": []any{1}}
	want := []string{"a", `b.c\.d`, `b.e\\`, "b.f", "g"}
	if diff := cmp.Diff(want, chart.Paths(values)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, path := range want {
		if _, set := chart.ValueAt(values, path); !set {
			t.Errorf("%s leads nowhere", path)
		}
	}
	for _, path := range []string{"", "a.b", "b.x", "c", `b.c.d`} {
		if value, set := chart.ValueAt(values, path); set {
			t.Errorf("%s leads to %v", path, value)
		}
	}
}
