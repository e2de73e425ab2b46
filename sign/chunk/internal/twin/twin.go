// Package twin computes two kinds of SHA-256 digests of the same bytes at little more than the price of one: that of the
// whole, and that of each chunk.
//
// Where the processor has the SHA extensions, one pass updates both states; elsewhere two processors share the work.
package twin

import (
	"crypto/sha256"
	"hash"
	"sync"
)

// Hash computes the digests of everything that is written to it and of each of its chunks. It is not safe for
// concurrent use.
type Hash struct {
	chunkSize, left int
	chunks          []byte
	both            both
}

// both are the two computations. Whole blocks are written between cuts; only the last write may be of any length.
type both interface {
	write(p []byte)
	cut(digests []byte) []byte // appends the digest since the last cut
	sum() [sha256.Size]byte
}

// New starts with no byte written. The size of the chunks has to be a multiple of SHA-256's block size, 64.
func New(chunkSize int) *Hash {
	if chunkSize <= 0 || chunkSize%sha256.BlockSize != 0 {
		panic("twin: the chunk size is not a multiple of the block size")
	}
	h := &Hash{chunkSize: chunkSize, left: chunkSize}
	if supported() {
		h.both = newInterleaved()
	} else {
		h.both = newParallel()
	}
	return h
}

// Write takes the next bytes.
func (h *Hash) Write(p []byte) {
	for len(p) > 0 {
		n := min(h.left, len(p))
		h.both.write(p[:n])
		p = p[n:]
		if h.left -= n; h.left == 0 {
			h.chunks, h.left = h.both.cut(h.chunks), h.chunkSize
		}
	}
}

// Sums returns the digest of everything and those of the chunks, one after the other; the last chunk may be shorter.
// Nothing is written afterwards.
func (h *Hash) Sums() (whole [sha256.Size]byte, chunks []byte) {
	if h.left < h.chunkSize {
		h.chunks, h.left = h.both.cut(h.chunks), h.chunkSize
	}
	return h.both.sum(), h.chunks
}

// parallel gives one of the two to a second goroutine.
type parallel struct{ whole, chunk hash.Hash }

func newParallel() *parallel { return &parallel{sha256.New(), sha256.New()} }

func (h *parallel) write(p []byte) {
	var other sync.WaitGroup
	other.Go(func() { h.chunk.Write(p) })
	h.whole.Write(p)
	other.Wait()
}

func (h *parallel) cut(digests []byte) []byte {
	digests = h.chunk.Sum(digests)
	h.chunk.Reset()
	return digests
}

func (h *parallel) sum() [sha256.Size]byte { return [sha256.Size]byte(h.whole.Sum(nil)) }
