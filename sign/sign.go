package sign

import (
	"context"
	"crypto"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

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

// NewStatement returns the statement to sign. Check the archive first: a signature tells others that they need not.
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
func BundleName(archive, signer string) string {
	if signer != "" {
		signer = "." + signer
	}
	return archive + signer + bundle.Suffix
}

// maxBundles bounds how many bundles of one archive are looked at.
const maxBundles = 32

// NamedBundle is a bundle as it was found.
type NamedBundle struct {
	File string
	Data []byte
}

// FindBundles reads the bundles beside an archive, in the order of their names.
func FindBundles(archive string) ([]NamedBundle, error) {
	dir, base := filepath.Split(archive)
	if dir == "" {
		dir = "."
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []NamedBundle
	for _, entry := range entries {
		middle, ok := strings.CutPrefix(entry.Name(), base)
		if !ok {
			continue
		}
		if middle, ok = strings.CutSuffix(middle, bundle.Suffix); !ok || middle != "" && middle[0] != '.' {
			continue
		}
		if len(found) == maxBundles {
			return nil, report.Errorf(report.Usage, "%s has more than %d signatures beside it", archive, maxBundles)
		}
		b, err := ReadBundle(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		found = append(found, b)
	}
	return found, nil
}

// ReadBundles reads these bundles, or those beside the archive where none are named.
func ReadBundles(archive string, named []string) ([]NamedBundle, error) {
	if named == nil {
		return FindBundles(archive)
	}
	var bundles []NamedBundle
	for _, name := range named {
		b, err := ReadBundle(name)
		if err != nil {
			return nil, err
		}
		bundles = append(bundles, b)
	}
	return bundles, nil
}

// ReadBundle reads one bundle file, at most a byte more than a bundle may have.
func ReadBundle(path string) (NamedBundle, error) {
	f, err := openNoFollow(path)
	if err != nil {
		return NamedBundle{}, err
	}
	defer f.Close() //nolint:errcheck // opened for reading
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return NamedBundle{}, report.Errorf(report.Usage, "%s is not a file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, bundle.MaxSize+1))
	return NamedBundle{File: path, Data: data}, err
}

// WriteBundle stores a bundle; a reader finds the old one or the new one, never a part.
func WriteBundle(path string, data []byte) error {
	return durable.WriteFile(path, append(slices.Clip(data), '\n'), 0o644)
}
