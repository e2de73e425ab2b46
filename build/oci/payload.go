package oci

import (
	"context"
	"io"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/schema/report"
)

// PayloadType is the artifact type of a payload: the files of an archive that are not images, as one OCI artifact.
const PayloadType = "application/vnd.solutionctl.payload.v1"

const (
	layerTitle      = "org.opencontainers.image.title"
	payloadFileType = "application/octet-stream"

	// payloadFiles is how many files one manifest lists: registries take no manifests above 4 MiB.
	payloadFiles = maxDescriptors - 1
)

// PayloadFile is one file of a payload.
type PayloadFile struct {
	Path   string // slash-separated, relative to the root of the archive
	Digest Digest
	Size   int64
	Open   func(ctx context.Context, offset int64) (io.ReadCloser, error)
}

// PayloadImage returns an OCI artifact with one layer per file, in the given order; tools such as oras write each under
// its path. The caller sets Ref. The blobs have the digests of the files, so that both share one place in an archive.
// MetalK8s would take a directory below images/ for an image, so that a payload has none in a [Layout].
//
// Thousands of files are spread over several manifests, and the artifact is an index of these.
func PayloadImage(files []PayloadFile) (*Image, error) {
	empty := emptyConfig()
	p := &payload{empty: empty.Descriptor, image: &Image{Blobs: []Blob{empty}}, seen: map[Digest]bool{empty.Digest: true}}
	if len(files) <= payloadFiles {
		root, err := p.manifest(files)
		if err != nil {
			return nil, err
		}
		p.image.Root, p.image.Manifests = root.Descriptor, []Manifest{root}
		return p.image, nil
	}
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	var parts []Manifest
	for part := range slices.Chunk(files, payloadFiles) {
		m, err := p.manifest(part)
		if err != nil {
			return nil, err
		}
		index.Manifests, parts = append(index.Manifests, m.Descriptor), append(parts, m)
	}
	data, err := encodeJSON(struct {
		v1.IndexManifest
		ArtifactType string `json:"artifactType"`
	}{index, PayloadType})
	if err != nil {
		return nil, err
	}
	p.image.Root = blobDescriptor(types.OCIImageIndex, data)
	p.image.Root.ArtifactType = PayloadType
	p.image.Manifests = append([]Manifest{{Descriptor: p.image.Root, Data: data}}, parts...)
	return p.image, nil
}

// payload is the artifact in the making.
type payload struct {
	empty Descriptor
	image *Image
	seen  map[Digest]bool
}

// manifest lists files and adds their blobs to the artifact.
func (p *payload) manifest(files []PayloadFile) (Manifest, error) {
	m := v1.Manifest{ArtifactType: PayloadType, Config: p.empty, Layers: []Descriptor{}}
	for _, file := range files {
		d := Descriptor{MediaType: payloadFileType, Size: file.Size, Digest: file.Digest}
		if err := checkDescriptor(d); err != nil {
			return Manifest{}, inContext("payload: "+file.Path, err)
		}
		if !p.seen[d.Digest] {
			p.seen[d.Digest] = true
			p.image.Blobs = append(p.image.Blobs, Blob{Descriptor: d, Open: file.Open})
		}
		d.Annotations = map[string]string{layerTitle: file.Path}
		m.Layers = append(m.Layers, d)
	}
	encoded, err := encodeManifest(m, PayloadType)
	if err == nil && len(encoded.Data) > maxDocument {
		err = report.Errorf(report.Invalid, "the paths of %d files are too long for one manifest", len(files))
	}
	return encoded, err
}

func isPayload(image *Image) bool { return image.Root.ArtifactType == PayloadType }
