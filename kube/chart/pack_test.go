package chart_test

import (
	"bytes"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/kube/chart/engine"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestPack checks which files of a directory are in the package, and that the time of a file makes no difference.
func TestPack(t *testing.T) {
	dir := func(at time.Time) fstest.MapFS {
		files := fstest.MapFS{}
		for name, text := range map[string]string{
			"Chart.yaml":                "apiVersion: v2\nname: web\nversion: 1.2.0\n",
			".helmignore":               "# not these\n*.bak\nci/\n/docs/*.md\n!keep.bak\n",
			"values.yaml":               "replicas: 1\n",
			"values.bak":                "old",
			"keep.bak":                  "kept",
			"ci/test.yaml":              "a: b",
			"docs/a.md":                 "left out",
			"docs/deep/a.md":            "stays",
			"templates/.hidden":         "left out by default",
			"templates/web.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n",
			"charts/db/Chart.yaml":      "apiVersion: v2\nname: db\nversion: 0.1.0\n",
			"charts/db/templates/d.txt": "stays",
		} {
			files[name] = &fstest.MapFile{Data: []byte(text), ModTime: at}
		}
		return files
	}
	packed, loaded, err := chart.Pack(dir(time.Unix(1, 0)))
	if err != nil {
		t.Fatal(err)
	}
	if loaded.Name != "web" || loaded.Version != "1.2.0" {
		t.Errorf("got chart %s %s", loaded.Name, loaded.Version)
	}
	files, err := engine.Unpack(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	want := []string{
		".helmignore", "Chart.yaml", "charts/db/Chart.yaml", "charts/db/templates/d.txt", "docs/deep/a.md", "keep.bak", "templates/web.yaml", "values.yaml",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	again, _, err := chart.Pack(dir(time.Unix(2, 0)))
	if err != nil || !bytes.Equal(packed, again) {
		t.Errorf("the second package differs, error %v", err)
	}
}

func TestPackRefuses(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{
		"no name":       {"Chart.yaml": {Data: []byte("version: 1.0.0")}},
		"bad pattern":   {"Chart.yaml": {Data: []byte("name: web\nversion: 1.0.0")}, ".helmignore": {Data: []byte("a/**/b")}},
		"name of a way": {"Chart.yaml": {Data: []byte("apiVersion: v2\nname: ../web\nversion: 1.0.0")}},
		"no subchart": {"Chart.yaml": {Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n" +
			"dependencies: [{name: db, version: 1.x, repository: 'https://charts.example'}]")}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := chart.Pack(files); report.CodeOf(err) != report.Invalid {
				t.Errorf("got %v, want an error that says invalid", err)
			}
		})
	}
}
