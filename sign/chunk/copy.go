package chunk

import (
	"context"
	"crypto/sha256"
	"io"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Copy writes the listed bytes of r to w, at the same offsets, and returns the digest of the whole, in one read. Each chunk
// is written from the memory in which it was compared with the list, so nothing but what was listed is ever written,
// whatever happens to r meanwhile. The error of a chunk that differs has the code report.Corrupt; which chunks were written
// before it is not told.
func Copy(ctx context.Context, w io.WriterAt, r io.ReaderAt, list *List, sink report.Sink) (digest [sha256.Size]byte, _ error) {
	if err := list.Validate(); err != nil {
		return digest, err
	}
	whole, next := sha256.New(), 0
	failed := each(ctx, r, list.Size, list.ChunkSize, &tracker{sink: sink, step: "copy", total: list.Size},
		func(piece []byte, _ int64) error {
			_, err := whole.Write(piece)
			return err
		},
		func(piece []byte, _ int64) error {
			place := list.Range(next)
			if err := list.compare(next, piece); err != nil {
				return err
			}
			next++
			_, err := w.WriteAt(piece, place.From)
			return err
		})
	whole.Sum(digest[:0])
	return digest, failed
}

// read fills data with chunk i and compares it.
func (l *List) read(r io.ReaderAt, i int, data []byte) error {
	if err := readFull(r, data, l.Range(i).From); err != nil {
		return err
	}
	return l.compare(i, data)
}

func (l *List) compare(i int, data []byte) error {
	if sha256.Sum256(data) != l.digest(i) {
		place := l.Range(i)
		return report.Errorf(report.Corrupt, "bytes %d to %d differ from what was signed", place.From, place.To-1)
	}
	return nil
}
