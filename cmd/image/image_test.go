package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	registry "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/solutionctl/solutionctl/schema"
)

var created = time.Unix(1700000000, 0).UTC()

// programs writes stand-ins for what was compiled, and returns how the command names them.
func programs(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	var args []string
	for _, architecture := range []string{"amd64", "arm64"} {
		file := filepath.Join(dir, architecture)
		if err := os.WriteFile(file, []byte("for "+architecture), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "linux/"+architecture+"="+file)
	}
	return args
}

// TestImage reads the image with another library, which computes every digest.
func TestImage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "image")
	if err := run(created, append([]string{dir}, programs(t)...)); err != nil {
		t.Fatal(err)
	}
	root, err := registry.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := root.IndexManifest()
	if err != nil || len(list.Manifests) != 1 || list.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != schema.ProgramImage {
		t.Fatalf("%+v, %v", list, err)
	}
	index, err := root.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err = validate.Index(index); err != nil {
		t.Error(err)
	}
	manifests, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range manifests.Manifests {
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, m.Platform.String()+" "+content(t, image))
	}
	want := []string{
		"linux/amd64 linux/amd64 65532:65532 [/solutionctl] 2023-11-14T22:13:20Z: solutionctl 755 0:0 for amd64",
		"linux/arm64 linux/arm64 65532:65532 [/solutionctl] 2023-11-14T22:13:20Z: solutionctl 755 0:0 for arm64",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// content describes an image: how it is started, and the files of its layers.
func content(t *testing.T, image v1.Image) string {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%s/%s %s %s %s:", config.OS, config.Architecture, config.Config.User, config.Config.Entrypoint, config.Created.Format(time.RFC3339))
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range layers {
		files, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		r := tar.NewReader(files)
		for {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			data, failure := io.ReadAll(r)
			if err != nil || failure != nil {
				t.Fatal(err, failure)
			}
			text += fmt.Sprintf(" %s %o %d:%d %s", h.Name, h.Mode, h.Uid, h.Gid, data)
		}
		if err := files.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return text
}

func TestSameBytes(t *testing.T) {
	one, two := filepath.Join(t.TempDir(), "image"), filepath.Join(t.TempDir(), "elsewhere")
	var trees []map[string]string
	for _, dir := range []string{one, two} {
		if err := run(created, append([]string{dir}, programs(t)...)); err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		if err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := os.ReadFile(filepath.Join(dir, name))
			files[name] = string(data)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		trees = append(trees, files)
	}
	if diff := cmp.Diff(trees[0], trees[1]); diff != "" {
		t.Error(diff)
	}
}

func TestRefuses(t *testing.T) {
	good := programs(t)
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing":        {nil, "usage:"},
		"no program":     {[]string{"image"}, "usage:"},
		"no platform":    {[]string{"image", "file"}, `"file" is not OS/ARCHITECTURE=FILE`},
		"half of one":    {[]string{"image", "linux=file"}, `"linux=file" is not`},
		"no such file":   {[]string{"image", "linux/amd64=absent"}, "image of absent"},
		"something else": {append([]string{"taken"}, good...), "taken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.Mkdir("taken", 0o700); err != nil {
				t.Fatal(err)
			}
			if err := run(created, test.args); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
