package oci

import (
	"cmp"
	"maps"
	"path"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Entry is one file of an archive. Either Data or Blob is set. Key is the digest of the content: entries with equal keys
// have equal content and are meant to be stored once.
type Entry struct {
	Path string
	Size int64
	Key  string
	Data []byte
	Blob *Blob
}

// Layout returns the files that hold the images, in their best order: files from memory first (manifests, indexes),
// then the blobs in the order of their first use, all names of a blob one after the other. It depends on the images
// only, and not on their order.
//
// Each image has a directory images/NAME/TAG in skopeo's dir: format; each manifest and blob lies in the OCI image
// layout at the root as well. A payload and a chart are in the OCI image layout only. There, a [standIn] accompanies
// each image in Docker's format.
func Layout(images []*Image) ([]Entry, error) {
	images = sorted(images)
	if err := checkImages(images); err != nil {
		return nil, err
	}
	l := &arrangement{known: map[string]bool{}, blobs: map[Digest]int{}}
	l.addData(layoutFile, []byte(`{"imageLayoutVersion":"1.0.0"}`))
	if err := l.addIndex(images, entryName); err != nil {
		return nil, err
	}
	for _, image := range images {
		l.addManifests(image)
	}
	for _, image := range images {
		if err := l.addBlobs(image); err != nil {
			return nil, inContext("image "+image.Ref.String(), err)
		}
	}
	for _, names := range l.names {
		l.entries = append(l.entries, names...)
	}
	return l.entries, nil
}

// arrangement is a layout in the making.
type arrangement struct {
	entries []Entry
	known   map[string]bool // paths
	names   [][]Entry       // of each blob
	blobs   map[Digest]int  // position in names
}

func (l *arrangement) addData(name string, data []byte) {
	if !l.known[name] {
		l.known[name] = true
		l.entries = append(l.entries, Entry{Path: name, Size: int64(len(data)), Key: digestOf(data).String(), Data: data})
	}
}

func (l *arrangement) addManifests(image *Image) {
	for i, m := range image.Manifests {
		if !isArtifact(image) {
			l.addData(manifestPath(image.Ref, i, m.Digest), m.Data)
		}
		l.addData(blobPath(m.Digest), m.Data)
	}
	if !isArtifact(image) {
		l.addData(path.Join(imageDir(image.Ref), dirVersionFile), []byte(dirVersion))
	}
}

func (l *arrangement) addBlobs(image *Image) error {
	for i := range image.Blobs {
		b := &image.Blobs[i]
		n, ok := l.blobs[b.Digest]
		if !ok {
			n = len(l.names)
			l.blobs[b.Digest] = n
			l.names = append(l.names, nil)
		} else if have := l.names[n]; len(have) > 0 && have[0].Size != b.Size {
			return report.Errorf(report.Corrupt, "blob %s has %d bytes here and %d in another image", b.Digest, b.Size, have[0].Size)
		}
		if !isArtifact(image) {
			l.addBlob(n, path.Join(imageDir(image.Ref), b.Digest.Hex), b)
		}
		l.addBlob(n, blobPath(b.Digest), b)
	}
	return nil
}

func (l *arrangement) addBlob(n int, name string, b *Blob) {
	if !l.known[name] {
		l.known[name] = true
		l.names[n] = append(l.names[n], Entry{Path: name, Size: b.Size, Key: b.Digest.String(), Blob: b})
	}
}

func imageDir(ref schema.ImageRef) string { return path.Join("images", ref.Name, ref.Tag) }

// manifestPath returns the path of the i-th manifest of an image: the root has the name that the tag is served from.
func manifestPath(ref schema.ImageRef, i int, d Digest) string {
	if i == 0 {
		return path.Join(imageDir(ref), manifestFile)
	}
	return path.Join(imageDir(ref), d.Hex+childManifestExt)
}

// addIndex adds index.json: the roots by name, in the annotation that name returns, each with its stand-in, then the
// manifests that refer to them by digest.
func (l *arrangement) addIndex(images []*Image, name func(*Image) (annotation, name string)) error {
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []Descriptor{}}
	var referrers []Descriptor
	var standIns []Manifest
	seen := map[Digest]bool{}
	for _, image := range images {
		d := image.Root
		annotation, called := name(image)
		d.Annotations = map[string]string{annotation: called}
		if image.Origin != "" {
			d.Annotations[fullName] = image.Origin
		}
		index.Manifests = append(index.Manifests, d)
		m, needed, err := standIn(image.Manifests[0])
		if err != nil {
			return inContext("image "+image.Ref.String(), err)
		}
		if needed {
			m.Annotations = maps.Clone(d.Annotations)
			m.Annotations[standsFor] = d.Digest.String()
			index.Manifests = append(index.Manifests, m.Descriptor)
			standIns = append(standIns, m)
		}
		for _, r := range referrersIn(image) {
			if !seen[r.Digest] {
				seen[r.Digest] = true
				referrers = append(referrers, r.Descriptor)
			}
		}
	}
	slices.SortFunc(referrers, func(a, b Descriptor) int { return cmp.Compare(a.Digest.Hex, b.Digest.Hex) })
	for _, r := range referrers {
		r.Annotations, r.Platform = nil, nil
		index.Manifests = append(index.Manifests, r)
	}
	if n := len(index.Manifests); n > maxDescriptors { // readers refuse it
		return report.Errorf(report.Invalid, "the archive would list %d images, charts and what belongs to them, the limit is %d", n, maxDescriptors).
			WithHint("make several Solutions of it; bills of materials and signatures count as well")
	}
	data, err := encodeJSON(index)
	if err != nil {
		return err
	}
	l.addData(indexFile, data)
	for _, m := range standIns {
		l.addData(blobPath(m.Digest), m.Data)
	}
	return nil
}

// referrer is a manifest with a subject.
type referrer struct {
	Descriptor
	subject Digest
}

// referrersIn returns the manifests of an image that have a subject and that no index of the image lists.
func referrersIn(image *Image) []referrer {
	children := map[Digest]bool{}
	var referrers []referrer
	for i, m := range image.Manifests {
		doc, err := parseManifest(m.Data, m.MediaType)
		if err != nil {
			continue // it was parsed when the image was made
		}
		for _, d := range doc.Manifests {
			children[d.Digest] = true
		}
		if doc.Subject != nil && i > 0 {
			referrers = append(referrers, referrer{m.Descriptor, doc.Subject.Digest})
		}
	}
	return slices.DeleteFunc(referrers, func(r referrer) bool { return children[r.Digest] })
}

// sorted orders images by name and tag.
func sorted(images []*Image) []*Image {
	images = slices.Clone(images)
	slices.SortStableFunc(images, func(a, b *Image) int { return a.Ref.Compare(b.Ref) })
	return images
}

// checkImages refuses names that are not valid or occur twice. The images are sorted.
func checkImages(images []*Image) error {
	for i, image := range images {
		if err := checkRef(image.Ref); err != nil && !isChart(image) { // whose names are checked when they are made or read
			return err
		}
		if i > 0 && image.Ref == images[i-1].Ref {
			return report.Errorf(report.Invalid, "two images are named %s", image.Ref)
		}
		if len(image.Manifests) == 0 {
			return report.Errorf(report.Invalid, "image %s has no manifest", image.Ref)
		}
	}
	return nil
}
