package iso_test

import (
	"fmt"
	"io"
	"log"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/build/iso"
)

// The layout is known before anything is read: extents can be written in any order, or all in one pass.
func ExampleLayout() {
	text := func(path, key, content string) iso.File {
		return iso.File{Path: path, Size: int64(len(content)), Key: key, Open: func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(content)), nil
		}}
	}
	image, err := iso.Layout([]iso.File{
		text("manifest.yaml", "", "kind: Solution\n"),
		text("images/ui/1.0.0/4fcd", "sha256:4fcd", "a layer"),
		text("blobs/sha256/4fcd", "sha256:4fcd", "a layer"), // stored once
	}, iso.Options{VolumeID: "Example Solution 1.0.0", ModTime: time.Unix(0, 0)})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range image.Extents() {
		fmt.Printf("%6d %2d %s\n", e.Offset, e.Size, e.Path)
	}
	n, err := image.WriteTo(io.Discard)
	fmt.Println(n == image.Size(), err)
	// Output:
	//  73728 15 manifest.yaml
	//  77824  7 images/ui/1.0.0/4fcd
	// true <nil>
}
