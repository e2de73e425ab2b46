package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUpToDate checks that the definitions in the archives are generated from the present Go types.
func TestUpToDate(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles controller-gen")
	}
	const root = "../.."
	out := t.TempDir()
	if err := run(t.Context(), root, out); err != nil {
		t.Fatal(err)
	}
	for _, r := range releases {
		dir := filepath.Join(r.dir, "archive/operator/deploy/crds")
		if diff := cmp.Diff(files(t, filepath.Join(root, dir)), files(t, filepath.Join(out, dir))); diff != "" {
			t.Errorf("%s is out of date, run go generate ./...: (-is +should be):\n%s", dir, diff)
		}
	}
}

// files returns the definitions in a directory by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*_crd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found[filepath.Base(name)] = string(data)
	}
	return found
}
