package sign

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

// content returns the list to check the archive with, and the digest of the whole.
func (v *verification) content(accepted []*candidate) (*chunk.List, [sha256.Size]byte) {
	for _, c := range accepted {
		if st := c.bundle.Statement(); st != nil {
			return &st.Predicate.Chunks, st.SHA256()
		}
	}
	return &v.sums.Chunks, v.sums.SHA256
}

// decisive reports whether the digest of the whole decides more than the chunks do. A signer of both could have signed
// the digest of another archive, one that was not revoked or that was imported before.
func (v *verification) decisive() bool {
	return v.Store.RevokesArchives() || v.State.Knows(*v.verdict.Solution)
}

func (v *verification) checkContent(ctx context.Context, list *chunk.List, digest [sha256.Size]byte) error {
	if v.sums == nil && (v.Full || !v.OnRead && v.decisive()) {
		if err := v.sum(ctx, list.Size); err != nil {
			return err
		}
	}
	if v.OnRead && v.sums == nil {
		v.verdict.check("content", Deferred, "checked at each read")
		return nil
	}
	bad, err := v.differences(ctx, list)
	if err == nil && v.Unchanged != nil {
		err = v.Unchanged()
	}
	if err != nil {
		return err
	}
	if len(bad) > 0 || v.sums != nil && v.sums.SHA256 != digest {
		err := v.altered(bad, list.Size)
		v.verdict.check("content", Failed, err.Error())
		return err
	}
	v.verdict.check("content", Passed, fmt.Sprintf("%d bytes", list.Size))
	return nil
}

// maxNamed bounds the ranges whose files are named: people read the first ones, and a damaged archive can have thousands.
const maxNamed = 1000

// altered records which parts of the archive differ from the signed digests.
func (v *verification) altered(bad []chunk.Range, size int64) error {
	v.verdict.Tampered = nil
	for i, place := range bad {
		entry := Tampered{From: place.From, To: place.To}
		if v.Locate != nil && i < maxNamed {
			entry.File = v.Locate(place)
		}
		v.verdict.Tampered = append(v.verdict.Tampered, entry)
	}
	return describe(bad, size)
}

// differences compares with the digests of a file whose whole was read already, or reads the file with all workers.
func (v *verification) differences(ctx context.Context, list *chunk.List) ([]chunk.Range, error) {
	if v.sums == nil {
		return chunk.Verify(ctx, v.r, list, v.Workers, v.sink())
	}
	computed, err := v.computed(ctx, list.ChunkSize)
	if err != nil {
		return nil, err
	}
	return list.Compare(computed), nil
}

// computed returns the digests of the file's chunks of this size. They are kept: one hostile signer could name any number of lists.
func (v *verification) computed(ctx context.Context, chunkSize int64) (*chunk.List, error) {
	if chunkSize == v.sums.Chunks.ChunkSize {
		return &v.sums.Chunks, nil
	}
	if list := v.lists[chunkSize]; list != nil {
		return list, nil
	}
	list, err := chunk.SumChunks(ctx, v.r, v.sums.Chunks.Size, chunkSize, v.sink())
	if err != nil {
		return nil, err
	}
	if v.lists == nil {
		v.lists = map[int64]*chunk.List{}
	}
	v.lists[chunkSize] = list
	return list, nil
}

func describe(bad []chunk.Range, size int64) error {
	if len(bad) == 0 {
		return report.Errorf(report.Mismatch, "the statement contradicts itself: its chunks match the archive, its digest does not").
			WithHint("sign the archive again")
	}
	if len(bad) == 1 && bad[0].Len() == size && size > chunk.DefaultSize {
		return report.Errorf(report.Mismatch, "no part of the archive matches the signed digests").
			WithHint("the signature belongs to another archive")
	}
	more := ""
	if len(bad) > 1 {
		more = fmt.Sprintf(" and %d further ranges", len(bad)-1)
	}
	return report.Errorf(report.Corrupt, "bytes %d to %d%s differ from what was signed", bad[0].From, bad[0].To-1, more).
		WithHint("copy the archive again from its source, and verify that copy")
}

func (v *verification) checkIdentity(r *chunk.Reader, accepted []*candidate) error {
	if v.Identify == nil {
		v.verdict.check("identity", Skipped, "")
		return nil
	}
	inside, err := v.Identify(r, r.Size())
	for _, c := range accepted {
		if st := c.bundle.Statement(); err == nil && st != nil {
			err = inside.compare(st)
		}
	}
	if err != nil {
		v.verdict.check("identity", Failed, err.Error())
		return err
	}
	v.verdict.check("identity", Passed, inside.String())
	return nil
}

// Identity is the Solution in the manifest of an archive, and the digest of the manifest.
type Identity struct {
	bundle.Solution
	ManifestDigest string // "sha256:…" of manifest.yaml
}

// compare refuses a statement that differs from the manifest. The digest is optional.
func (i Identity) compare(st *bundle.Statement) error {
	hint := "the vendor has to sign the archive with the name and version of its manifest"
	if signed := st.Predicate.Solution; signed != i.Solution {
		return report.Errorf(report.Mismatch, "%s was signed, but the manifest in the archive is of %s", signed, i.Solution).WithHint("%s", hint)
	}
	if signed := st.Predicate.ManifestDigest; signed != "" && signed != i.ManifestDigest {
		return report.Errorf(report.Mismatch, "manifest.yaml with digest %s was signed, the one in the archive has %s", signed, i.ManifestDigest).
			WithHint("the vendor has to sign the archive again")
	}
	return nil
}
