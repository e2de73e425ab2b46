package chunk

import (
	"context"
	"crypto/sha256"
	"hash"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Verify reads every chunk with that many workers and returns the ranges whose content differs from the list, in
// ascending order, neighbours joined. A file that ends before the listed size is bad from its end on; bytes after the
// listed size are ignored. The error means that the check could not be done.
//
// The list is worth as much as the reason to trust it, and the answer holds for the moment of reading only: to use
// content afterwards, read it through [NewReader].
func Verify(ctx context.Context, r io.ReaderAt, list *List, workers int, sink report.Sink) ([]Range, error) {
	if err := list.Validate(); err != nil {
		return nil, err
	}
	track := tracker{sink: sink, step: "verify", total: list.Size}
	r, workers = &inTurn{ReaderAt: r}, max(workers, 1)
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	var mu sync.Mutex
	var bad []Range
	for range workers {
		group.Go(func() error {
			h, buffer := sha256.New(), make([]byte, min(list.ChunkSize, list.Size, max(readMemory/int64(workers), MinSize)))
			for i := int(next.Add(1) - 1); i < list.Len(); i = int(next.Add(1) - 1) {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				place := list.Range(i)
				good, err := matches(r, place, list.digest(i), h, buffer)
				if err != nil {
					return err
				}
				if !good {
					mu.Lock()
					bad = append(bad, place)
					mu.Unlock()
				}
				track.add(place.Len())
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(bad, byStart)
	return merge(bad), nil
}

// readMemory is the size in bytes of the buffers of all workers together: whole chunks of the default size on two processors.
const readMemory = 8 << 20

// inTurn is read by one goroutine at a time. A disk would otherwise move between several places, and the kernel does not read ahead for them.
type inTurn struct {
	mu sync.Mutex
	io.ReaderAt
}

func (t *inTurn) ReadAt(p []byte, offset int64) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ReaderAt.ReadAt(p, offset)
}

// matches hashes one chunk in pieces, so that a worker needs little memory whatever the chunk size is.
func matches(r io.ReaderAt, place Range, want [sha256.Size]byte, h hash.Hash, buffer []byte) (bool, error) {
	h.Reset()
	for at := place.From; at < place.To; {
		piece := buffer[:min(int64(len(buffer)), place.To-at)]
		if err := readFull(r, piece, at); err != nil {
			if report.CodeOf(err) == report.Corrupt {
				return false, nil
			}
			return false, err
		}
		h.Write(piece)
		at += int64(len(piece))
	}
	return [sha256.Size]byte(h.Sum(nil)) == want, nil
}

// Compare returns the ranges of l whose digests differ from another list. Lists of different chunk sizes have nothing
// to compare and differ everywhere.
func (l *List) Compare(other *List) []Range {
	if l.ChunkSize != other.ChunkSize {
		return []Range{{From: 0, To: l.Size}}
	}
	var bad []Range
	for i := range l.Len() {
		if i >= other.Len() || l.digest(i) != other.digest(i) {
			bad = append(bad, l.Range(i))
		}
	}
	return merge(bad)
}
