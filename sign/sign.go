package sign

import (
	"context"
	"crypto"
	"io"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
	"github.com/solutionctl/solutionctl/sign/key"
)

// Claims holds the fields of a statement that a signer chooses; the others are computed from the archive.
type Claims struct {
	Name           string // of the file, without directories
	Solution       bundle.Solution
	CreatedAt      time.Time
	Expires        time.Time // zero: never
	ManifestDigest string    // "sha256:…" of manifest.yaml; may be empty
}

// NewStatement returns the statement to sign. Check the archive first: a signature vouches for it.
func NewStatement(sums *chunk.Sums, c Claims) (*bundle.Statement, error) {
	p := bundle.Predicate{Solution: c.Solution, CreatedAt: c.CreatedAt.UTC(), ManifestDigest: c.ManifestDigest}
	if !c.Expires.IsZero() {
		if !c.Expires.After(c.CreatedAt) {
			return nil, report.Errorf(report.Usage, "the signature would expire at %s, before it is made", c.Expires.UTC().Format(time.RFC3339))
		}
		expires := c.Expires.UTC()
		p.Expires = &expires
	}
	return bundle.NewStatement(c.Name, sums, p)
}

// FileBundle returns a bundle without a statement: a signature over the file alone, as `cosign sign-blob` makes it.
func FileBundle(ctx context.Context, r io.ReaderAt, size int64, signer *key.Signer, sink report.Sink) ([]byte, error) {
	h := signer.Public().Hash()
	if h == 0 {
		return nil, report.Errorf(report.Usage, "a key %s cannot sign a file by its digest", signer.Public().Algorithm()).
			WithHint("sign a statement (the default format), or use an ECDSA P-256 key")
	}
	var extra []crypto.Hash
	if h != crypto.SHA256 {
		extra = []crypto.Hash{h}
	}
	sums, err := chunk.Sum(ctx, r, size, sink, extra...)
	if err != nil {
		return nil, err
	}
	return bundle.SignDigest(ctx, signer, sums.Digest(h))
}

// BundleName returns the path of the bundle of an archive. Further signers put their name into it; an empty signer is
// the first one.
func BundleName(archive, signer string) string { return layout.BundleFile(archive, signer) }

// WriteBundle stores a bundle; a reader finds the old one or the new one, never a part.
func WriteBundle(path string, data []byte) error {
	return durable.WriteFile(path, append(slices.Clip(data), '\n'), 0o644)
}
