package artifact

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Remote is an archive in a registry. Nothing of it is trusted.
type Remote struct {
	Layout schema.ArchiveLayout
	Digest string // of the artifact

	reference Reference
	digest    oci.Digest
	resolver  *oci.Resolver
	frame     oci.Blob
	blobs     map[string]oci.Blob // by digest in hexadecimal
}

// Open finds an archive in a registry and reads its layout.
func Open(ctx context.Context, resolver *oci.Resolver, reference Reference) (*Remote, error) {
	if reference.Tag == "" && reference.Digest == "" {
		return nil, report.Errorf(report.Usage, "%s does not say which version", reference).WithHint("add the version as the tag: %s:VERSION", reference)
	}
	found, err := resolver.Artifact(ctx, reference.name())
	if err != nil {
		return nil, err
	}
	r := &Remote{Digest: found.Digest.String(), digest: found.Digest, reference: reference, resolver: resolver, blobs: map[string]oci.Blob{}}
	if err = r.read(ctx, found); err != nil {
		return nil, fmt.Errorf("%s: %w", reference, err)
	}
	return r, nil
}

// read refuses a manifest whose layers are not those of the layout.
func (r *Remote) read(ctx context.Context, found *oci.FoundArtifact) error {
	if found.Type != Type {
		return report.Errorf(report.Invalid, "this is an artifact of the type %q, not an archive", found.Type).
			WithHint("an archive is put there with: solutionctl push ARCHIVE.iso %s%s", Scheme, r.reference.Repository)
	}
	document, err := oci.ReadBlob(ctx, *found.Config, maxLayout)
	if err != nil {
		return err
	}
	a, err := schema.ParseArchiveArtifact(document)
	if err != nil {
		return err
	}
	r.Layout = a.Layout
	want := layout.Blobs(&r.Layout)
	if len(found.Layers) != len(want)+1 || found.Layers[0].Size != layout.FrameSize(r.Layout.Frame) {
		return mismatch()
	}
	r.frame = found.Layers[0]
	for i, b := range want {
		layer := found.Layers[i+1]
		if layer.Digest.Hex != b.SHA256 || layer.Size != b.Size {
			return mismatch()
		}
		r.blobs[b.SHA256] = layer
	}
	return nil
}

func mismatch() error {
	return report.Errorf(report.Invalid, "the layers of the manifest are not those of the layout").WithHint("push the archive again from its source")
}

// Bundles reads the signatures that refer to the archive. Others may have added some: each is judged by itself, and those that are damaged or no
// signatures are left out. Small ones come first, and are read as long as all together have a size: as the number of referrers is bounded, no
// large ones take the place of one with less than 64 KiB. A signer has its name by the order of the registry, and no other one has the digest
// of a bundle as the name of its file.
func (r *Remote) Bundles(ctx context.Context) ([]layout.Bundle, error) {
	found, err := r.resolver.Referrers(ctx, r.reference.name(), r.digest, bundleType)
	if err != nil {
		return nil, fmt.Errorf("signatures of %s: %w", r.reference, err)
	}
	type signature struct {
		signer string
		oci.Blob
	}
	var signatures []signature
	names := map[string]bool{}
	for _, a := range found {
		if len(a.Layers) != 1 || a.Layers[0].Size > maxBundle {
			continue
		}
		signer, digest := a.Annotations[signerAnnotation], a.Layers[0].Digest.Hex
		if names[signer] || signer != "" && !layout.IsSigner(signer) || len(signer) == len(digest) {
			signer = digest // a file of its own
		}
		names[signer] = true
		signatures = append(signatures, signature{signer, a.Layers[0]})
	}
	slices.SortStableFunc(signatures, func(a, b signature) int { return cmp.Compare(a.Size, b.Size) })
	var bundles []layout.Bundle
	total := int64(0)
	for _, s := range signatures {
		if total += s.Size; total > maxBundles {
			break
		}
		data, err := oci.ReadBlob(ctx, s.Blob, maxBundle)
		if code := report.CodeOf(err); code == report.Invalid || code == report.Corrupt {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("signature %s of %s: %w", s.Digest, r.reference, err)
		}
		bundles = append(bundles, layout.Bundle{Signer: s.signer, Data: data})
	}
	return bundles, nil
}
