package build_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/schema"
)

// tool runs a program that others wrote. Where it is not installed the test is skipped, and fails in CI.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed", name)
		}
		t.Skipf("%s is not installed", name)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}

func builtArchive(t *testing.T) (path string, a *archive.Archive) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "demo.iso")
	_, err := planOf(t, newProject(t, 64<<10), build.Options{}).Write(t.Context(), path, build.WriteOptions{})
	check(t, err)
	data := readFile(t, path)
	a, err = archive.Open(bytes.NewReader(data), int64(len(data)))
	check(t, err)
	return path, a
}

// MetalK8s finds the manifest like this, before it mounts anything.
func TestManifestWithIsoinfo(t *testing.T) {
	path, a := builtArchive(t)
	want, err := archive.ReadDocument(a, archive.ManifestFile)
	check(t, err)
	if got := tool(t, "isoinfo", "-x", "/MANIFEST.YAML;1", "-i", path); got != string(want) {
		t.Errorf("isoinfo prints %q, want %q", got, want)
	}
}

// The tree, as a mount or an extraction shows it, is an OCI image layout, and its images/ are skopeo directories.
func TestImagesWithSkopeo(t *testing.T) {
	path, a := builtArchive(t)
	tree := t.TempDir()
	tool(t, "bsdtar", "-xf", path, "-C", tree)
	for _, image := range a.Images.Images() {
		for _, source := range []string{
			fmt.Sprintf("oci:%s:%s", tree, image.Ref),
			"dir:" + filepath.Join(tree, "images", image.Ref.Name, image.Ref.Tag),
		} {
			to := t.TempDir()
			tool(t, "skopeo", "copy", "--quiet", "--insecure-policy", source, "dir:"+to)
			for _, blob := range image.Blobs {
				sum := sha256.Sum256(readFile(t, filepath.Join(to, blob.Digest.Hex)))
				if got := hex.EncodeToString(sum[:]); got != blob.Digest.Hex {
					t.Errorf("%s: %s came out as %s", source, blob.Digest, got)
				}
			}
		}
	}
}

// The payload holds every file that is not part of an image, under its path.
func TestPayload(t *testing.T) {
	_, a := builtArchive(t)
	payload := a.Images.Image(schema.ImageRef{Name: build.PayloadImage, Tag: "1.0.0"})
	if payload == nil {
		t.Fatal("the archive has no payload")
	}
	for _, path := range []string{"manifest.yaml", "operator/deploy/role.yaml", "charts/demo-1.0.0.tgz"} {
		if !bytes.Contains(payload.Manifests[0].Data, []byte(`"org.opencontainers.image.title":"`+path+`"`)) {
			t.Errorf("the payload does not name %s", path)
		}
	}
}
