package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/kube/chart/engine"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestYAMLOfChartsIsBounded loads charts whose YAML takes much more memory than they have bytes.
func TestYAMLOfChartsIsBounded(t *testing.T) {
	annotations := func(size, aliases int) string {
		text := "annotations:\n  a: &a " + strings.Repeat("x", size) + "\n"
		for i := range aliases {
			text += fmt.Sprintf("  b%d: *a\n", i)
		}
		return text
	}
	chart := func(name, more string) engine.File {
		_, base, _ := strings.Cut("/"+name, "/charts/")
		return engine.File{Name: name + "Chart.yaml", Data: []byte("name: web" + strings.Trim(base, "/") + "\nversion: 1.0.0\n" + more)}
	}
	var subcharts []engine.File
	for i := range 10 {
		subcharts = append(subcharts, chart(fmt.Sprintf("charts/s%d/", i), annotations(1<<18, 40)))
	}
	const tooMuch, together = "aliases make more than", "the YAML of the chart and its subcharts has more than"
	for name, test := range map[string]struct {
		files []engine.File
		want  string
	}{
		"aliases in Chart.yaml":        {[]engine.File{chart("", annotations(1<<20, 100))}, tooMuch},
		"aliases in requirements.yaml": {[]engine.File{chart("", ""), {Name: "requirements.yaml", Data: []byte(annotations(1<<20, 100))}}, tooMuch},
		"aliases in subcharts":         {append(subcharts, chart("", "")), together},
		"many documents":               {[]engine.File{chart("", ""), {Name: "values.yaml", Data: []byte(strings.Repeat("---\n", 100_000))}}, together},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := engine.Load(test.files); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("err = %.300v, want %q", err, test.want)
			}
		})
	}
}

// TestDependenciesAreBounded enables charts whose dependencies multiply charts or values.
func TestDependenciesAreBounded(t *testing.T) {
	add := func(files []engine.File, place, name, version, dependencies, values string) []engine.File {
		text := "apiVersion: v2\nname: " + name + "\nversion: " + version + "\ndependencies:" + dependencies + "\n"
		return append(files, engine.File{Name: place + "Chart.yaml", Data: []byte(text)}, engine.File{Name: place + "values.yaml", Data: []byte(values)})
	}
	list := func(count int, format string) string {
		var text strings.Builder
		for i := range count {
			fmt.Fprintf(&text, format, i)
		}
		return text.String()
	}
	aliases := func(count int, more string) string {
		return list(count, "\n- {name: s, version: '*', alias: a%d"+more+"}")
	}
	// nested has a chart and subcharts in each other, all with the same dependencies.
	nested := func(depth int, dependencies, values string) (files []engine.File) {
		for i := range depth {
			files = add(files, strings.Repeat("charts/s/", i), "s", "1.0.0", dependencies, "")
		}
		return add(files, strings.Repeat("charts/s/", depth), "s", "1.0.0", "", values)
	}
	var versions []engine.File
	for i := range 800 {
		versions = add(versions, fmt.Sprintf("charts/s%d/", i), "s", fmt.Sprintf("1.0.%d", i), "", "")
	}
	var shared, each []engine.File
	for i := range 1000 {
		shared = add(shared, fmt.Sprintf("charts/s%d/", i), fmt.Sprint("s", i), "1.0.0", "", "")
		each = add(each, fmt.Sprintf("charts/s%d/", i), fmt.Sprint("s", i), "1.0.0", " []", "")
	}
	template := engine.File{Name: "charts/s/templates/x.yaml", Data: []byte(strings.Repeat("x", 5<<20))}
	const multiplied = "dependencies copy more than 10000 files, 64 MiB or 500000 values of subcharts"
	for name, test := range map[string]struct {
		files []engine.File
		want  string
	}{
		"subcharts in each other": {nested(8, aliases(4, ""), ""), multiplied},
		"a large template":        {append(nested(1, aliases(200, ""), ""), template), multiplied},
		"many values":             {nested(1, aliases(20, ""), list(100_000, "k%d: 1\n")), multiplied},
		"imports in each other": {
			nested(5, "\n- {name: s, version: '*', import-values: ["+list(20, "{child: x, parent: x.a%d},")+"]}", "x: {a: 1}"), "dependencies import more than 500000 values",
		},
		"a deep import": {
			nested(1, "\n- {name: s, version: '*', import-values: [{child: x, parent: '"+strings.Repeat(".", 4_900_000)+"'}]}", "x: {a: 1}"), "the parent has more than 1000 keys",
		},
		"many imports": {
			nested(1, "\n- {name: s, version: '*', import-values: ["+list(20_000, "{child: x, parent: a%d},")+"]}", "x: {a: 1}"), "dependencies copy more than 5000000 values",
		},
		"many versions": {
			add(versions, "", "web", "1.0.0", list(800, "\n- {name: s, version: '>=1.0.799, <=1.0.%d || 1.0.799', alias: a%[1]d}"), ""), "more than 200000 versions of subcharts",
		},
		"globals":         {add(shared, "", "web", "1.0.0", "", "global:\n"+list(100_000, "  k%d: 1\n")), "subcharts share more than 500000 global values"},
		"values for each": {add(each, "", "web", "1.0.0", " []", list(100_000, "k%d: 1\n")), "dependencies copy more than 5000000 values"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, test.files, nil)
			if report.CodeOf(err) != report.Invalid || !strings.Contains(err.Error(), test.want) {
				t.Errorf("err = %.300v (%s), want %q", err, report.CodeOf(err), test.want)
			}
		})
	}
	files := append(nested(1, aliases(100, ", import-values: [{child: x, parent: x}]"), "x: {a: {b: 1}}"), engine.File{Name: "charts/s/templates/x.yaml", Data: []byte("{{ .Values.x.a.b }}")})
	if texts, err := render(t, files, nil); err != nil || len(texts) != 100 || texts["s/charts/a99/templates/x.yaml"] != "1" {
		t.Errorf("a chart with a hundred aliases: %d texts, %v", len(texts), err)
	}
}
