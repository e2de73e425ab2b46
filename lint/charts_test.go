package lint_test

import (
	"bytes"
	"testing"
	"testing/fstest"

	"github.com/solutionctl/solutionctl/build/iso"
)

// The files that Helm extracts from an archive are the deployed ones.
func TestChartOfAnotherFile(t *testing.T) {
	chart := func(values string) []byte {
		return packFiles(map[string]string{"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "web/values.yaml": values})
	}
	project := mutatedProject(t, func(files map[string]string) { files["charts/web.tgz"] = string(chart("a: 1\n")) })
	data := buildExample(t, project, exampleImages)
	if findings := run(t, openISO(t, data)); len(findings) > 0 {
		t.Errorf("findings:\n%s", text(findings))
	}
	image, err := iso.Open(bytes.NewReader(data), int64(len(data)))
	check(t, err)
	files := copyFS(t, image)
	files["charts/web.tgz"] = &fstest.MapFile{Data: chart("a: 2\n")}
	findings := of("SOL108", run(t, openDirectory(t, files)))
	if len(findings) != 1 || !matches(findings[0], "index.json: charts/web:1.0.0 is none of the files in charts/") {
		t.Errorf("findings:\n%s", text(findings))
	}
}

// A file of values that deploying cannot read is reported; an empty document in it is not.
func TestChartValues(t *testing.T) {
	web := packFiles(map[string]string{
		"web/Chart.yaml":        "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"web/templates/web.yml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ required \"name\" .Values.name }}}\n",
	})
	for values, want := range map[string]string{
		"name: a\n":                       "",
		"---\n---\nname: a\n---\n# end\n": "",
		"name: a\n---\nsize: 1\n":         "charts/web.tgz: the chart cannot be rendered: charts/web.yaml: there are 2 documents",
		"- name: a\n":                     "charts/web.tgz: the chart cannot be rendered: charts/web.yaml: ",
	} {
		files := fstest.MapFS{
			"manifest.yaml": {Data: []byte("apiVersion: solutions.metalk8s.scality.com/v1alpha1\nkind: Solution\nmetadata: {name: web, annotations: {solutions.metalk8s.scality.com/display-name: Web}}\n" +
				"spec:\n  version: 1.0.0\n  components:\n    - {name: web, chart: charts/web.tgz, values: charts/web.yaml}\n")},
			"charts/web.tgz":  {Data: web},
			"charts/web.yaml": {Data: []byte(values)},
		}
		findings := of("SOL311", run(t, openDirectory(t, files)))
		if (len(findings) > 0) != (want != "") || want != "" && (len(findings) != 1 || !matches(findings[0], want) || findings[0].Hint != "write one document with the values of the chart") {
			t.Errorf("%q: %s, want %q", values, text(findings), want)
		}
	}
}
