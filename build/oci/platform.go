package oci

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// choose returns the root to take of an image when only some platforms are wanted:
//   - the index itself when nothing is left out of it, so that its digest stays valid;
//   - the manifest of the platform when only one remains, its digest being valid at the source as well;
//   - otherwise a new index with the descriptors of the source, in their order, byte for byte.
//
// Attestations stay with the manifest that they are about.
func (c *collector) choose(ctx context.Context, root Manifest, platforms []schema.Platform) (Manifest, error) {
	doc, err := parseManifest(root.Data, root.MediaType)
	if err != nil {
		return root, inManifest(root.Digest, err)
	}
	if !doc.MediaType.IsIndex() {
		return root, nil
	}
	if len(doc.Manifests) == 0 {
		return root, report.Errorf(report.Invalid, "index %s is empty", root.Digest)
	}
	if len(platforms) == 0 {
		return root, nil
	}
	kept, err := c.matching(ctx, doc, platforms)
	if err != nil || len(kept) == len(doc.Manifests) {
		return root, err
	}
	c.image.Note = fmt.Sprintf("%d of %d manifests of the index were taken", len(kept), len(doc.Manifests))
	c.image.whole = root.Digest
	if images := slices.DeleteFunc(slices.Clone(kept), func(i int) bool { return isAttestation(doc.Manifests[i]) }); len(images) == 1 {
		d := doc.Manifests[images[0]]
		for _, i := range kept {
			if isAttestation(doc.Manifests[i]) {
				c.image.left = append(c.image.left, doc.Manifests[i])
			}
		}
		c.image.Note = fmt.Sprintf("only %s was taken, as a plain manifest instead of an index", platformOf(d))
		data, err := readManifest(ctx, c.from, d)
		return Manifest{Descriptor: d, Data: data}, err
	}
	return smallerIndex(root, doc, kept)
}

// matching returns the positions of the children to keep. It sets the platform of children that have none.
func (c *collector) matching(ctx context.Context, doc *document, platforms []schema.Platform) ([]int, error) {
	wanted := map[Digest]bool{}
	var have []string
	for i := range doc.Manifests {
		d := &doc.Manifests[i]
		if err := c.findPlatform(ctx, d); err != nil {
			return nil, err
		}
		p := platformOf(*d)
		if p == (schema.Platform{}) {
			continue
		}
		wanted[d.Digest] = matches(p, platforms)
		have = append(have, p.String())
	}
	var kept []int
	for i, d := range doc.Manifests {
		if wanted[d.Digest] || isAttestation(d) && wanted[attestedDigest(d)] {
			kept = append(kept, i)
		}
	}
	if len(kept) == 0 {
		return nil, noPlatform(strings.Join(have, ", "), platforms)
	}
	return kept, nil
}

// findPlatform reads the platform of a child from its configuration when the index has none.
func (c *collector) findPlatform(ctx context.Context, d *Descriptor) error {
	if d.Platform != nil {
		return nil
	}
	data, err := readManifest(ctx, c.from, *d)
	if err != nil {
		return err
	}
	doc, err := parseManifest(data, d.MediaType)
	switch {
	case err != nil:
		return inManifest(d.Digest, err)
	case doc.MediaType.IsIndex():
		return report.Errorf(report.Invalid, "index %s lies inside an index; platforms cannot be chosen from it", d.Digest).
			WithHint("leave spec.platforms out to take the whole image")
	case doc.Config == nil || !doc.Config.MediaType.IsConfig():
		return nil
	}
	b, err := c.from.blob(ctx, *doc.Config)
	if err != nil {
		return inManifest(d.Digest, err)
	}
	config, _, err := readConfig(ctx, b)
	if err != nil {
		return inManifest(d.Digest, err)
	}
	d.Platform = config.platform()
	return nil
}

func isAttestation(d Descriptor) bool { return d.Annotations[attestationSubject] != "" }

// attestedDigest returns the zero digest, which no manifest has, when the annotation is not one.
func attestedDigest(d Descriptor) Digest {
	digest, err := v1.NewHash(d.Annotations[attestationSubject])
	if err != nil {
		return Digest{}
	}
	return digest
}

func matches(p schema.Platform, platforms []schema.Platform) bool {
	return slices.ContainsFunc(platforms, func(wish schema.Platform) bool { return wish.Matches(p) })
}

func checkPlatform(p schema.Platform, platforms []schema.Platform) error {
	if p == (schema.Platform{}) || matches(p, platforms) {
		return nil
	}
	return noPlatform(p.String(), platforms)
}

func noPlatform(have string, platforms []schema.Platform) error {
	names := make([]string, len(platforms))
	for i, p := range platforms {
		names[i] = p.String()
	}
	return report.Errorf(report.Invalid, "the image is for %s, want %s", have, strings.Join(names, " or ")).
		WithHint("change spec.platforms or --platform, or build the image for the missing platform")
}

// smallerIndex is an index with some of the children of another; their entries are copied unchanged.
func smallerIndex(root Manifest, doc *document, kept []int) (Manifest, error) {
	var source struct {
		Manifests []json.RawMessage `json:"manifests"`
	}
	if err := json.Unmarshal(root.Data, &source); err != nil {
		return root, report.Errorf(report.Invalid, "index %s: %w", root.Digest, err)
	}
	children := make([]json.RawMessage, len(kept))
	for i, k := range kept {
		children[i] = source.Manifests[k]
	}
	data, err := encodeJSON(struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     string            `json:"mediaType"`
		ArtifactType  string            `json:"artifactType,omitempty"`
		Manifests     []json.RawMessage `json:"manifests"`
		Annotations   map[string]string `json:"annotations,omitempty"`
	}{2, string(doc.MediaType), doc.ArtifactType, children, doc.Annotations})
	return Manifest{Descriptor: blobDescriptor(doc.MediaType, data), Data: data}, err
}
