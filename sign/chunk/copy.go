package chunk

import (
	"context"
	"crypto/sha256"
	"io"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Copy writes the listed bytes of r to w, at the same offsets. Each chunk is written from the memory in which it was
// compared with the list, so nothing but what was listed is ever written, whatever happens to r meanwhile. The error of
// a chunk that differs has the code report.Corrupt; which chunks were written before it is not told.
func Copy(ctx context.Context, w io.WriterAt, r io.ReaderAt, list *List, workers int, sink report.Sink) error {
	if err := list.Validate(); err != nil {
		return err
	}
	track := tracker{sink: sink, step: "copy", total: list.Size}
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(max(workers, 1), list.Len()) {
		group.Go(func() error {
			buffer := make([]byte, min(list.ChunkSize, list.Size))
			for i := int(next.Add(1) - 1); i < list.Len(); i = int(next.Add(1) - 1) {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				place := list.Range(i)
				data := buffer[:place.Len()]
				if err := list.read(r, i, data); err != nil {
					return err
				}
				if _, err := w.WriteAt(data, place.From); err != nil {
					return err
				}
				track.add(place.Len())
			}
			return nil
		})
	}
	return group.Wait()
}

// read fills data with chunk i and compares it.
func (l *List) read(r io.ReaderAt, i int, data []byte) error {
	place := l.Range(i)
	if err := readFull(r, data, place.From); err != nil {
		return err
	}
	if sha256.Sum256(data) != l.digest(i) {
		return report.Errorf(report.Corrupt, "bytes %d to %d differ from what was signed", place.From, place.To-1)
	}
	return nil
}
