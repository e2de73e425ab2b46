package oci

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Names in an OCI image layout and in a directory of skopeo's dir: format.
const (
	layoutFile       = "oci-layout"
	indexFile        = "index.json"
	manifestFile     = "manifest.json"
	dirVersionFile   = "version"
	dirVersion       = "Directory Transport Version: 1.1\n"
	refName          = "org.opencontainers.image.ref.name"
	fullName         = "io.containerd.image.name" // the whole reference, where ref.name holds the tag only
	childManifestExt = ".manifest.json"
)

func blobPath(d Digest) string { return path.Join("blobs", d.Algorithm, d.Hex) }

// layout is an OCI image layout, in a directory, a tar file or an archive.
type layout struct {
	fsys fs.FS
	// strict makes it an error that a manifest listed in index.json is missing or damaged even when no image needs it.
	strict bool

	listed    once[*listing]                // of index.json
	referrers once[map[Digest][]Descriptor] // by subject
	saved     once[[]dockerImage]           // of manifest.json, in a file of docker
}

func (l *layout) manifest(_ context.Context, d Descriptor) ([]byte, error) {
	return readFile(l.fsys, blobPath(d.Digest))
}

func (l *layout) blob(_ context.Context, d Descriptor) (Blob, error) {
	return fileBlob(l.fsys, blobPath(d.Digest), d)
}

// image gathers the image of one entry of index.json and the manifests that refer to it.
func (l *layout) image(ctx context.Context, d Descriptor, platforms []schema.Platform) (*Image, error) {
	data, err := readManifest(ctx, l, d)
	if err != nil {
		return nil, err
	}
	root := Manifest{Descriptor: Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}, Data: data}
	image, err := collect(ctx, l, root, platforms, 1)
	if err != nil {
		return nil, err
	}
	return image, l.addReferrers(ctx, image)
}

// addReferrers appends the manifests of index.json whose subject is a manifest of the image, and so on for theirs.
func (l *layout) addReferrers(ctx context.Context, image *Image) error {
	referrers, err := l.findReferrers(ctx)
	if err != nil || len(referrers) == 0 {
		return err
	}
	c := newCollector(l, image, 1)
	for i := 0; i < len(image.Manifests); i++ {
		manifests, err := c.fetch(ctx, referrers[image.Manifests[i].Digest])
		if err != nil {
			return err
		}
		for _, m := range manifests {
			m.Platform = nil
			if err = c.add(ctx, m, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// findReferrers returns the manifests of index.json that have a subject, by subject. It reads them once.
func (l *layout) findReferrers(ctx context.Context) (map[Digest][]Descriptor, error) {
	return l.referrers.get(func() (map[Digest][]Descriptor, error) { return l.readReferrers(ctx) })
}

func (l *layout) readReferrers(ctx context.Context) (map[Digest][]Descriptor, error) {
	listed, err := l.list()
	if err != nil {
		return nil, err
	}
	referrers := map[Digest][]Descriptor{}
	read := map[Digest]bool{} // a manifest with several names is read once
	for _, d := range listed.images {
		if read[d.Digest] {
			continue
		}
		read[d.Digest] = true
		data, err := readManifest(ctx, l, d)
		if err != nil && l.strict {
			return nil, err
		}
		doc, parseErr := parseManifest(data, d.MediaType)
		if err == nil && parseErr == nil && doc.Subject != nil {
			referrers[doc.Subject.Digest] = append(referrers[doc.Subject.Digest], d)
		}
	}
	return referrers, nil
}

// skopeoDir is a directory in skopeo's dir: format, as MetalK8s has one per tag.
type skopeoDir struct {
	fsys fs.FS
	dir  string
}

func (s skopeoDir) manifest(_ context.Context, d Descriptor) ([]byte, error) {
	return readFile(s.fsys, path.Join(s.dir, d.Digest.Hex+childManifestExt))
}

func (s skopeoDir) blob(_ context.Context, d Descriptor) (Blob, error) {
	return fileBlob(s.fsys, path.Join(s.dir, d.Digest.Hex), d)
}

func (s skopeoDir) image(ctx context.Context, platforms []schema.Platform) (*Image, error) {
	data, err := readFile(s.fsys, path.Join(s.dir, manifestFile))
	if err != nil {
		return nil, err
	}
	return collect(ctx, s, Manifest{Descriptor: blobDescriptor("", data), Data: data}, platforms, 1)
}

// readFile reads a document.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, missing(name, err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxDocument:
		return nil, report.Errorf(report.Invalid, "%s has more than %d bytes", name, maxDocument)
	}
	return data, nil
}

// fileBlob is the blob that a file holds.
func fileBlob(fsys fs.FS, name string, d Descriptor) (Blob, error) {
	info, err := fs.Stat(fsys, name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && isForeign(d):
		return Blob{}, report.Errorf(report.Invalid, "layer %s is not distributed with the image: %w", d.Digest, err).
			WithHint("the layer comes from its vendor only; copy the image with its foreign layers, or use another base image")
	case err != nil:
		return Blob{}, missing(name, err)
	case !info.Mode().IsRegular():
		return Blob{}, report.Errorf(report.Invalid, "%s is not a regular file", name)
	case info.Size() != d.Size:
		return Blob{}, report.Errorf(report.Corrupt, "%s has %d bytes, in its manifest %d", name, info.Size(), d.Size)
	}
	return Blob{Descriptor: d, Open: func(ctx context.Context, offset int64) (io.ReadCloser, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return openAt(fsys, name, offset)
	}}, nil
}

// openAt opens a file and moves to offset in the cheapest way that the file system offers.
func openAt(fsys fs.FS, name string, offset int64) (io.ReadCloser, error) {
	f, err := fsys.Open(name)
	if err != nil || offset == 0 {
		return f, err
	}
	if s, ok := f.(io.Seeker); ok {
		_, err = s.Seek(offset, io.SeekStart)
	} else {
		_, err = io.CopyN(io.Discard, f, offset)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// missing gives the absence of a file that a manifest refers to its code.
func missing(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return report.Errorf(report.Corrupt, "%s is missing: %w", name, fs.ErrNotExist)
	}
	return err
}
