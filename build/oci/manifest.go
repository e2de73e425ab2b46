package oci

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Bounds on foreign documents. Registries accept manifests of 4 MiB; a few have been seen that are larger.
const (
	maxDocument    = 8 << 20 // bytes of a manifest, an index or an image configuration
	maxManifests   = 1000    // manifests of one image, children and referrers included
	maxDescriptors = 5000    // layers of one manifest, or children of one index
	maxIndexDepth  = 4       // indexes inside indexes
)

const (
	mediaTypeOCIArtifact = "application/vnd.oci.artifact.manifest.v1+json"
	attestationSubject   = "vnd.docker.reference.digest" // on an attestation in an index: the child it is about
)

// document is the union of every kind of manifest: the fields that are present decide its kind.
type document struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     types.MediaType   `json:"mediaType"`
	ArtifactType  string            `json:"artifactType"`
	Config        *Descriptor       `json:"config"`
	Layers        []Descriptor      `json:"layers"`
	Blobs         []Descriptor      `json:"blobs"`
	Manifests     []Descriptor      `json:"manifests"`
	Subject       *Descriptor       `json:"subject"`
	Annotations   map[string]string `json:"annotations"`
	FSLayers      json.RawMessage   `json:"fsLayers"` // schema 1
}

// parseManifest reads any manifest. declared is the media type that its descriptor or its transport gave it; the
// document's own mediaType field goes before it, and its shape decides when both are missing. The document's MediaType
// is never empty afterwards.
func parseManifest(data []byte, declared types.MediaType) (*document, error) {
	if len(data) > maxDocument {
		return nil, report.Errorf(report.Invalid, "manifest has %d bytes, the limit is %d", len(data), maxDocument)
	}
	var doc document
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, report.Errorf(report.Invalid, "manifest is not valid: %w", err)
	}
	if doc.SchemaVersion == 1 || doc.FSLayers != nil {
		return nil, report.Errorf(report.Invalid, "docker schema 1 manifests are not supported").
			WithHint("push the image again with a docker newer than 1.10, or convert it with `skopeo copy --format oci`")
	}
	switch {
	case doc.MediaType == "":
		doc.MediaType = doc.mediaType(declared)
	case !isManifest(doc.MediaType):
		return nil, report.Errorf(report.Invalid, "not an image manifest: its media type is %q", doc.MediaType)
	}
	return &doc, doc.check()
}

// mediaType is the media type of a document without that field: the declared one when it is that of a manifest, else
// the OCI type that its shape suggests; "" without a suggestion.
func (doc *document) mediaType(declared types.MediaType) types.MediaType {
	switch {
	case isManifest(declared):
		return declared
	case doc.Manifests != nil:
		return types.OCIImageIndex
	case doc.Config != nil || doc.Layers != nil:
		return types.OCIManifestSchema1
	}
	return ""
}

func isManifest(t types.MediaType) bool {
	return t.IsIndex() || t.IsImage() || t == mediaTypeOCIArtifact
}

// check refuses a document that can be read as two things, one whose shape is not that of its media type, and
// descriptors that the archive has no place for.
func (doc *document) check() error {
	isIndex, isImage := doc.Manifests != nil, doc.Config != nil || doc.Layers != nil
	if isIndex && isImage {
		return report.Errorf(report.Invalid, "manifest is an index and an image at once: it has layers as well as manifests")
	}
	if doc.MediaType == "" {
		return report.Errorf(report.Invalid, "not an image manifest: it has neither layers nor manifests")
	}
	if doc.MediaType.IsIndex() && isImage || doc.MediaType.IsImage() && (isIndex || doc.Config == nil) {
		return report.Errorf(report.Invalid, "manifest does not have the shape of its media type %s", doc.MediaType)
	}
	if n := len(doc.Manifests) + len(doc.Layers) + len(doc.Blobs); n > maxDescriptors {
		return report.Errorf(report.Invalid, "manifest refers to %d objects, the limit is %d", n, maxDescriptors)
	}
	for _, d := range append(doc.blobs(), doc.Manifests...) {
		if err := checkDescriptor(d); err != nil {
			return err
		}
	}
	return nil
}

// blobs returns the blobs of the manifest, in order.
func (doc *document) blobs() []Descriptor {
	var blobs []Descriptor
	if doc.Config != nil {
		blobs = append(blobs, *doc.Config)
	}
	return append(append(blobs, doc.Layers...), doc.Blobs...)
}

// artifactType returns the artifact type of the manifest as the referrers API lists it (OCI distribution specification).
func (doc *document) artifactType() string {
	if doc.ArtifactType == "" && doc.Config != nil && !doc.Config.MediaType.IsConfig() {
		return string(doc.Config.MediaType)
	}
	return doc.ArtifactType
}

func checkDescriptor(d Descriptor) error {
	switch {
	case d.Digest.Algorithm == "":
		return report.Errorf(report.Invalid, "manifest refers to an object without a digest")
	case d.Digest.Algorithm != "sha256":
		return report.Errorf(report.Invalid, "digest %s: %s is not supported, only sha256 is", shorten(d.Digest), d.Digest.Algorithm).
			WithHint("push the image again with sha256 digests; neither MetalK8s nor skopeo's dir: format has a name for others")
	case d.Size < 0:
		return report.Errorf(report.Invalid, "%s has the size %d", d.Digest, d.Size)
	}
	return nil
}

func shorten(d Digest) string {
	if len(d.Hex) > 12 {
		return d.Algorithm + ":" + d.Hex[:12] + "…"
	}
	return d.String()
}

// isForeign reports layers that a registry may refuse to hold: they come from the URLs of their vendor.
func isForeign(d Descriptor) bool {
	return !d.MediaType.IsDistributable() || len(d.URLs) > 0
}

// isUncompressed reports whether a layer is stored as a plain tar.
func isUncompressed(d Descriptor) bool {
	return d.MediaType == types.OCIUncompressedLayer || d.MediaType == types.DockerUncompressedLayer
}

// digestOf returns the SHA-256 digest of data.
func digestOf(data []byte) Digest {
	sum := sha256.Sum256(data)
	return Digest{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}
}

// verifyManifest checks data against its descriptor.
func verifyManifest(data []byte, d Descriptor) error {
	if got := digestOf(data); got != d.Digest || int64(len(data)) != d.Size {
		return report.Errorf(report.Corrupt, "manifest %s of %d bytes: its bytes have the digest %s and are %d", d.Digest, d.Size, got, len(data))
	}
	return nil
}

// encodeJSON is the one way in which this package writes JSON documents: compact, without HTML escapes, no newline.
func encodeJSON(v any) ([]byte, error) {
	var buf strings.Builder
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(buf.String(), "\n")), nil
}
