// Package oci resolves the images of sources, and lays them out in an archive.
//
// A [Resolver] turns a source such as "docker://ghcr.io/acme/operator:1.0.0" or "oci:build/images:operator" into an
// [Image]: its manifests, byte for byte as the source has them, and its blobs, each with a known digest and size and an
// Open that streams it later. Nothing is ever converted: a digest that is valid at the source is valid in the archive.
// There are two exceptions, which [Image.Note] describes: a layer that docker saved uncompressed is compressed once,
// with a pinned codec, into the cache; and a choice of platforms makes a new, smaller index.
//
// [Layout] places images in an archive, without any I/O: MetalK8s' images/NAME/TAG/ directories and an OCI image layout
// at the root. Both views show the same bytes; entries with equal keys are meant to be stored once. [RegistryConfig]
// writes the nginx locations that serve the first view. [Open] reads either view back.
//
// [NewPush] plans the upload of images to a registry, and [Push.Run] uploads the missing content: byte for byte, each blob once.
//
// Nothing that is read is trusted. Manifests are bounded and checked against their digest before they are parsed. Blobs
// are not: pass them through [VerifyReader]. Digests are SHA-256; others are refused, since neither view of the archive
// has a name for them.
package oci

import (
	"context"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/solutionctl/solutionctl/schema"
)

// Digest is an algorithm and a hash in hexadecimal, "sha256:…".
type Digest = v1.Hash

// Descriptor is an OCI content descriptor: media type, digest, size.
type Descriptor = v1.Descriptor

// Blob is content that is streamed rather than held: a layer, a configuration, a file of an artifact.
type Blob struct {
	Descriptor
	// Open streams the blob from offset to its end. The caller closes the reader and verifies the digest, for instance
	// with [VerifyReader]. Open may be called several times, from several goroutines.
	Open func(ctx context.Context, offset int64) (io.ReadCloser, error)
	// openPart streams a part of the blob; nil: Open does.
	openPart func(ctx context.Context, from, to int64) (io.ReadCloser, error)
	// Release, unless it is nil, gives back the space of a temporary copy. Afterwards, the blob cannot be opened any more.
	Release func()
}

// OpenPart streams the bytes of a blob from one offset to before another. A registry is asked for no others.
func (b *Blob) OpenPart(ctx context.Context, from, to int64) (io.ReadCloser, error) {
	if b.openPart != nil {
		return b.openPart(ctx, from, to)
	}
	content, err := b.Open(ctx, from)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(content, to-from), content}, nil
}

// Manifest is an image manifest, an image index or an artifact manifest, with the exact bytes that have its digest.
type Manifest struct {
	Descriptor
	Data []byte
}

// Image is one image as an archive carries it, for one platform or for several.
type Image struct {
	Ref    schema.ImageRef
	Origin string // full original reference of the image, from its source or the project; may be empty

	// Root describes the manifest or index that the tag points to. Root.Platform is set for a single-platform image.
	Root Descriptor
	// Manifests holds the root first, then the manifests that an index refers to, then those whose subject is one of
	// the former (signatures, SBOMs). Each digest occurs once.
	Manifests []Manifest
	// Blobs holds every blob once, in the order of first use.
	Blobs []Blob

	// Note is a remark about a change from the source, such as a choice of platforms; may be empty.
	Note string

	from  content      // the source
	left  []Descriptor // attestations that the choice of one platform has left out
	whole Digest       // of the index that the choice of platforms has replaced
}

// Platforms returns the platforms that the image can run on, in the order of its index; none for an artifact.
func (i *Image) Platforms() []schema.Platform {
	if p := platformOf(i.Root); p != (schema.Platform{}) {
		return []schema.Platform{p}
	}
	seen := map[schema.Platform]bool{{}: true}
	var platforms []schema.Platform
	for _, m := range i.Manifests {
		if p := platformOf(m.Descriptor); !seen[p] {
			seen[p] = true
			platforms = append(platforms, p)
		}
	}
	return platforms
}

// Created returns the time at which the image was made, the newest of its platforms; the zero time without one. It
// reads the configurations.
func (i *Image) Created(ctx context.Context) (time.Time, error) {
	var newest time.Time
	for _, b := range i.Blobs {
		if !b.MediaType.IsConfig() {
			continue
		}
		config, _, err := readConfig(ctx, b)
		if err != nil {
			return time.Time{}, err
		}
		created, err := time.Parse(time.RFC3339Nano, config.Created)
		if err == nil && created.After(newest) {
			newest = created
		}
	}
	return newest, nil
}

// platformOf returns the platform of a descriptor; the zero value when it has none or names it "unknown", as
// attestations do.
func platformOf(d Descriptor) schema.Platform {
	if d.Platform == nil || d.Platform.OS == "" || d.Platform.OS == "unknown" {
		return schema.Platform{}
	}
	return schema.Platform{OS: d.Platform.OS, Architecture: d.Platform.Architecture, Variant: d.Platform.Variant}
}
