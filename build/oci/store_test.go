package oci_test

import (
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestStoreBounded opens archives whose many images have one large manifest: they are small, their store would not be.
func TestStoreBounded(t *testing.T) {
	const names = 33 // of 8 MiB each
	l := newLayout()
	m := l.manifest("linux/amd64", "a layer")
	m.Annotations = map[string]string{"large": strings.Repeat("x", 8<<20-2000)}
	large := l.json(types.OCIManifestSchema1, m)
	config, layer, manifest := "blobs/sha256/"+m.Config.Digest.Hex, "blobs/sha256/"+m.Layers[0].Digest.Hex, l.files["blobs/sha256/"+large.Digest.Hex]
	directories := fstest.MapFS{}
	for i := range names {
		l.tag(fmt.Sprintf("image-%d:1.0.0", i), large)
		dir := fmt.Sprintf("images/image-%d/1.0.0/", i)
		maps.Copy(directories, fstest.MapFS{
			dir + "version": file([]byte("Directory Transport Version: 1.1\n")), dir + "manifest.json": manifest,
			dir + m.Config.Digest.Hex: l.files[config], dir + m.Layers[0].Digest.Hex: l.files[layer],
		})
	}
	for name, fsys := range map[string]fstest.MapFS{"layout": l.fs(), "directories": directories} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name == "directories" {
				t.Skip("reads 256 MiB")
			}
			_, err := oci.Open(fsys)
			if report.CodeOf(err) != report.Invalid || !strings.Contains(err.Error(), "more than 256 MiB of manifests") {
				t.Errorf("got %v", err)
			}
		})
	}
	opened := counting{l.files, map[string]int{}}
	l.index.Manifests = l.index.Manifests[:names/2]
	l.fs()
	if _, err := oci.Open(opened); err != nil {
		t.Fatal(err)
	}
	if n := opened.opens["blobs/sha256/"+large.Digest.Hex]; n > 2 { // as an image, and to see whether it is a referrer
		t.Errorf("the manifest is read %d times", n)
	}
}

// counting counts how often each file is opened.
type counting struct {
	fstest.MapFS
	opens map[string]int
}

func (c counting) Open(name string) (fs.File, error) {
	c.opens[name]++
	return c.MapFS.Open(name)
}
