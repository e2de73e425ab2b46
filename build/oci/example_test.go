package oci_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
)

// An image of an OCI image layout goes into an archive, and is found in it again.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	images := newLayout()
	images.tag("operator", images.image("linux/amd64", "base", "operator"))
	if err = os.CopyFS(filepath.Join(dir, "images"), images.fs()); err != nil {
		fmt.Println(err)
		return
	}

	resolver := oci.NewResolver(oci.Options{BaseDir: dir})
	defer func() { _ = resolver.Close() }()
	ref := schema.ImageRef{Name: "operator", Tag: "1.0.0"}
	image, err := resolver.Resolve(context.Background(), ref, "oci:images:operator")
	if err != nil {
		fmt.Println(err)
		return
	}
	entries, err := oci.Layout([]*oci.Image{image})
	if err != nil {
		fmt.Println(err)
		return
	}
	archive, once := fstest.MapFS{}, map[string]bool{}
	for _, e := range entries {
		archive[e.Path] = &fstest.MapFile{Data: e.Data}
		if e.Blob != nil {
			archive[e.Path] = &fstest.MapFile{Data: contentOf(e.Blob)}
		}
		once[e.Key] = true
	}
	fmt.Println(len(entries), "files with", len(once), "different contents")

	store, err := oci.Open(archive)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, i := range store.Images() {
		fmt.Println(i.Ref, i.Platforms(), len(i.Blobs), "blobs")
	}
	// Output:
	// 11 files with 7 different contents
	// operator:1.0.0 [linux/amd64] 3 blobs
}

func contentOf(b *oci.Blob) []byte {
	r, err := b.Open(context.Background(), 0)
	if err != nil {
		return nil
	}
	defer func() { _ = r.Close() }()
	data := make([]byte, b.Size)
	if _, err := io.ReadFull(oci.VerifyReader(r, b.Descriptor), data); err != nil {
		return nil
	}
	return data
}
