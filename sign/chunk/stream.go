package chunk

import (
	"context"
	"crypto/sha256"
	"hash"
	"io"
	"sync"
	"sync/atomic"

	"github.com/solutionctl/solutionctl/sign/chunk/internal/twin"
)

// stream is one pass over a file whose chunks are listed. Goroutines share it: one reads chunks in order, one
// hashes the whole, one compares each chunk with the list, and two write the chunks that were equal.
//
// The digest of the whole is one sequence, and decides how long the pass takes. The digest of a chunk can be computed by
// either of two goroutines: the one that comes to the chunk first. Where that is the one of the whole, it computes both
// digests in one pass, which costs half a hash more. So two processors finish together. The one of the whole always does that with one of three,
// so that the other processor also reads and writes.
type stream struct {
	list   *List
	before *Zeros // nil: none
	track  *tracker
	out    io.WriterAt // for several goroutines at once
	whole  hash.Hash
	cancel context.CancelFunc

	free, sequence, unequal, equal chan *piece

	mu     sync.Mutex
	failed int // the chunk of err
	err    error
}

// piece is a chunk in memory.
type piece struct {
	index   int
	data    []byte
	claimed atomic.Bool  // by the goroutine that compares it
	users   atomic.Int32 // goroutines that are not done with it
}

// writers are the goroutines that write chunks. While one waits for the medium, the other has the next write ready.
const writers = 2

// sharing is the number of chunks of which the goroutine of the whole computes both digests of one.
const sharing = 3

// inMemory is the size in bytes of the chunks that a pass holds at once, if they are small. Their memory is used in turn. Twice as much does not
// stay in the processor's caches, and its digests take a sixth longer.
const inMemory = 12 << 20

func (l *List) stream(ctx context.Context, r io.ReaderAt, before *Zeros, track *tracker, out io.WriterAt) (digest [sha256.Size]byte, _ error) {
	if err := l.Validate(); err != nil {
		return digest, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n := min(int(min(6, max(2, inMemory/l.ChunkSize))), l.Len())
	s := &stream{
		list: l, before: before, track: track, out: out, whole: sha256.New(), cancel: cancel, failed: l.Len(),
		// No queue is ever full: the pieces are as many as its places.
		free: make(chan *piece, n), sequence: make(chan *piece, n), unequal: make(chan *piece, n), equal: make(chan *piece, n),
	}
	for range n {
		s.free <- &piece{data: make([]byte, min(l.ChunkSize, l.Size))}
	}
	var all, comparing sync.WaitGroup
	all.Go(func() { s.readAll(ctx, r) })
	comparing.Go(s.hashWhole)
	comparing.Go(s.compareAll)
	for range writers {
		all.Go(s.writeEqual)
	}
	comparing.Wait()
	close(s.equal)
	all.Wait()
	s.whole.Sum(digest[:0])
	return digest, s.err
}

// readAll reads the chunks in order, until one of them has failed.
func (s *stream) readAll(ctx context.Context, r io.ReaderAt) {
	defer close(s.sequence)
	defer close(s.unequal)
	for i := range s.list.Len() {
		var p *piece
		select {
		case p = <-s.free:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			s.fail(i, context.Cause(ctx))
			return
		}
		place := s.list.Range(i)
		p.index, p.data = i, p.data[:place.Len()]
		if err := readFull(r, p.data, place.From); err != nil {
			s.fail(i, err)
			return
		}
		p.claimed.Store(false)
		p.users.Store(2)
		s.sequence <- p
		s.unequal <- p
	}
}

// hashWhole hashes the whole, and compares the chunks that no other goroutine compares yet.
func (s *stream) hashWhole() {
	for p := range s.sequence {
		switch {
		case s.skips(p):
		case p.claimed.CompareAndSwap(false, true):
			s.compare(p, twin.Both(s.whole, p.data))
		default:
			s.whole.Write(p.data)
		}
		s.release(p)
	}
}

// compareAll compares the chunks that the goroutine of the whole does not.
func (s *stream) compareAll() {
	for p := range s.unequal {
		if !s.isLeft(p) && !s.skips(p) && p.claimed.CompareAndSwap(false, true) {
			s.compare(p, sha256.Sum256(p.data))
		}
		s.release(p)
	}
}

// isLeft reports whether a chunk is left to the goroutine of the whole.
func (s *stream) isLeft(p *piece) bool { return p.index%sharing == 0 }

func (s *stream) compare(p *piece, digest [sha256.Size]byte) {
	err := s.list.compare(p.index, digest)
	if err == nil && s.before != nil {
		err = s.before.Confirm(p.data, s.list.Range(p.index).From)
	}
	if err != nil {
		s.fail(p.index, err)
		return
	}
	p.users.Add(1)
	s.equal <- p
}

// writeEqual writes what was equal to the list.
func (s *stream) writeEqual() {
	for p := range s.equal {
		if !s.skips(p) {
			if _, err := s.out.WriteAt(p.data, s.list.Range(p.index).From); err != nil {
				s.fail(p.index, err)
			}
		}
		s.release(p)
	}
}

// release gives the memory of a piece back when its last user is done with it.
func (s *stream) release(p *piece) {
	if p.users.Add(-1) == 0 {
		s.track.add(int64(len(p.data)))
		s.free <- p
	}
}

// fail ends the pass with the error of a chunk. Of several chunks that fail at once, the first in the file counts:
// the same file always yields the same error.
func (s *stream) fail(index int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil || index < s.failed {
		s.failed, s.err = index, err
	}
	s.cancel()
}

// skips reports whether a chunk in front of the piece has failed: nothing depends on the piece any more.
func (s *stream) skips(p *piece) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed < p.index
}
