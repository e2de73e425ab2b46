package oci_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestSaved checks which images are found in a layout by name.
func TestSaved(t *testing.T) {
	dir := t.TempDir()
	const index = `{"schemaVersion": 2, "manifests": [
		{"mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 2, "digest": "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		 "annotations": {"org.opencontainers.image.ref.name": "nginx:1.29"}},
		{"mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 2, "digest": "sha256:1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		 "annotations": {"org.opencontainers.image.ref.name": "1.0", "io.containerd.image.name": "quay.io/acme/web:1.0"}},
		{"mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 2, "digest": "sha256:2123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		 "annotations": {"org.opencontainers.image.ref.name": "1.0"}}]}`
	for name, text := range map[string]string{"oci-layout": `{"imageLayoutVersion": "1.0.0"}`, "index.json": index} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	resolver := oci.NewResolver(oci.Options{BaseDir: dir})
	defer resolver.Close() //nolint:errcheck // it was only read
	want := []oci.Saved{
		{Origin: "docker.io/library/nginx:1.29", Source: "oci:.:nginx:1.29"},
		{Origin: "quay.io/acme/web:1.0", Source: "oci:.:quay.io/acme/web:1.0"},
	}
	for _, name := range []string{".", "oci:."} {
		got, err := resolver.Saved(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := resolver.Saved(t.Context(), "nowhere"); report.CodeOf(err) != report.NotFound {
		t.Errorf("got %v", err)
	}
}

// TestSavedNowhere checks that a name without images leads to a sentence and a command.
func TestSavedNowhere(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"manual.pdf": "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + strings.Repeat("text ", 400), "empty.tar": "", "broken/index.json": "{"} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600), os.MkdirAll(filepath.Join(dir, "empty"), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	resolver := oci.NewResolver(oci.Options{BaseDir: dir})
	defer resolver.Close() //nolint:errcheck // it was only read
	for _, name := range []string{"manual.pdf", "docker-archive:manual.pdf", "empty.tar", "empty", "oci:empty", "oci:nowhere", "oci:broken", "oci-archive:nowhere.tar"} {
		_, err := resolver.Saved(t.Context(), name)
		if err == nil || len(report.Hints(err)) == 0 {
			t.Errorf("%s: got %v with the hints %q", name, err, report.Hints(err))
		}
	}
}
