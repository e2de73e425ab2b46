package chunk

import (
	"context"
	"crypto"
	"hash"
	"io"
	"slices"
	"sync"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/chunk/internal/twin"
)

// Follower computes [Sums] of a file while others write it, at any offsets and in any order. It reads the written bytes
// back through the page cache, so that the file need not be read from the disk a second time.
type Follower struct {
	ctx  context.Context //nolint:containedctx // it lives exactly as long as the goroutines of the follower
	r    io.ReaderAt
	size int64
	sink report.Sink

	mu      sync.Mutex
	grown   *sync.Cond
	hashed  int64   // every byte below was read
	ready   int64   // every byte below is written
	islands []Range // written, above ready; ascending, disjoint

	ended bool // nothing is read any more
	done  chan struct{}
	sums  Sums
	err   error
}

// pieceSize is the size of one read in bytes: it fits into a processor's cache.
const pieceSize = 128 << 10

// lead is the greatest distance, in bytes, of a writer ahead of the hashing.
const lead = 32 << 20

// Follow starts to follow a file that will have size bytes. The caller must let it finish: either every byte is
// reported through [Follower.Complete], or ctx is cancelled.
func Follow(ctx context.Context, r io.ReaderAt, size int64, sink report.Sink, extra ...crypto.Hash) (*Follower, error) {
	extras, err := newHashes(size, extra)
	if err != nil {
		return nil, err
	}
	f := &Follower{ctx: ctx, r: r, size: size, sink: sink, done: make(chan struct{})}
	f.grown = sync.NewCond(&f.mu)
	go func() {
		defer close(f.done)
		f.err = f.run(twin.New(DefaultSize), extras) // the writers keep the other processors busy
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ended = true
		f.grown.Broadcast()
	}()
	return f, nil
}

// Complete reports to f that n bytes from offset on are written and will not change any more. It is safe for concurrent
// use. It holds up a writer that is far ahead of the hashing: the hash of the whole is one sequence, and its remainder
// after the last write keeps only one processor busy. It holds up none while the hashing waits for bytes of another writer, which may have failed.
func (f *Follower) Complete(offset, n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n > 0 {
		f.islands = append(f.islands, Range{From: offset, To: offset + n})
	}
	slices.SortFunc(f.islands, byStart)
	f.islands = merge(f.islands)
	if len(f.islands) > 0 && f.islands[0].From <= f.ready {
		f.ready = max(f.ready, f.islands[0].To)
		f.islands = f.islands[1:]
		f.grown.Broadcast()
	}
	for f.hashed+pieceSize <= f.ready && f.hashed+lead < offset+n && !f.ended {
		f.grown.Wait()
	}
}

// Sums waits until the whole file was hashed.
func (f *Follower) Sums() (*Sums, error) {
	<-f.done
	if f.err != nil {
		return nil, f.err
	}
	return &f.sums, nil
}

// run reads the file in order and hashes it.
func (f *Follower) run(both *twin.Hash, extras map[crypto.Hash]hash.Hash) error {
	stop := context.AfterFunc(f.ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.grown.Broadcast()
	})
	defer stop()

	track := tracker{sink: f.sink, step: "hash", total: f.size}
	piece := make([]byte, pieceSize)
	for offset := int64(0); offset < f.size; {
		piece = piece[:min(pieceSize, f.size-offset)]
		if err := f.wait(offset + int64(len(piece))); err != nil {
			return err
		}
		if err := readFull(f.r, piece, offset); err != nil {
			return err
		}
		both.Write(piece)
		for _, h := range extras {
			h.Write(piece)
		}
		offset += int64(len(piece))
		track.add(int64(len(piece)))
		f.advance(offset)
	}

	f.sums = newSums(f.size, extras)
	f.sums.SHA256, f.sums.Chunks.Digests = both.Sums()
	return nil
}

func (f *Follower) advance(hashed int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hashed = hashed
	f.grown.Broadcast()
}

// wait returns when every byte below end is written.
func (f *Follower) wait(end int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.ready < end && f.ctx.Err() == nil {
		f.grown.Wait()
	}
	return context.Cause(f.ctx)
}
