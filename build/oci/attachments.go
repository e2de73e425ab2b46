package oci

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Attachment is an artifact of an image that is about one of its manifests: an attestation of BuildKit, or a referrer. Nothing proves what it has.
type Attachment struct {
	*Artifact        // without its configuration
	About     Digest // of the manifest
}

// Attachments returns the attestations and referrers that the image has, in the order of its manifests.
func (i *Image) Attachments() ([]Attachment, error) {
	attested := map[Digest][]Digest{} // the manifests that attestations are about
	blobs := i.positions()
	var list []Attachment
	for n := range i.Manifests {
		m := &i.Manifests[n]
		doc, err := parseManifest(m.Data, m.MediaType)
		if err != nil {
			return nil, inManifest(m.Digest, err)
		}
		for c := range doc.Manifests {
			if child := &doc.Manifests[c]; isAttestation(*child) {
				attested[child.Digest] = append(attested[child.Digest], attestedDigest(*child))
			}
		}
		subjects := attested[m.Digest]
		if subjects == nil && doc.Subject != nil {
			subjects = []Digest{doc.Subject.Digest}
		}
		if subjects == nil {
			continue
		}
		a, err := i.attachment(doc, blobs)
		if err != nil {
			return nil, inManifest(m.Digest, err)
		}
		for _, subject := range subjects {
			list = append(list, Attachment{a, subject})
		}
	}
	return list, nil
}

// attachment returns the artifact of a manifest of the image, whose blobs have these positions.
func (i *Image) attachment(doc *document, blobs map[Digest]int) (*Artifact, error) {
	a := &Artifact{Type: doc.artifactType(), Annotations: doc.Annotations, Layers: make([]Blob, len(doc.Layers))}
	for n := range doc.Layers {
		at, ok := blobs[doc.Layers[n].Digest]
		if !ok {
			return nil, report.Errorf(report.Corrupt, "blob %s is missing", doc.Layers[n].Digest)
		}
		a.Layers[n] = Blob{Descriptor: doc.Layers[n], Open: i.Blobs[at].Open}
	}
	return a, nil
}

// Types of artifacts about images, and of their layers.
const (
	SPDXType      = "application/spdx+json"
	CycloneDXType = "application/vnd.cyclonedx+json"
	InTotoType    = "application/vnd.in-toto+json"
	EnvelopeType  = "application/vnd.dsse.envelope.v1+json"
	BundleType    = "application/vnd.dev.sigstore.bundle.v0.3+json"
)

// billTypes are the types of artifacts that can have bills of materials.
var billTypes = []string{SPDXType, CycloneDXType, InTotoType, EnvelopeType, BundleType}

// CanBeBill reports whether a layer of an artifact can be a bill of materials, by what is known before it is read.
func (a *Artifact) CanBeBill(layer Descriptor) bool {
	isBundle := a.Type == BundleType || layer.MediaType == BundleType
	predicate := cmp.Or(layer.Annotations["in-toto.io/predicate-type"], a.Annotations["dev.sigstore.bundle.predicateType"])
	switch {
	case !slices.Contains(billTypes, a.Type) && !slices.Contains(billTypes, string(layer.MediaType)):
		return false
	case predicate == "":
		return !isBundle // most are signatures
	}
	return strings.HasPrefix(predicate, "https://spdx.dev/Document") || strings.HasPrefix(predicate, "https://cyclonedx.org/bom")
}

// bringBills adds the bills of materials that the source of the image has beside it: referrers in a registry, which those of a layout already
// are, and attestations of a platform that was taken alone.
func (i *Image) bringBills(ctx context.Context, jobs int) error {
	left, err := i.leftOut(ctx)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, d := range left {
		if total += d.Size; total > 8*maxDocument {
			return report.Errorf(report.Invalid, "the artifacts about the image have more than %d MiB of manifests", 8*maxDocument>>20)
		}
		if err = i.bringAgain(ctx, d); err != nil && !isIncomplete(err) {
			return inManifest(d.Digest, err)
		}
	}
	registry, ok := i.from.(*remoteContent)
	if !ok {
		return nil
	}
	for _, m := range i.Manifests { // without those that are added meanwhile
		doc, err := parseManifest(m.Data, m.MediaType)
		if err != nil {
			return inManifest(m.Digest, err)
		}
		if doc.MediaType.IsIndex() || isUnpacked(m, doc) {
			if err = i.bringReferrers(ctx, registry, m.Digest, jobs); err != nil {
				return err
			}
		}
	}
	return nil
}

// leftOut lists what the choice of platforms has left out: attestations, and referrers of the index that a smaller image replaces.
func (i *Image) leftOut(ctx context.Context) ([]Descriptor, error) {
	if i.whole == (Digest{}) {
		return i.left, nil
	}
	var list []Descriptor
	var err error
	switch from := i.from.(type) {
	case *remoteContent:
		list, err = from.referrers(ctx, i.whole, billTypes...)
	case *layout:
		var all map[Digest][]Descriptor
		all, err = from.findReferrers(ctx)
		list = slices.Clone(all[i.whole])
	}
	if err != nil {
		return nil, inManifest(i.whole, err)
	}
	slices.SortFunc(list, func(a, b Descriptor) int { return cmp.Compare(a.Digest.Hex, b.Digest.Hex) })
	return append(slices.Clone(i.left), list...), nil
}

// bringAgain adds the bills of an artifact about something that was left out, as an artifact that refers to the image. A statement names its
// subject itself: one about the index states nothing about the image.
func (i *Image) bringAgain(ctx context.Context, d Descriptor) error {
	data, err := readManifest(ctx, i.from, d)
	if err != nil {
		return err
	}
	doc, err := parseManifest(data, d.MediaType)
	if err != nil {
		return err
	}
	bills := Artifact{Type: InTotoType}
	if doc.Subject != nil && doc.Subject.Digest == i.whole {
		bills.Type = doc.artifactType()
		if bills.Type != SPDXType && bills.Type != CycloneDXType {
			return nil
		}
	}
	for _, layer := range doc.Layers {
		layer.Data = nil
		if !bills.CanBeBill(layer) {
			continue
		}
		b, failure := i.from.blob(ctx, layer)
		if failure != nil {
			return failure
		}
		bills.Layers = append(bills.Layers, b)
	}
	if len(bills.Layers) == 0 {
		return nil
	}
	with, err := Attach(i, bills)
	if err == nil {
		*i = *with
	}
	return err
}

// bringReferrers adds the bills that a registry lists as referrers of a manifest, in the order of their digests.
func (i *Image) bringReferrers(ctx context.Context, registry *remoteContent, subject Digest, jobs int) error {
	list, err := registry.referrers(ctx, subject, billTypes...)
	if err != nil {
		return inManifest(subject, err)
	}
	slices.SortFunc(list, func(a, b Descriptor) int { return cmp.Compare(a.Digest.Hex, b.Digest.Hex) })
	c := newCollector(registry, i, jobs)
	manifests, err := c.fetch(ctx, list)
	if err != nil {
		return inManifest(subject, err)
	}
	for _, m := range manifests {
		doc, err := parseManifest(m.Data, m.MediaType)
		if err != nil || doc.Subject == nil || doc.Subject.Digest != subject { // the list is of others than the image
			continue
		}
		a := Artifact{Type: doc.artifactType(), Annotations: doc.Annotations}
		if slices.ContainsFunc(doc.Layers, a.CanBeBill) {
			m.Platform = nil
			if err = c.add(ctx, m, 0); err != nil {
				return err
			}
		}
	}
	return nil
}
