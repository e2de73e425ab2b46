package chunk

import (
	"cmp"
	"context"
	"crypto/sha256"
	"io"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Copy writes the listed bytes of r to w, at the same offsets, and returns the digest of the whole, in one read. Each chunk
// is written from the memory in which it was compared with the list, so only listed content is ever written,
// whatever happens to r meanwhile. Zeros that were read before, if any, are confirmed. Several goroutines write at once. The error of a chunk that
// differs has the code report.Corrupt; it names the first such chunk, and not which other chunks were written.
func Copy(ctx context.Context, w io.WriterAt, r io.ReaderAt, list *List, before *Zeros, sink report.Sink) (digest [sha256.Size]byte, _ error) {
	return list.stream(ctx, r, before, &tracker{sink: sink, step: "copy", total: list.Size}, w)
}

// Check compares the listed bytes of r with the list, confirms zeros that were read before, if any, and returns the digest of the whole, in one
// read. The error of a chunk that differs has the code report.Corrupt; it names the first such chunk.
func Check(ctx context.Context, r io.ReaderAt, list *List, before *Zeros, sink report.Sink) (digest [sha256.Size]byte, err error) {
	if err = list.Validate(); err != nil {
		return digest, err
	}
	whole := sha256.New()
	var changed error
	compare := eachChunk(list.ChunkSize, list.Size, func(i int, digest [sha256.Size]byte) error {
		return cmp.Or(list.compare(i, digest), changed)
	})
	err = each(ctx, r, list.Size, min(sharedSize, list.ChunkSize), &tracker{sink: sink, step: "hash", total: list.Size},
		func(piece []byte, _ int64) error {
			whole.Write(piece)
			return nil
		},
		func(piece []byte, end int64) error {
			if before != nil && changed == nil {
				changed = before.Confirm(piece, end-int64(len(piece)))
			}
			return compare(piece, end)
		})
	whole.Sum(digest[:0])
	return digest, err
}

func (l *List) compare(i int, digest [sha256.Size]byte) error {
	if digest != l.digest(i) {
		place := l.Range(i)
		return report.Errorf(report.Corrupt, "bytes %d to %d differ from what was signed", place.From, place.To-1)
	}
	return nil
}
