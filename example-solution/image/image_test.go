package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// release123 is the example with another version.
func release123(t *testing.T) release {
	t.Helper()
	r, err := readRelease("..")
	if err != nil {
		t.Fatal(err)
	}
	r.version = "1.2.3"
	return r
}

// executables returns stand-ins for compiled programs.
func executables(t *testing.T) []executable {
	t.Helper()
	dir := t.TempDir()
	var all []executable
	for _, p := range release123(t).programs {
		for _, architecture := range architectures {
			file := filepath.Join(dir, p.name+"-"+architecture)
			content := bytes.Repeat([]byte(file[len(dir):]), 1000)
			if err := os.WriteFile(file, content, 0o600); err != nil {
				t.Fatal(err)
			}
			all = append(all, executable{p, architecture, file})
		}
	}
	return all
}

// tree returns the content of every file below a directory.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		files[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// readImage reads one image back from a layout, by reference and architecture.
func readImage(t *testing.T, dir, ref, architecture string) v1.Image {
	t.Helper()
	root, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifest.Manifests {
		if m.Annotations[annotationRefName] != ref {
			continue
		}
		index, err := root.ImageIndex(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if err = validate.Index(index); err != nil {
			t.Errorf("%s: %v", ref, err)
		}
		platforms, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range platforms.Manifests {
			if p.Platform.String() == "linux/"+architecture {
				image, err := index.Image(p.Digest)
				if err != nil {
					t.Fatal(err)
				}
				return image
			}
		}
	}
	t.Fatalf("%s for linux/%s is not in %s", ref, architecture, dir)
	return nil
}

func TestLayoutContent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "images")
	all := executables(t)
	if err := writeLayout(dir, release123(t), all, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		image := readImage(t, dir, e.ref, e.architecture)
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		want := v1.Config{
			User:       "65532:65532",
			Entrypoint: []string{"/usr/local/bin/" + e.name},
			Env:        []string{"PATH=/usr/local/bin"},
			Labels:     map[string]string{labelTitle: e.name, labelVersion: "1.2.3"},
		}
		if diff := cmp.Diff(config.Config, want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", e.file, diff)
		}
		if config.Architecture != e.architecture || config.OS != "linux" {
			t.Errorf("got %s/%s, want linux/%s", config.OS, config.Architecture, e.architecture)
		}
		content, err := os.ReadFile(e.file)
		if err != nil {
			t.Fatal(err)
		}
		wantFiles := []string{
			"usr/ 755 0 0 ", "usr/local/ 755 0 0 ", "usr/local/bin/ 755 0 0 ",
			"usr/local/bin/" + e.name + " 755 0 0 " + string(content),
		}
		if diff := cmp.Diff(layerFiles(t, image), wantFiles); diff != "" {
			t.Errorf("%s (-got +want):\n%s", e.file, diff)
		}
	}
}

// layerFiles lists the only layer: name, mode, owner, group, content.
func layerFiles(t *testing.T, image v1.Image) []string {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("got %d layers, %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	var files []string
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		} else if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(created) {
			t.Errorf("%s: got time %s, want %s", h.Name, h.ModTime, created)
		}
		files = append(files, fmt.Sprintf("%s %o %d %d %s", h.Name, h.Mode, h.Uid, h.Gid, data))
	}
}

func TestLayoutIsReproducible(t *testing.T) {
	all := executables(t)
	first, second := filepath.Join(t.TempDir(), "images"), filepath.Join(t.TempDir(), "elsewhere")
	for _, dir := range []string{first, second, second} { // the last replaces the existing one
		if err := writeLayout(dir, release123(t), all, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(tree(t, first), tree(t, second)); diff != "" {
		t.Errorf("two layouts of the same executables differ:\n%s", diff)
	}
}

// TestLayoutReplacesOnlyLayouts: a mistyped -out must not cost anyone a directory.
func TestLayoutReplacesOnlyLayouts(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := writeLayout(dir, release123(t), executables(t), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "is not an image layout") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

// TestReleases checks that each release is built of its own files. The executables have the names of their images, by which the operator's
// Deployment starts them.
func TestReleases(t *testing.T) {
	component := func(name string) program { return program{name, "example-solution-" + name} }
	common := []program{component("operator"), component("server"), component("ui")}
	for dir, want := range map[string]release{
		"..":                {"1.0.0", common, []string{"websites_v1alpha1"}},
		"../releases/1.1.0": {"1.1.0", append(slices.Clone(common), component("webhook")), []string{"websites_v1beta1"}},
		"../releases/2.0.0": {"2.0.0", common, []string{"banners_v1beta1", "websites_v1beta1"}},
	} {
		got, err := readRelease(dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, want, cmp.AllowUnexported(release{}, program{})); diff != "" {
			t.Errorf("%s (-got +want):\n%s", dir, diff)
		}
	}
}

// TestEveryRelease runs the tests of the components as they are in the later releases.
func TestEveryRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the components twice")
	}
	for _, dir := range []string{"../releases/1.1.0", "../releases/2.0.0"} {
		r, err := readRelease(dir)
		if err != nil {
			t.Fatal(err)
		}
		test := exec.CommandContext(t.Context(), "go", "test", "-tags="+strings.Join(r.tags, ","), "./operator/...", "./ui")
		test.Dir = ".."
		if output, err := test.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", r.version, err, output)
		}
	}
}

func TestReadReleaseRefuses(t *testing.T) {
	const crd = "operator/deploy/crds/a_crd.yaml"
	const solution = "spec: {version: 1.0.0, operator: {path: operator}}"
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no file":        {nil, "solution.yaml"},
		"not YAML":       {map[string]string{"solution.yaml": "["}, "solution.yaml"},
		"no version":     {map[string]string{"solution.yaml": "spec: {}"}, "spec.version is missing"},
		"nothing stored": {map[string]string{"solution.yaml": solution, crd: "spec: {versions: [{name: v1}]}"}, "no version is stored"},
		"CRD not YAML":   {map[string]string{"solution.yaml": solution, crd: "["}, "a_crd.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range tt.files {
				file = filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := readRelease(dir)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want something about %s", err, tt.want)
			}
		})
	}
}

// TestBuild builds everything twice, in two places, and compares every byte. Then it looks at what was built.
func TestBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles six programs twice")
	}
	r := release123(t)
	first, second := filepath.Join(t.TempDir(), "images"), filepath.Join(t.TempDir(), "images")
	var out, errOut bytes.Buffer
	for _, dir := range []string{first, second} {
		out.Reset()
		if err := run(t.Context(), []string{"-out", dir, "-version", "1.2.3"}, "..", &out, &errOut); err != nil {
			t.Fatalf("%v\n%s", err, errOut.String())
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines != len(r.programs)*len(architectures) {
		t.Errorf("got %d lines:\n%s", lines, out.String())
	}
	one, two := tree(t, first), tree(t, second)
	for name, content := range one {
		if two[name] != content {
			t.Errorf("%s differs between two builds", name)
		}
	}
	if len(one) != len(two) {
		t.Errorf("got %d and %d files", len(one), len(two))
	}
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	for _, p := range r.programs {
		for _, architecture := range architectures {
			files := layerFiles(t, readImage(t, first, p.ref, architecture))
			_, content, _ := strings.Cut(files[len(files)-1], " 755 0 0 ")
			checkExecutable(t, p, content, machines[architecture], architecture == runtime.GOARCH)
		}
	}
}

// checkExecutable looks for what would fail in an image that holds nothing else: a dynamic linker, another machine, a
// path of this one; and starts the program, where it can, to see that it is one.
func checkExecutable(t *testing.T, p program, content string, machine elf.Machine, start bool) {
	t.Helper()
	file, err := elf.NewFile(strings.NewReader(content))
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	if file.Machine != machine {
		t.Errorf("%s: got %v, want %v", p.name, file.Machine, machine)
	}
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Errorf("%s is not static", p.name)
		}
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(content, root) {
		t.Errorf("%s contains the path of this module", p.name)
	}
	if !strings.Contains(content, "1.2.3") {
		t.Errorf("%s does not know its version", p.name)
	}
	if !start || runtime.GOOS != "linux" || p.ref == "server" { // a server without settings would run for ever
		return
	}
	program := filepath.Join(t.TempDir(), p.name)
	if err = os.WriteFile(program, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program)
	command.Env = []string{}
	output, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(output), p.name+": error: the environment variable") {
		t.Errorf("%s: got %v\n%s", p.name, err, output)
	}
}
