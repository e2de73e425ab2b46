package oci

import (
	"context"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/schema/report"
)

// PayloadType is the artifact type of a payload: the files of an archive that are not images, as one OCI artifact.
const PayloadType = "application/vnd.solutionctl.payload.v1"

const (
	layerTitle      = "org.opencontainers.image.title"
	payloadFileType = "application/octet-stream"
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
func PayloadImage(files []PayloadFile) (*Image, error) {
	config := []byte("{}") // the empty descriptor of the OCI image specification
	m := v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: PayloadType,
		Config: blobDescriptor(types.OCIEmptyJSON, config), Layers: []Descriptor{},
	}
	image := &Image{Blobs: []Blob{bytesBlob(m.Config, config)}}
	seen := map[Digest]bool{m.Config.Digest: true}
	for _, file := range files {
		d := Descriptor{MediaType: payloadFileType, Size: file.Size, Digest: file.Digest}
		if err := checkDescriptor(d); err != nil {
			return nil, inContext("payload: "+file.Path, err)
		}
		if !seen[d.Digest] {
			seen[d.Digest] = true
			image.Blobs = append(image.Blobs, Blob{Descriptor: d, Open: file.Open})
		}
		d.Annotations = map[string]string{layerTitle: file.Path}
		m.Layers = append(m.Layers, d)
	}
	data, err := encodeJSON(m)
	if err != nil {
		return nil, err
	}
	if len(data) > maxDocument || len(m.Layers) > maxDescriptors {
		return nil, report.Errorf(report.Invalid, "payload of %d files is too large for one manifest", len(files))
	}
	image.Root = blobDescriptor(types.OCIManifestSchema1, data)
	image.Root.ArtifactType = PayloadType
	image.Manifests = []Manifest{{Descriptor: image.Root, Data: data}}
	return image, nil
}

func isPayload(image *Image) bool { return image.Root.ArtifactType == PayloadType }
