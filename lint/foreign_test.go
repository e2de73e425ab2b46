package lint_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/lint"
)

// needs skips the test when a program is not there; on the build server it fails.
func needs(t *testing.T, program, pkg string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("needs %s: apt-get install %s", program, pkg)
	}
	t.Skipf("needs %s: apt-get install %s", program, pkg)
}

// dockerImage is an image as skopeo copy --format v2s2 dir: writes it.
func dockerImage(tb testing.TB, files fstest.MapFS, name, tag string) {
	tb.Helper()
	b := blobs{tb, fstest.MapFS{}}
	const docker = "application/vnd.docker."
	layer := b.add(docker+"image.rootfs.diff.tar.gzip", packLayer(tb, name, "amd64", executable("usr/local/bin/"+name), executable("usr/local/bin/entrypoint")))
	config := b.add(docker+"container.image.v1+json", map[string]any{
		"os": "linux", "architecture": "amd64",
		"config": map[string]any{ // as the Operator SDK made images
			"Entrypoint": []string{"/usr/local/bin/entrypoint"}, "Env": []string{"OPERATOR=/usr/local/bin/" + name},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []any{layer["digest"]}},
	})
	manifest := b.add(docker+"distribution.manifest.v2+json", map[string]any{
		"schemaVersion": 2, "mediaType": docker + "distribution.manifest.v2+json", "config": config, "layers": []any{layer},
	})
	dir := "images/" + name + "/" + tag + "/"
	for path, file := range b.files {
		files[dir+filepath.Base(path)] = file
	}
	_, hash, _ := strings.Cut(manifest["digest"].(string), ":")
	files[dir+"manifest.json"] = files[dir+hash]
	delete(files, dir+hash)
	files[dir+"version"] = &fstest.MapFile{Data: []byte("Directory Transport Version: 1.1\n")}
}

// TestForeignArchive judges an archive as the old MetalK8s example makes it: with mkisofs, images in skopeo's format
// only, v1beta1 definitions, samples, and objects that MetalK8s never applies.
func TestForeignArchive(t *testing.T) {
	needs(t, "genisoimage", "genisoimage")
	archive, err := txtar.ParseFile(filepath.Join(examples, "foreign.txtar"))
	check(t, err)
	files := fstest.MapFS{}
	var want string
	for _, file := range archive.Files {
		if file.Name == "findings" {
			want = string(file.Data)
			continue
		}
		files[file.Name] = &fstest.MapFile{Data: file.Data, Mode: 0o644}
	}
	dockerImage(t, files, "example-solution-operator", "0.1.0-dev")
	dockerImage(t, files, "example-solution-ui", "0.1.0-dev")
	store, err := oci.Open(files)
	check(t, err)
	config, err := oci.RegistryConfig(store.Images(), oci.Legacy)
	check(t, err)
	files["registry-config.inc.j2"] = &fstest.MapFile{Data: config, Mode: 0o644}
	root, image := t.TempDir(), filepath.Join(t.TempDir(), "foreign.iso")
	check(t, os.CopyFS(root, files))
	command := exec.CommandContext(t.Context(), "genisoimage", "-output", image, "-quiet", "-rock", "-joliet", "-joliet-long", "-full-iso9660-filenames",
		"-volid", "Example Solution 0.1.0-dev", "-iso-level", "3", "-gid", "0", "-uid", "0", "-input-charset", "utf-8", "-output-charset", "utf-8", root)
	if out, failure := command.CombinedOutput(); failure != nil {
		t.Fatalf("genisoimage: %v: %s", failure, out)
	}
	data, err := os.ReadFile(image)
	check(t, err)
	result, err := lint.Run(t.Context(), openISO(t, data).Target, lint.Options{Deep: true})
	check(t, err)
	lines := map[string]bool{}
	for _, f := range result.Findings {
		lines[fmt.Sprintf("%s: %s: %s [%s]\n", f.Position(), f.Severity, f.Message, f.Rule)] = true
	}
	if got := strings.Join(slices.Sorted(maps.Keys(lines)), ""); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
