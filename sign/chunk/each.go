package chunk

import (
	"context"
	"io"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// sharedSize is the size of the pieces, in bytes, that are handed to other goroutines: large enough that waking them costs nothing
// beside hashing it. Chunks end where such pieces end.
const sharedSize = 1 << 20

// each reads a file once and hands every piece, with the offset of its end, to each of the readers. These run at the
// same time, each in a goroutine of its own, and get the pieces in order.
func each(ctx context.Context, r io.ReaderAt, size int64, track *tracker, readers ...func(piece []byte, end int64)) error {
	const buffers = 4
	type shared struct {
		piece   []byte
		end     int64
		readers atomic.Int32 // that are not done with it
	}
	free := make(chan *shared, buffers)
	for range buffers {
		free <- &shared{piece: make([]byte, min(sharedSize, size))}
	}
	var group errgroup.Group
	queues := make([]chan *shared, len(readers))
	for i, read := range readers {
		queues[i] = make(chan *shared, buffers)
		group.Go(func() error {
			for s := range queues[i] {
				read(s.piece, s.end)
				if s.readers.Add(-1) == 0 {
					track.add(int64(len(s.piece)))
					free <- s
				}
			}
			return nil
		})
	}
	group.Go(func() error {
		defer func() {
			for _, queue := range queues {
				close(queue)
			}
		}()
		for end := int64(0); end < size; {
			s := <-free
			s.piece = s.piece[:min(sharedSize, size-end)]
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			if err := readFull(r, s.piece, end); err != nil {
				return err
			}
			end += int64(len(s.piece))
			s.end = end
			s.readers.Store(int32(len(readers))) //nolint:gosec // two
			for _, queue := range queues {
				queue <- s
			}
		}
		return nil
	})
	return group.Wait()
}
