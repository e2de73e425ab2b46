package chunk

import (
	"context"
	"crypto"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Sums holds the digests of a file, computed in one read.
type Sums struct {
	SHA256 [sha256.Size]byte
	Chunks List
	extra  map[crypto.Hash][]byte
}

// Digest returns the digest of the whole file: SHA-256, or one of the hashes that were asked for in addition. It
// returns nil for any other.
func (s *Sums) Digest(h crypto.Hash) []byte {
	if h == crypto.SHA256 {
		return s.SHA256[:]
	}
	return s.extra[h]
}

// newHashes starts the hashes that are wanted besides SHA-256, for a file of this size.
func newHashes(size int64, wanted []crypto.Hash) (map[crypto.Hash]hash.Hash, error) {
	if size <= 0 {
		return nil, report.Errorf(report.Invalid, "the file is empty")
	}
	hashes := map[crypto.Hash]hash.Hash{}
	for _, h := range wanted {
		if !h.Available() {
			return nil, report.Errorf(report.Invalid, "hash %v is not supported", h)
		}
		if h != crypto.SHA256 && hashes[h] == nil {
			hashes[h] = h.New()
		}
	}
	return hashes, nil
}

func newSums(size int64, extras map[crypto.Hash]hash.Hash) Sums {
	sums := Sums{Chunks: List{Size: size, ChunkSize: DefaultSize, Algorithm: algorithm}, extra: map[crypto.Hash][]byte{}}
	for h, whole := range extras {
		sums.extra[h] = whole.Sum(nil)
	}
	return sums
}

// Sum reads size bytes once. It computes the SHA-256 digest of the whole, that of each chunk, and the digest of the
// whole by each extra hash; all of them describe the same bytes even when the file changes meanwhile.
func Sum(ctx context.Context, r io.ReaderAt, size int64, sink report.Sink, extra ...crypto.Hash) (*Sums, error) {
	extras, err := newHashes(size, extra)
	if err != nil {
		return nil, err
	}
	whole, digests := sha256.New(), []byte(nil)
	err = each(ctx, r, size, sharedSize, &tracker{sink: sink, step: "hash", total: size},
		func(piece []byte, _ int64) error {
			whole.Write(piece)
			for _, h := range extras {
				h.Write(piece)
			}
			return nil
		},
		eachChunk(DefaultSize, size, func(_ int, digest [sha256.Size]byte) error {
			digests = append(digests, digest[:]...)
			return nil
		}))
	if err != nil {
		return nil, err
	}
	sums := newSums(size, extras)
	sums.Chunks.Digests = digests
	whole.Sum(sums.SHA256[:0])
	return &sums, nil
}

// SumChunks reads size bytes once and returns the digests of their chunks, which may have another size than those of [Sum].
func SumChunks(ctx context.Context, r io.ReaderAt, size, chunkSize int64, sink report.Sink) (*List, error) {
	list := &List{Size: size, ChunkSize: chunkSize, Algorithm: algorithm}
	err := each(ctx, r, size, min(sharedSize, chunkSize), &tracker{sink: sink, step: "hash", total: size},
		eachChunk(chunkSize, size, func(_ int, digest [sha256.Size]byte) error {
			list.Digests = append(list.Digests, digest[:]...)
			return nil
		}))
	return list, err
}

// readFull reads exactly len(buffer) bytes. A file that ends early is damaged, not merely unreadable.
func readFull(r io.ReaderAt, buffer []byte, offset int64) error {
	n, err := r.ReadAt(buffer, offset)
	switch {
	case n == len(buffer):
		return nil
	case err == nil || err == io.EOF || err == io.ErrUnexpectedEOF: //nolint:errorlint // ReaderAt returns EOF bare
		return report.Errorf(report.Corrupt, "the file ends at byte %d, earlier than expected", offset+int64(n))
	default:
		return fmt.Errorf("read at byte %d: %w", offset, err)
	}
}
