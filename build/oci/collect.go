package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// content is a place that holds manifests and blobs by digest: a registry, an OCI layout, a skopeo directory.
type content interface {
	// manifest returns at most maxDocument bytes; the caller verifies them.
	manifest(ctx context.Context, d Descriptor) ([]byte, error)
	// blob returns the blob, after making sure that it is there with the right size where that is cheap.
	blob(ctx context.Context, d Descriptor) (Blob, error)
}

// collector gathers the parts of an image, starting from its root.
type collector struct {
	from content
	jobs int // manifests read at a time

	image     *Image
	seen      map[Digest]bool // of image.Manifests
	seenBlobs map[Digest]bool
	bytes     int64 // of manifests
}

// newCollector adds parts to an image.
func newCollector(from content, image *Image, jobs int) *collector {
	c := &collector{from: from, jobs: max(jobs, 1), image: image, seen: map[Digest]bool{}, seenBlobs: map[Digest]bool{}}
	for _, m := range image.Manifests {
		c.seen[m.Digest] = true
	}
	for _, b := range image.Blobs {
		c.seenBlobs[b.Digest] = true
	}
	return c
}

// collect gathers the image with a root: the root, the manifests of an index, and all their blobs. Only the given
// platforms of an index are taken; all when there are none.
func collect(ctx context.Context, from content, root Manifest, platforms []schema.Platform, jobs int) (*Image, error) {
	c := newCollector(from, &Image{from: from}, jobs)
	root, err := c.choose(ctx, root, platforms)
	if err != nil {
		return nil, err
	}
	if err = c.add(ctx, root, 0); err != nil {
		return nil, err
	}
	c.image.Root = c.image.Manifests[0].Descriptor
	if len(platforms) > 0 && c.image.Root.Platform != nil {
		err = checkPlatform(platformOf(c.image.Root), platforms)
	}
	return c.image, err
}

// add appends a manifest, the manifests below it and all their blobs.
func (c *collector) add(ctx context.Context, m Manifest, depth int) error {
	if c.seen[m.Digest] {
		return nil
	}
	doc, err := parseManifest(m.Data, m.MediaType)
	if err != nil {
		return inManifest(m.Digest, err)
	}
	if doc.MediaType.IsIndex() && depth >= maxIndexDepth {
		return report.Errorf(report.Invalid, "index %s: indexes are nested more than %d deep", m.Digest, maxIndexDepth)
	}
	m.Descriptor = Descriptor{MediaType: doc.MediaType, ArtifactType: doc.artifactType(), Digest: m.Digest, Size: m.Size, Platform: m.Platform}
	if err = c.addBlobs(ctx, &m, doc); err != nil {
		return inManifest(m.Digest, err)
	}
	c.seen[m.Digest] = true
	c.image.Manifests = append(c.image.Manifests, m)

	children, err := c.fetch(ctx, doc.Manifests)
	if err != nil {
		return inManifest(m.Digest, err)
	}
	for _, child := range children {
		if err := c.add(ctx, child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// addBlobs appends the blobs of a manifest and sets the platform that its configuration names.
func (c *collector) addBlobs(ctx context.Context, m *Manifest, doc *document) error {
	for i, d := range doc.blobs() {
		d.Data = nil // a copy of the content that some manifests carry
		isConfig := i == 0 && doc.Config != nil && d.MediaType.IsConfig()
		b, err := c.from.blob(ctx, d)
		if err != nil {
			return err
		}
		if isConfig && m.Platform == nil {
			config, data, err := readConfig(ctx, b)
			if err != nil {
				return err
			}
			m.Platform, b = config.platform(), bytesBlob(d, data) // held, so that it is not fetched twice
		}
		if c.seenBlobs[d.Digest] {
			continue
		}
		c.seenBlobs[d.Digest] = true
		c.image.Blobs = append(c.image.Blobs, b)
	}
	return nil
}

// fetch reads the manifests of the descriptors, several at a time, and returns those that are new in their order.
func (c *collector) fetch(ctx context.Context, descriptors []Descriptor) ([]Manifest, error) {
	var manifests []Manifest
	for _, d := range descriptors {
		if c.seen[d.Digest] {
			continue
		}
		c.bytes += d.Size
		if len(manifests)+len(c.seen) >= maxManifests || c.bytes > 8*maxDocument {
			return nil, report.Errorf(report.Invalid, "the image has more than %d manifests or %d MiB of them", maxManifests, 8*maxDocument>>20)
		}
		manifests = append(manifests, Manifest{Descriptor: d})
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.jobs)
	for i := range manifests {
		group.Go(func() (err error) {
			manifests[i].Data, err = readManifest(ctx, c.from, manifests[i].Descriptor)
			return err
		})
	}
	return manifests, group.Wait()
}

// readManifest reads and verifies one manifest.
func readManifest(ctx context.Context, from content, d Descriptor) ([]byte, error) {
	if d.Size > maxDocument {
		return nil, report.Errorf(report.Invalid, "manifest %s has %d bytes, the limit is %d", d.Digest, d.Size, maxDocument)
	}
	data, err := from.manifest(ctx, d)
	if err != nil {
		return nil, err
	}
	return data, verifyManifest(data, d)
}

// imageConfig holds the fields of an image configuration that are read.
type imageConfig struct {
	Created      string `json:"created"`
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Variant      string `json:"variant"`
	RootFS       struct {
		DiffIDs []Digest `json:"diff_ids"`
	} `json:"rootfs"`
}

func (c *imageConfig) platform() *v1.Platform {
	return &v1.Platform{OS: c.OS, Architecture: c.Architecture, Variant: c.Variant}
}

func parseConfig(data []byte) (*imageConfig, error) {
	var config imageConfig
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, report.Errorf(report.Invalid, "image configuration is not valid: %w", err)
	}
	return &config, nil
}

func readConfig(ctx context.Context, b Blob) (*imageConfig, []byte, error) {
	data, err := readConfigData(ctx, b)
	if err != nil {
		return nil, nil, err
	}
	config, err := parseConfig(data)
	return config, data, err
}

func readConfigData(ctx context.Context, b Blob) ([]byte, error) {
	if b.Size > maxDocument {
		return nil, report.Errorf(report.Invalid, "image configuration %s has %d bytes, the limit is %d", b.Digest, b.Size, maxDocument)
	}
	return readBlob(ctx, b)
}

// readBlob reads a blob whose size is bounded, and compares its digest.
func readBlob(ctx context.Context, b Blob) ([]byte, error) {
	r, err := b.Open(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	return io.ReadAll(VerifyReader(r, b.Descriptor))
}

// bytesBlob is a blob that is held in memory.
func bytesBlob(d Descriptor, data []byte) Blob {
	return Blob{Descriptor: d, Open: func(_ context.Context, offset int64) (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(bytes.NewReader(data), offset, int64(len(data))-offset)), nil
	}}
}

// blobDescriptor describes data.
func blobDescriptor(mediaType types.MediaType, data []byte) Descriptor {
	return Descriptor{MediaType: mediaType, Digest: digestOf(data), Size: int64(len(data))}
}

// inManifest adds the digest of a manifest to an error and keeps its code and hint.
func inManifest(d Digest, err error) error { return inContext("manifest "+shorten(d), err) }

// inContext prefixes an error, nil included; the code and the hint stay where they are.
func inContext(what string, err error) error {
	if err == nil {
		return nil
	}
	return &report.Error{Code: report.CodeOf(err), Err: prefixed{what, err}}
}

type prefixed struct {
	what string
	err  error
}

func (p prefixed) Error() string { return p.what + ": " + p.err.Error() }

func (p prefixed) Unwrap() error { return p.err }
