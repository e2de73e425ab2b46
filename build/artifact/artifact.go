package artifact

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Type is the artifact type of an archive in a registry.
const Type = "application/vnd.solutionctl.archive.v1"

const (
	layoutType = "application/vnd.solutionctl.archive.layout.v1+json"
	frameType  = "application/vnd.solutionctl.archive.frame.v1+zstd"
	blobType   = "application/octet-stream"
	bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json" // as cosign stores it

	maxLayout  = 4 << 20 // bytes
	maxBundle  = 8 << 20
	maxBundles = 64 << 20 // of all signatures

	titleAnnotation   = "org.opencontainers.image.title"
	versionAnnotation = "org.opencontainers.image.version"
	signerAnnotation  = "io.solutionctl.signer"
)

// Artifact is an archive that can be pushed.
type Artifact struct {
	Layout schema.ArchiveLayout
	Image  *oci.Image // with the signatures, bills of materials and statements

	parts *layout.Parts
}

// New reads an archive once, and its frame twice, and returns it as an artifact. The archive has to stay open until the artifact was pushed.
func New(ctx context.Context, s layout.Source, bundles []layout.Bundle, sink report.Sink) (*Artifact, error) {
	parts, err := layout.TakeApart(ctx, s, layout.RegistryLimits, sink)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return of(ctx, parts, s, bundles)
}

// Describe returns the artifact that [New] returns for an archive whose digest is known. It reads no blob whose digest is its name.
func Describe(ctx context.Context, s layout.Source, digest string, bundles []layout.Bundle) (*Artifact, error) {
	parts, err := layout.Describe(ctx, s, digest, layout.RegistryLimits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return of(ctx, parts, s, bundles)
}

func of(ctx context.Context, parts *layout.Parts, s layout.Source, bundles []layout.Bundle) (*Artifact, error) {
	a := &Artifact{Layout: parts.Layout, parts: parts}
	document, err := json.Marshal(schema.NewArchiveArtifact(parts.Layout))
	if err != nil {
		return nil, err
	}
	if len(document) > maxLayout {
		return nil, report.Errorf(report.Invalid, "the layout of %s has %d bytes, more than %d", s.Name, len(document), maxLayout)
	}
	frame := oci.Blob{
		Descriptor: oci.Descriptor{
			MediaType: frameType, Digest: digestOf(parts.FrameSHA256), Size: layout.FrameSize(a.Layout.Frame),
		},
		Open: a.openFrame,
	}
	config := oci.BytesBlob(layoutType, document)
	described := oci.Artifact{
		Type: Type, Config: &config, Layers: []oci.Blob{frame},
		Annotations: map[string]string{titleAnnotation: a.Layout.ID(), versionAnnotation: a.Layout.Version},
	}
	for i, b := range layout.Blobs(&a.Layout) {
		described.Layers = append(described.Layers, oci.Blob{Descriptor: oci.Descriptor{MediaType: blobType, Digest: digestOf(b.SHA256), Size: b.Size}, Open: a.openBlob(i)})
	}
	about, err := documents(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	for _, b := range bundles {
		signature := oci.Artifact{Type: bundleType, Layers: []oci.Blob{oci.BytesBlob(bundleType, b.Data)}}
		if b.Signer != "" {
			signature.Annotations = map[string]string{signerAnnotation: b.Signer}
		}
		about = append(about, signature)
	}
	a.Image, err = oci.ArtifactImage(described, about...)
	return a, err
}

func digestOf(hexadecimal string) oci.Digest {
	return oci.Digest{Algorithm: "sha256", Hex: hexadecimal}
}

func (a *Artifact) openBlob(i int) func(context.Context, int64) (io.ReadCloser, error) {
	return func(_ context.Context, offset int64) (io.ReadCloser, error) {
		content := a.parts.Blob(i)
		return io.NopCloser(io.NewSectionReader(content, offset, content.Size()-offset)), nil
	}
}

func (a *Artifact) openFrame(ctx context.Context, offset int64) (io.ReadCloser, error) {
	r, w := io.Pipe()
	go func() { // ends with the frame, or when the reader is closed
		w.CloseWithError(a.parts.WriteFrame(ctx, func(block []byte) error {
			skipped := min(offset, int64(len(block)))
			offset -= skipped
			_, err := w.Write(block[skipped:])
			return err
		}))
	}()
	return r, nil
}
