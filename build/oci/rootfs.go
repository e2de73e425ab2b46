package oci

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// maxLayer is how many bytes of an uncompressed layer are hashed: a small layer can be an endless one.
const maxLayer = 64 << 30

// rootFS is the root file system of an image for one platform: the layers, and the digest that the configuration gives the
// uncompressed form of each.
type rootFS struct {
	manifest Digest
	platform schema.Platform
	created  time.Time
	layers   []Descriptor
	blobs    []Blob // of the layers
	diffIDs  []Digest
}

// CheckLayers refuses an image that no container runtime can unpack, because its configuration does not have one digest
// (rootfs.diff_ids) for each layer, or the digest of a layer that is not compressed is another one. It reads configurations, and no more
// of a layer than its first bytes.
func (i *Image) CheckLayers(ctx context.Context) error {
	all, err := i.rootFileSystems(ctx)
	if err != nil {
		return err
	}
	for _, root := range all {
		for n, layer := range root.layers {
			if !slices.Contains(plainTypes, layer.MediaType) || layer.Digest == root.diffIDs[n] {
				continue
			}
			plain, err := root.blobs[n].isPlain(ctx)
			if err != nil {
				return inManifest(root.manifest, err)
			}
			if plain {
				return root.mismatch(n, layer.Digest)
			}
		}
	}
	return nil
}

// plainTypes are the media types of layers whose digest is that of their uncompressed form, unless they are wrong.
var plainTypes = []types.MediaType{types.OCIUncompressedLayer, types.OCIUncompressedRestrictedLayer, types.DockerUncompressedLayer}

// isPlain reports that a layer is not compressed.
func (b Blob) isPlain(ctx context.Context) (bool, error) {
	content, err := b.Open(ctx, 0)
	if err != nil {
		return false, err
	}
	defer func() { _ = content.Close() }() // it was only read
	head := make([]byte, 8)
	n, err := io.ReadFull(content, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, inContext("layer "+shorten(b.Digest), err)
	}
	return compressionOf(head[:n]) == uncompressed, nil
}

// VerifyLayers reads every layer, and refuses one whose uncompressed bytes do not have the digest that the configuration
// gives them: a container runtime refuses to unpack it.
func (i *Image) VerifyLayers(ctx context.Context) error {
	all, err := i.rootFileSystems(ctx)
	if err != nil {
		return err
	}
	hashed := map[Digest]Digest{} // platforms share layers
	for _, root := range all {
		for n, layer := range root.layers {
			if _, known := hashed[layer.Digest]; !known {
				if hashed[layer.Digest], err = root.blobs[n].hashUncompressed(ctx); err != nil {
					return inManifest(root.manifest, err)
				}
			}
			if got := hashed[layer.Digest]; got != root.diffIDs[n] {
				return root.mismatch(n, got)
			}
		}
	}
	return nil
}

// mismatch is the error about a layer that unpacks to another digest than that of the configuration.
func (r rootFS) mismatch(n int, got Digest) error {
	return inManifest(r.manifest, report.Errorf(report.Corrupt,
		"layer %s unpacks to %s, the configuration of the image wants %s", shorten(r.layers[n].Digest), shorten(got), shorten(r.diffIDs[n])).
		WithHint(notUnpackable))
}

const notUnpackable = "no container runtime unpacks such an image: build it again, or copy it with `skopeo copy` from where it runs"

// rootFileSystems returns those of all platforms. Artifacts and attestations have none: nothing unpacks them.
func (i *Image) rootFileSystems(ctx context.Context) ([]rootFS, error) {
	var all []rootFS
	blobs := i.positions()
	for _, m := range i.Manifests {
		doc, err := parseManifest(m.Data, m.MediaType)
		if err != nil {
			return nil, inManifest(m.Digest, err)
		}
		if !isUnpacked(m, doc) {
			continue
		}
		at, ok := blobs[doc.Config.Digest]
		if !ok {
			return nil, inManifest(m.Digest, report.Errorf(report.Corrupt, "its configuration %s is missing", doc.Config.Digest))
		}
		config, _, err := readConfig(ctx, i.Blobs[at])
		if err != nil {
			return nil, inManifest(m.Digest, err)
		}
		root := rootFS{manifest: m.Digest, layers: doc.Layers, diffIDs: config.RootFS.DiffIDs}
		root.platform = platformOf(Descriptor{Platform: config.platform()})
		if created, err := time.Parse(time.RFC3339Nano, config.Created); err == nil {
			root.created = created
		}
		if err := root.check(); err != nil {
			return nil, inManifest(m.Digest, err)
		}
		for _, layer := range root.layers {
			at, ok := blobs[layer.Digest]
			if !ok {
				return nil, inManifest(m.Digest, report.Errorf(report.Corrupt, "layer %s is missing", layer.Digest))
			}
			root.blobs = append(root.blobs, i.Blobs[at])
		}
		all = append(all, root)
	}
	return all, nil
}

// isUnpacked reports that a manifest is that of an image whose layers become a file system. Its descriptor has the platform
// "unknown" when it is an attestation.
func isUnpacked(m Manifest, doc *document) bool {
	attestation := m.Platform != nil && m.Platform.OS == "unknown"
	if attestation || doc.Subject != nil || !doc.MediaType.IsImage() || !doc.Config.MediaType.IsConfig() {
		return false
	}
	return len(doc.Layers) == 0 || slices.ContainsFunc(doc.Layers, func(d Descriptor) bool { return d.MediaType.IsLayer() })
}

// IsEmpty reports whether the image has nothing to start: it is an image for containers, and for no platform does it have a layer.
func (i *Image) IsEmpty() bool {
	found := false
	for _, m := range i.Manifests {
		doc, err := parseManifest(m.Data, m.MediaType)
		if err != nil || !isUnpacked(m, doc) {
			continue
		}
		if len(doc.Layers) > 0 {
			return false
		}
		found = true
	}
	return found
}

func (r rootFS) check() error {
	if len(r.diffIDs) != len(r.layers) {
		return report.Errorf(report.Invalid, "it has %d layers, rootfs.diff_ids of its configuration lists %d", len(r.layers), len(r.diffIDs)).
			WithHint(notUnpackable)
	}
	for _, id := range r.diffIDs {
		if err := checkDescriptor(Descriptor{Digest: id}); err != nil {
			return inContext("rootfs.diff_ids of its configuration", err)
		}
	}
	return nil
}

// hashUncompressed returns the digest of the uncompressed form of a layer, whatever compression its media type claims.
func (b Blob) hashUncompressed(ctx context.Context) (Digest, error) {
	compressed, err := b.Open(ctx, 0)
	if err != nil {
		return Digest{}, err
	}
	defer func() { _ = compressed.Close() }()
	plain, err := decompress(contextReader{ctx, compressed})
	if err != nil {
		return Digest{}, inContext("layer "+shorten(b.Digest), err)
	}
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(plain, maxLayer+1))
	if err = errors.Join(err, plain.Close()); err != nil {
		return Digest{}, report.Errorf(report.Corrupt, "layer %s cannot be unpacked: %w", shorten(b.Digest), err)
	}
	if n > maxLayer {
		return Digest{}, report.Errorf(report.Invalid, "layer %s unpacks to more than %d bytes", shorten(b.Digest), int64(maxLayer))
	}
	return Digest{Algorithm: "sha256", Hex: hex.EncodeToString(hash.Sum(nil))}, nil
}

// positions returns the position of each blob: there can be very many.
func (i *Image) positions() map[Digest]int {
	blobs := make(map[Digest]int, len(i.Blobs))
	for n := range i.Blobs {
		blobs[i.Blobs[n].Digest] = n
	}
	return blobs
}

// holdConfigs reads the configurations of the image into memory, so that a registry is asked for each once.
func (i *Image) holdConfigs(ctx context.Context) error {
	for n, b := range i.Blobs {
		if !b.MediaType.IsConfig() {
			continue
		}
		data, err := readConfigData(ctx, b)
		if err != nil {
			return err
		}
		i.Blobs[n] = bytesBlob(b.Descriptor, data)
	}
	return nil
}
