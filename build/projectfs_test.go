package build_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/oci"
)

// TestPreview compares the preview with the built archive.
func TestPreview(t *testing.T) {
	dir := newProject(t, 64)
	project, err := build.Load(dir, build.Overrides{})
	check(t, err)
	defer project.Close() //nolint:errcheck // a directory that was only read
	preview, err := project.Preview()
	check(t, err)
	files := []string{"charts/demo-1.0.0.tgz", "manifest.yaml", "operator/deploy/crds/demo_crd.yaml", "operator/deploy/role.yaml"}
	check(t, fstest.TestFS(preview, files...))
	a, err := archive.FromFS(preview)
	check(t, err)
	if got := a.Solution.Spec.Images; len(got) != 2 || got[0].String() != "demo-operator:1.0.0" || a.Solution.ID() != preview.Solution.ID() {
		t.Errorf("the manifest names %s and images %v", a.Solution.ID(), got)
	}
	var sources []string
	check(t, fs.WalkDir(preview, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			sources = append(sources, preview.Source(name))
		}
		return err
	}))
	want := "charts/demo-1.0.0.tgz solution.yaml operator/deploy/crds/demo_crd.yaml operator/deploy/role.yaml"
	if got := strings.Join(sources, " "); got != want {
		t.Errorf("the files come from %s, want %s", got, want)
	}

	resolver := oci.NewResolver(oci.Options{BaseDir: dir})
	defer resolver.Close() //nolint:errcheck // files that were only read
	project.Build.Spec.Images[1].Source = "docker://registry.invalid/demo-ui:1.0.0"
	images := project.LocalImages(t.Context(), resolver, false)
	if got := images[a.Solution.Spec.Images[0]]; got.Image == nil || got.Unread != "" || got.Err != nil {
		t.Errorf("got %v for the operator's image", got)
	}
	if got := images[a.Solution.Spec.Images[1]]; got.Image != nil || got.Unread != "it is in a registry" {
		t.Errorf("got %v for an image in a registry", got)
	}
}
