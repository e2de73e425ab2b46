package build_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/build"
)

// TestRefusals: all files that no archive can hold are found at once, and nothing else.
func TestRefusals(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems have no files of such names")
	}
	dir := t.TempDir()
	write := func(name string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("a: b\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	project := "apiVersion: solutionctl.io/v1alpha1\nkind: SolutionBuild\nmetadata: {name: demo}\nspec:\n  version: 1.0.0\n" +
		"  images: [{name: web, tag: \"1\", source: \"oci:images\"}]\n"
	if err := os.WriteFile(filepath.Join(dir, "solution.yaml"), []byte(project), 0o600); err != nil {
		t.Fatal(err)
	}
	wants := map[string]string{
		"components/a\x01.yaml":                  "control character",
		"components/caf\xe9.yaml":                "UTF-8",
		"components/" + strings.Repeat("x", 250): "250 bytes",
		"components/back\\slash.yaml":            "backslash",
		"components/caf\u00e9.yaml":              "composition",
		"components/1/2/3/4/5/6/7/8":             "8 levels",
		"components/gone.yaml":                   "open project file components/gone.yaml: ",
		"components/outside.yaml":                "open project file",
		"charts/web.tgz":                         "",
	}
	for name := range wants {
		switch filepath.Base(name) {
		case "gone.yaml", "outside.yaml":
			if err := os.MkdirAll(filepath.Join(dir, "components"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("../../"+filepath.Base(name), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		case "8":
			write(name + "/a.yaml")
		default:
			write(name)
		}
	}
	write("components/cafe\u0301.yaml")
	write("components/fine.yaml")
	loaded, err := build.Load(dir, build.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close() //nolint:errcheck // a directory that was only read
	found := loaded.Refusals(t.Context())
	if len(found) != len(wants) {
		t.Errorf("%d refusals, want %d: %v", len(found), len(wants), found)
	}
	for name, message := range wants {
		is := func(r build.Refusal) bool { return r.Path == name && strings.Contains(r.Err.Error(), message) }
		if name == "charts/web.tgz" { // all charts are read together
			is = func(r build.Refusal) bool { return r.Path == "" && strings.Contains(r.Err.Error(), name) }
		}
		if !slices.ContainsFunc(found, is) {
			t.Errorf("%q is not refused: %v", name, found)
		}
	}
}

// TestRefusesVolumeID: a name and a version that are too long together for a volume are found before a build.
func TestRefusesVolumeID(t *testing.T) {
	dir := t.TempDir()
	project := "apiVersion: solutionctl.io/v1alpha1\nkind: SolutionBuild\nmetadata: {name: a-blackbox-exporter-of-prometheus}\nspec:\n  version: 1.0.0\n" +
		"  images: [{name: web, tag: \"1\", source: \"oci:images\"}]\n"
	if err := os.WriteFile(filepath.Join(dir, "solution.yaml"), []byte(project), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := build.Load(dir, build.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close() //nolint:errcheck // it was only read
	if found := loaded.Refusals(t.Context()); len(found) != 1 || !strings.Contains(found[0].Err.Error(), "volume id") {
		t.Errorf("got %v", found)
	}
}
