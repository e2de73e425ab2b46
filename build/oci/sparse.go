package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// sparseIndex is an image whose index names more than the place holds. `docker save` with the containerd image store and
// `ctr images export` write the index as it was pulled, with the blobs of those platforms that were pulled.
type sparseIndex struct {
	layout   *layout
	root     Manifest
	doc      *document
	variants []variant
}

// variant is one image of an index for one platform.
type variant struct {
	position int // in the index
	platform schema.Platform
	image    *Image // nil where a part of it is missing
}

// isIncomplete reports that an image could not be gathered because a manifest or a blob of it is not there.
func isIncomplete(err error) bool {
	return errors.Is(err, fs.ErrNotExist) && report.CodeOf(err) == report.Corrupt
}

// sparse returns the present part of an image in a place; nil when d is not a readable index.
func (l *layout) sparse(ctx context.Context, d Descriptor) *sparseIndex {
	data, err := readManifest(ctx, l, d)
	if err != nil {
		return nil
	}
	doc, err := parseManifest(data, d.MediaType)
	if err != nil || !doc.MediaType.IsIndex() {
		return nil
	}
	s := &sparseIndex{layout: l, root: Manifest{Descriptor: d, Data: data}, doc: doc}
	for i, child := range doc.Manifests {
		if isAttestation(child) {
			continue
		}
		v := variant{position: i, platform: platformOf(child)}
		if v.image, err = l.image(ctx, child, nil); err == nil {
			v.platform = platformOf(v.image.Root)
		}
		s.variants = append(s.variants, v)
	}
	return s
}

// take returns the image with the wanted platforms when all of these are there and nothing but attestations is missing.
// Otherwise it returns the error, with the platforms that can be taken as its hint.
func (s *sparseIndex) take(ctx context.Context, platforms []schema.Platform, missing error) (*Image, error) {
	if s == nil {
		return nil, missing
	}
	var kept []int
	var there []string
	lacking := len(platforms) == 0
	for _, v := range s.variants {
		wanted := matches(v.platform, platforms)
		switch {
		case v.image == nil:
			lacking = lacking || wanted
		case wanted:
			kept = append(kept, v.position)
			fallthrough
		default:
			there = append(there, v.platform.String())
		}
	}
	if lacking || len(kept) == 0 {
		return nil, s.explain(missing, there)
	}
	if len(kept) == 1 {
		return s.only(ctx, kept[0], "its index names attestations that are not there")
	}
	root, err := smallerIndex(s.root, s.doc, kept)
	if err != nil {
		return nil, err
	}
	image, err := collect(ctx, s.layout, root, nil, 1)
	if err == nil {
		image.Note = fmt.Sprintf("%d of %d manifests of the index were taken: attestations are not there", len(kept), len(s.doc.Manifests))
	}
	return image, err
}

// only returns the image at a position of the index as a plain manifest.
func (s *sparseIndex) only(ctx context.Context, position int, reason string) (*Image, error) {
	image, err := s.layout.image(ctx, s.doc.Manifests[position], nil)
	if err == nil {
		image.Note = fmt.Sprintf("only %s was taken, as a plain manifest: %s", platformOf(image.Root), reason)
	}
	return image, err
}

// explain adds the platforms that are complete to the error.
func (s *sparseIndex) explain(missing error, there []string) error {
	slices.Sort(there)
	there = slices.Compact(there)
	if len(there) == 0 {
		return missing
	}
	return report.Errorf(report.Corrupt, "the index names more than the source holds: %w", missing).
		WithHint("the source holds %s only; to take that, add --platform %s", strings.Join(there, ", "), strings.Join(there, ","))
}

// withConfig returns the one complete image of the index that has one of the configurations; nil when it is not one.
func (s *sparseIndex) withConfig(configs []Digest) *variant {
	if s == nil {
		return nil
	}
	var found *variant
	for i, v := range s.variants {
		if v.image == nil || !slices.ContainsFunc(v.image.Blobs, func(b Blob) bool { return slices.Contains(configs, b.Digest) }) {
			continue
		}
		if found != nil {
			return nil
		}
		found = &s.variants[i]
	}
	return found
}
