package chunk

import (
	"cmp"
	"context"
	"crypto/sha256"
	"io"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// sharedSize is the size of the pieces, in bytes, that are handed to other goroutines: large enough that waking them costs nothing
// beside hashing it, and small enough for a processor's cache. Chunks of the default size end where such pieces end.
const sharedSize = 512 << 10

// each reads a file once and hands every piece of some size, with the offset of its end, to each of the readers. These run
// at the same time, each in a goroutine of its own, and get the pieces in order, until one of them fails. That error counts more than one of reading,
// which happened further on in the file.
func each(ctx context.Context, r io.ReaderAt, size, pieceSize int64, track *tracker, readers ...func(piece []byte, end int64) error) error {
	const enough = 16 << 20 // bytes
	buffers := int(min(4, max(2, enough/pieceSize)))
	type shared struct {
		piece   []byte
		end     int64
		readers atomic.Int32 // that are not done with it
	}
	free := make(chan *shared, buffers)
	for range buffers {
		free <- &shared{piece: make([]byte, min(pieceSize, size))}
	}
	var unread error
	group, ctx := errgroup.WithContext(ctx)
	queues := make([]chan *shared, len(readers))
	for i, read := range readers {
		queues[i] = make(chan *shared, buffers)
		group.Go(func() error {
			for s := range queues[i] {
				if err := read(s.piece, s.end); err != nil {
					return err // the other pieces are not needed any more
				}
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
			var s *shared
			select {
			case s = <-free:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			s.piece = s.piece[:min(pieceSize, size-end)]
			if unread = readFull(r, s.piece, end); unread != nil {
				return nil //nolint:nilerr // the others have pieces that come before
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
	return cmp.Or(group.Wait(), unread)
}

// eachChunk returns a reader for [each] that hashes the chunks of a file, and passes on the digest of each. Pieces have to end where chunks end.
func eachChunk(chunkSize, size int64, use func(i int, digest [sha256.Size]byte) error) func(piece []byte, end int64) error {
	chunk := sha256.New()
	return func(piece []byte, end int64) error {
		chunk.Write(piece)
		if end%chunkSize != 0 && end != size {
			return nil
		}
		digest := [sha256.Size]byte(chunk.Sum(nil))
		chunk.Reset()
		return use(int((end-1)/chunkSize), digest)
	}
}
