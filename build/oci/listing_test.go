package oci

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// countingFS counts how often a file is opened.
type countingFS struct {
	fs.FS
	opened map[string]int
}

func (c countingFS) Open(name string) (fs.File, error) {
	c.opened[name]++
	return c.FS.Open(name)
}

// indexOf returns a file system with an index.json.
func indexOf(t *testing.T, entries ...Descriptor) countingFS {
	t.Helper()
	data, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: entries})
	if err != nil {
		t.Fatal(err)
	}
	return countingFS{fstest.MapFS{indexFile: {Data: data}}, map[string]int{}}
}

func entry(content string, annotations ...string) Descriptor {
	d := blobDescriptor(types.OCIManifestSchema1, []byte(content))
	d.Annotations = map[string]string{}
	for pair := range slices.Chunk(annotations, 2) {
		d.Annotations[pair[0]] = pair[1]
	}
	return d
}

// TestListingTooLong has more images than a layout can have: it is read once, however many images a project takes from it.
func TestListingTooLong(t *testing.T) {
	var entries []Descriptor
	for i := range maxDescriptors + 1 {
		entries = append(entries, entry(fmt.Sprint(i), refName, fmt.Sprint("image-", i)))
	}
	fsys := indexOf(t, entries...)
	l := &layout{fsys: fsys}
	for i := range 3 {
		_, err := l.named(t.Context(), fmt.Sprint("image-", i), nil)
		if report.CodeOf(err) != report.Invalid || !strings.Contains(err.Error(), "lists 5001 manifests, the limit is 5000") {
			t.Errorf("got %v", err)
		}
	}
	if n := fsys.opened[indexFile]; n != 1 {
		t.Errorf("index.json was opened %d times", n)
	}
}

func TestListingNamed(t *testing.T) {
	a, b := entry("a", refName, "1.0", fullName, "docker.io/library/web:1.0"), entry("b", refName, "1.0", fullName, "registry.example/web:1.0")
	c, d := entry("c", refName, "docker.io/library/db:2.0"), entry("d")
	l := &layout{fsys: indexOf(t, a, b, c, d, entry("e", standsFor, a.Digest.String(), refName, "1.0"))}
	listed, err := l.list()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, ref string
		want      []Descriptor
	}{
		{"tag of two", "1.0", []Descriptor{a, b}},
		{"full name", "registry.example/web:1.0", []Descriptor{b}},
		{"short form of a full name", "web:1.0", []Descriptor{a}},
		{"reference as a tag", "docker.io/library/db:2.0", []Descriptor{c}},
		{"short form of a tag", "db:2.0", nil},
		{"digest", d.Digest.String(), []Descriptor{d}},
		{"digest after @", "@" + d.Digest.String(), []Descriptor{d}},
		{"no such name", "3.0", nil},
		{"no name", "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := listed.named(test.ref)
			if !slices.EqualFunc(got, test.want, func(x, y Descriptor) bool { return x.Digest == y.Digest }) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestLayoutTooManyImages has one image more than a reader of the archive accepts, as its payload counts too.
func TestLayoutTooManyImages(t *testing.T) {
	var images []*Image
	for i := range maxDescriptors + 1 {
		image, err := PayloadImage([]PayloadFile{{Path: fmt.Sprint(i), Digest: digestOf(nil)}})
		if err != nil {
			t.Fatal(err)
		}
		image.Ref = schema.ImageRef{Name: fmt.Sprint("image-", i), Tag: "1.0.0"}
		images = append(images, image)
	}
	_, err := Layout(images)
	if report.CodeOf(err) != report.Invalid || !strings.Contains(err.Error(), "the limit is 5000") {
		t.Errorf("got %v", err)
	}
	if _, err = Layout(images[1:]); err != nil {
		t.Error(err)
	}
}
