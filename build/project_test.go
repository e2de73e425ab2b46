package build_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	remotename "github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/build/oci"
)

// newProject writes a project with two images of random layers, one of which they share.
func newProject(t *testing.T, layerSize int64) string {
	t.Helper()
	dir := t.TempDir()
	writeImages(t, filepath.Join(dir, "images"), layerSize)
	writeFiles(t, dir, map[string]string{
		"solution.yaml": `apiVersion: solutionctl.io/v1alpha1
kind: SolutionBuild
metadata: {name: demo}
spec:
  version: 1.0.0
  displayName: Demo
  images:
    - {name: demo-operator, source: "oci:images:operator"}
    - {name: demo-ui, tag: 1.0.0, source: "oci:images:ui"}
`,
		"operator/deploy/role.yaml":          "kind: Role\n",
		"operator/deploy/crds/demo_crd.yaml": "kind: CustomResourceDefinition\n",
		"operator/deploy/.swp":               "an editor's",
		"operator/deploy/.env":               "somebody's",
		"charts/demo-1.0.0.tgz":              packedChart(t, "demo", "1.0.0"),
	})
	return dir
}

func writeImages(t *testing.T, dir string, layerSize int64) {
	t.Helper()
	base, err := random.Image(layerSize, 2)
	check(t, err)
	base = mutate.ConfigMediaType(mutate.MediaType(base, types.OCIManifestSchema1), types.OCIConfigJSON)
	shared, err := base.Layers()
	check(t, err)
	images, err := layout.Write(dir, empty.Index)
	check(t, err)
	for _, name := range []string{"operator", "ui"} {
		own, err := random.Layer(layerSize, "application/vnd.oci.image.layer.v1.tar+gzip")
		check(t, err)
		image, err := mutate.AppendLayers(base, own)
		check(t, err)
		image, err = mutate.ConfigFile(image, &v1.ConfigFile{
			OS: "linux", Architecture: "amd64", Created: v1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
			RootFS: rootFS(t, append(shared, own)),
		})
		check(t, err)
		check(t, images.AppendImage(image, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": name})))
	}
}

func rootFS(t *testing.T, layers []v1.Layer) v1.RootFS {
	t.Helper()
	root := v1.RootFS{Type: "layers"}
	for _, layer := range layers {
		id, err := layer.DiffID()
		check(t, err)
		root.DiffIDs = append(root.DiffIDs, id)
	}
	return root
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(content), 0o644))
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// planOf resolves and lays out a project, which is closed when the test ends.
func planOf(t *testing.T, dir string, o build.Options) *build.Plan {
	t.Helper()
	plan, err := tryPlan(t, t.Context(), dir, build.Overrides{}, o)
	check(t, err)
	return plan
}

func tryPlan(t *testing.T, ctx context.Context, dir string, overrides build.Overrides, o build.Options) (*build.Plan, error) {
	t.Helper()
	project, err := build.Load(dir, overrides)
	if err != nil {
		return nil, err
	}
	resolver := oci.NewResolver(oci.Options{BaseDir: dir, Platforms: project.Build.Spec.Platforms})
	t.Cleanup(func() {
		check(t, resolver.Close())
		check(t, project.Close())
	})
	return build.NewPlan(ctx, project, resolver, o)
}

// planFrom plans with a resolver of its own.
func planFrom(t *testing.T, dir string, overrides build.Overrides, from oci.Options) (*build.Plan, error) {
	t.Helper()
	project, err := build.Load(dir, overrides)
	check(t, err)
	from.BaseDir = dir
	resolver := oci.NewResolver(from)
	t.Cleanup(func() {
		check(t, resolver.Close())
		check(t, project.Close())
	})
	return build.NewPlan(t.Context(), project, resolver, build.Options{})
}

// pushImages copies the images of a project's layout into a registry in this process and returns the project's overrides
// that build from there. Wrap may spoil the registry's answers once the images are in it.
func pushImages(t *testing.T, dir string, wrap func(http.Handler) http.Handler) []string {
	t.Helper()
	plain := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	var handler atomic.Value
	handler.Store(http.HandlerFunc(plain.ServeHTTP))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.Load().(http.HandlerFunc)(w, r)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	index, err := layout.ImageIndexFromPath(filepath.Join(dir, "images"))
	check(t, err)
	manifest, err := index.IndexManifest()
	check(t, err)
	var overrides []string
	for _, d := range manifest.Manifests {
		name := d.Annotations["org.opencontainers.image.ref.name"]
		image, err := index.Image(d.Digest)
		check(t, err)
		ref, err := remotename.ParseReference(host + "/" + name + ":1.0.0")
		check(t, err)
		check(t, remote.Write(ref, image))
		overrides = append(overrides, fmt.Sprintf("demo-%s=docker://%s", name, ref))
	}
	if wrap != nil {
		handler.Store(http.HandlerFunc(wrap(plain).ServeHTTP))
	}
	return overrides
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	check(t, err)
	return data
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	return fmt.Sprint(entries)
}
