package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/kube/chart/engine"
)

// web is a chart with one template.
func web(template string) []engine.File {
	return []engine.File{
		{Name: "Chart.yaml", Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
		{Name: "templates/x.yaml", Data: []byte(template)},
	}
}

func Example() {
	c, err := engine.Load(append(web("replicas: {{ .Values.replicas }} # {{ .Release.Name }}"), engine.File{Name: "values.yaml", Data: []byte("replicas: 1")}))
	if err != nil {
		panic(err)
	}
	given := map[string]any{"replicas": 3}
	enabled, err := c.Enable(given)
	if err != nil {
		panic(err)
	}
	values, err := enabled.Complete(given)
	if err != nil {
		panic(err)
	}
	texts, err := enabled.Render(context.Background(), engine.Input{Values: values, Release: engine.Release{Name: "shop"}})
	fmt.Println(texts, err)
	// Output: map[web/templates/x.yaml:replicas: 3 # shop] <nil>
}

// Hostile templates are refused before they fill the stack or the memory.
func TestHostileTemplates(t *testing.T) {
	for name, test := range map[string]struct{ template, want string }{
		"template in itself":       {`{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`, "web/templates/x.yaml:1:0: templates are nested too deeply"},
		"includes in turns":        {turns(400) + `{{ include "t0" . }}`, "templates are nested too deeply"},
		"template in itself, deep": {`{{ define "a" }}` + nested(4_900, `{{ template "a" (`+parentheses(`include "a" .`)+`) }}`) + `{{ end }}{{ include "a" . }}`, "templates are nested too deeply"},
		"parentheses":              {`{{ define "a" }}{{ ` + parentheses(`include "a" .`) + ` }}{{ end }}{{ include "a" . }}`, "templates are nested too deeply"},
		"tpl in itself":            {`{{ $d := dict "t" "{{ tpl .t . }}" }}{{ tpl $d.t $d }}`, "templates take more than 40 MiB of memory"},
		"blocks":                   {nested(6_000, ""), "web/templates/x.yaml: 12000 actions are too many"},
		"blocks in tpl":            {`{{ tpl (repeat 12000 "{{ if 1 }}") . }}`, "gotpl: 12000 actions are too many"},
		"text":                     {`{{ range 2000 }}{{ "` + strings.Repeat("x", 10_000) + `" }}{{ end }}`, "web/templates/x.yaml: the result is larger than 10 MiB"},
		"text in includes":         {`{{ define "a" }}{{ repeat 9000000 "x" }}{{ end }}{{ include "a" . }}{{ include "a" . }}`, "the result is larger than 10 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, web(test.template), nil)
			if err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 1000 {
				t.Errorf("err = %.1000v, want %q", err, test.want)
			}
		})
	}
}

// turns defines templates of which each includes the next one.
func turns(count int) string {
	var text strings.Builder
	for i := range count {
		fmt.Fprintf(&text, `{{ define "t%d" }}{{ include "t%d" . }}{{ end }}`, i, (i+1)%count)
	}
	return text.String()
}

// parentheses puts an expression into as many as the parser takes.
func parentheses(expression string) string {
	return strings.Repeat("(", 9990) + expression + strings.Repeat(")", 9990)
}

// nested puts a text into blocks in blocks.
func nested(depth int, text string) string {
	return strings.Repeat("{{ if 1 }}", depth) + text + strings.Repeat("{{ end }}", depth)
}

// The text of an include counts once.
func TestTextOfIncludesIsCountedOnce(t *testing.T) {
	texts, err := render(t, web(`{{ define "a" }}{{ repeat 9000000 "x" }}{{ end }}{{ define "b" }}{{ include "a" . | len }}{{ end }}{{ include "b" . }} {{ include "b" . }}`), nil)
	if err != nil || texts["web/templates/x.yaml"] != "9000000 9000000" {
		t.Error(texts, err)
	}
}

// All renderings end: loops, with or without text, and recursion.
func TestRenderEndsWithItsContext(t *testing.T) {
	for name, template := range map[string]string{
		"empty loop":     `{{ range 9000000000000000000 }}{{ end }}`,
		"loop in else":   `{{ range list }}{{ else }}{{ range 9000000000000000000 }}{{ end }}{{ end }}`,
		"loop in blocks": `{{ with 1 }}{{ if 1 }}{{ range 9000000000000000000 }}{{ continue }}{{ end }}{{ end }}{{ end }}`,
		"loop in tpl":    `{{ tpl "{{ range 9000000000000000000 }}{{ end }}" . }}`,
		"recursion":      `{{ define "a" }}{{ if lt . 40 }}{{ include "a" (add1 .) }}{{ include "a" (add1 .) }}{{ end }}{{ end }}{{ include "a" 0 }}`,
	} {
		t.Run(name, func(t *testing.T) {
			c, err := engine.Load(web(template))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, err = c.Render(ctx, engine.Input{})
			if got := fmt.Sprint(err); !strings.HasPrefix(got, "web/templates/x.yaml:1:") || !strings.HasSuffix(got, ": it did not end in time: "+context.DeadlineExceeded.Error()) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

// Rendering changes nothing that others see, and the order of subcharts is always the same.
func TestChartsAreNotChanged(t *testing.T) {
	files := append(web(`{{ $_ := set .Values "a" 1 }}{{ $_ := set .Values.table "b" 1 }}{{ toYaml .Values }}`),
		engine.File{Name: "values.yaml", Data: []byte("table: {c: {d: 1}}")},
		engine.File{Name: "requirements.yaml", Data: []byte("dependencies: [{name: db, alias: two, version: '*', import-values: [x]}]")},
		engine.File{Name: "charts/db/Chart.yaml", Data: []byte("name: db\nversion: 1.0.0")},
		engine.File{Name: "charts/db/values.yaml", Data: []byte("exports: {x: {table: {y: 1}}}")})
	c, err := engine.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]any{"table": map[string]any{"e": []any{map[string]any{}}}}
	var results []map[string]string
	for range 2 {
		enabled, err := c.Enable(given)
		if err != nil {
			t.Fatal(err)
		}
		values, err := enabled.Complete(given)
		if err != nil {
			t.Fatal(err)
		}
		texts, err := enabled.Render(t.Context(), engine.Input{Values: values})
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, texts)
	}
	if !maps.Equal(results[0], results[1]) || !reflect.DeepEqual(given, map[string]any{"table": map[string]any{"e": []any{map[string]any{}}}}) {
		t.Errorf("results %v\ngiven %v", results, given)
	}
	if c.Dependencies[0].Name != "db" || c.Subcharts[0].Name != "db" {
		t.Errorf("the chart is changed: %+v", c)
	}
}

// The order of sprig's keys and values varies.
func TestTablesHaveAnOrder(t *testing.T) {
	texts, err := render(t, web(`{{ $t := dict "c" 1 "a" 2 "b" 3 }}{{ keys $t (dict "a" 1) }} {{ values $t }} {{ keys (dict) }} {{ keys .Values }}`), nil)
	if want := "[a b c a] [2 3 1] [] []"; err != nil || texts["web/templates/x.yaml"] != want {
		t.Errorf("got %v, %v; want %s", texts, err, want)
	}
}

func TestCapabilities(t *testing.T) {
	for _, test := range []struct{ given, version, plain, minor string }{
		{"", "v1.36.0", "v1.36.0", "36"},
		{"1.33", "v1.33", "v1.33", "33"},
		{"v1.30.14+k3s1", "v1.30.14+k3s1", "v1.30.14", "30"},
	} {
		c, err := engine.NewCapabilities(test.given, nil)
		if err != nil {
			t.Fatal(err)
		}
		if v := c.KubeVersion; v.Version != test.version || v.String() != test.plain || v.Major != "1" || v.Minor != test.minor {
			t.Errorf("%q: got %+v", test.given, v)
		}
		if !slices.IsSorted(c.APIVersions) || !c.APIVersions.Has("apps/v1") || c.APIVersions.Has("example.com/v1") {
			t.Errorf("got API versions %q", c.APIVersions)
		}
	}
	if _, err := engine.NewCapabilities("new", nil); err == nil {
		t.Error("a version that is none is accepted")
	}
	if c, err := engine.NewCapabilities("", []string{"example.com/v1"}); err != nil || len(c.APIVersions) != 1 {
		t.Error(c, err)
	}
}

// Helm takes the version of Kubernetes from the client library that it is built with.
func TestDefaultVersionIsThatOfTheClientLibrary(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	library := regexp.MustCompile(`k8s\.io/client-go v0\.(\d+)\.`).FindSubmatch(mod)
	if library == nil {
		t.Fatal(errors.New("go.mod has no client library"))
	}
	c, err := engine.NewCapabilities("", nil)
	if err != nil || c.KubeVersion.Minor != string(library[1]) || c.HelmVersion.KubeClientVersion != "v1."+string(library[1]) {
		t.Errorf("got %+v, %v; the library is that of 1.%s", c, err, library[1])
	}
}

// Tables that are imported into each other end Helm.
func TestImportsIntoThemselves(t *testing.T) {
	texts, err := render(t, append(web("{{ toJson .Values }}"),
		engine.File{Name: "requirements.yaml", Data: []byte("dependencies: [{name: a, version: '*', import-values: [{child: b.c, parent: d}, {child: b, parent: d}]}]")},
		engine.File{Name: "charts/a/Chart.yaml", Data: []byte("name: a\nversion: 1.0.0")},
		engine.File{Name: "charts/a/values.yaml", Data: []byte("b: {c: {e: 1}}")}), nil)
	if want := `{"a":{"b":{"c":{"e":1}},"global":{}},"d":{"c":{"e":1},"e":1}}`; err != nil || texts["web/templates/x.yaml"] != want {
		t.Errorf("got %v, %v; want %s", texts, err, want)
	}
}

func TestSubchartsAreNotCalledAsGlobals(t *testing.T) {
	_, err := render(t, append(web(""), engine.File{Name: "charts/global/Chart.yaml", Data: []byte("name: global\nversion: 1.0.0")}), nil)
	if want := "a subchart of web is called global, as are values of all charts"; err == nil || err.Error() != want {
		t.Errorf("err = %v, want %s", err, want)
	}
}

func TestSatisfies(t *testing.T) {
	for _, test := range []struct {
		version, constraint string
		want                bool
	}{
		{"1.2.3", "^1.0", true},
		{"v1.33.0", ">=1.20-0", true},
		{"2.0.0", "~1", false},
		{"1.0.0-rc.1", ">=1.0.0-0", true},
		{"1.0.0-rc.1", "*", false},
		{"latest", "*", false},
		{"1.0.0", "newest", false},
	} {
		if got := engine.Satisfies(test.version, test.constraint); got != test.want {
			t.Errorf("%s satisfies %s: %v", test.version, test.constraint, got)
		}
	}
}

// FuzzRender looks for templates that end the program, or whose text is larger than allowed.
func FuzzRender(f *testing.F) {
	f.Add(`{{ range $i, $e := list 1 }}{{ else }}{{ end }}{{ include "a" . }}{{ define "a" }}{{ tpl "{{ . }}" . }}{{ end }}`, "a: {b: null}")
	f.Add(`{{ .Files.Lines "" }}{{ block "b" . }}{{ break }}{{ end }}`, "global: 1")
	f.Fuzz(func(t *testing.T, template, values string) {
		c, err := engine.Load(append(web(template), engine.File{Name: "values.yaml", Data: []byte(values)}))
		if err != nil {
			return
		}
		complete, err := c.Complete(nil)
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		texts, err := c.Render(ctx, engine.Input{Values: complete})
		switch {
		case err != nil && (texts != nil || err.Error() == ""):
			t.Errorf("%d texts with the error %q", len(texts), err)
		case err == nil && (len(texts) != 1 || len(texts["web/templates/x.yaml"]) > engine.MaxText):
			t.Errorf("%d texts, of %d bytes", len(texts), len(texts["web/templates/x.yaml"]))
		}
	})
}
