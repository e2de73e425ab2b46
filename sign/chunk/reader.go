package chunk

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"sync"
)

// cacheSize bounds the memory of a [Reader]: as many chunks as fit, at least one.
const cacheSize = 16 << 20

// The pages of small reads are cached, with their neighbours. Documents and directory records lie between gigabytes of
// layers, those of one image side by side, and every check of an archive reads them again; none of them is worth
// loading its chunk another time. Copies read in pieces of 32 KiB or more, which are not cached.
const (
	pageSize   = 4 << 10
	smallRead  = 16 << 10
	neighbours = 4 // pages on either side
	keptPages  = 2048
)

// Reader reads a file of which the chunk digests are trusted. Every byte that it returns is copied from a buffer that
// was filled and hashed as a whole before: a file that changes after a check, or between two reads, yields an error
// and never altered content. It never returns a byte outside the listed size.
//
// A Reader may be used by several goroutines at once. It holds a few verified chunks, and pages of others; readers
// of more chunks than that wait for each other.
type Reader struct {
	r    io.ReaderAt
	list *List

	mu      sync.Mutex
	changed *sync.Cond
	clock   int64
	slots   []slot
	pages   map[int64][]byte // by their number
	failure error            // the first one
}

// slot holds one verified chunk. Its data may be read without the lock while users > 0, and is written only by the
// one goroutine that made it loading.
type slot struct {
	chunk   int // -1: none
	data    []byte
	users   int
	used    int64
	loading bool
}

// NewReader returns a reader of the listed bytes of r. The list must not be changed afterwards.
func NewReader(r io.ReaderAt, list *List) (*Reader, error) {
	if err := list.Validate(); err != nil {
		return nil, err
	}
	v := &Reader{r: r, list: list, pages: map[int64][]byte{}, slots: make([]slot, max(cacheSize/list.ChunkSize, 1))}
	v.changed = sync.NewCond(&v.mu)
	for i := range v.slots {
		v.slots[i].chunk = -1
	}
	return v, nil
}

// Size is the listed size of the file.
func (v *Reader) Size() int64 { return v.list.Size }

// Failure returns the error for which the reader could not read something, nil if there was none. A parser of the
// content may have reported it as a fault of the content.
func (v *Reader) Failure() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.failure
}

// List returns the digests that the reader compares with; it must not be changed.
func (v *Reader) List() *List { return v.list }

// ReadAt implements [io.ReaderAt]. The error of a chunk that differs from the list has the code report.Corrupt.
func (v *Reader) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 {
		return 0, errors.New("read at a negative offset")
	}
	if v.recall(p, offset) {
		return len(p), nil
	}
	n := 0
	for n < len(p) {
		if offset >= v.list.Size {
			return n, io.EOF
		}
		i := int(offset / v.list.ChunkSize)
		s, err := v.acquire(i)
		if err != nil {
			return n, err
		}
		from := v.list.Range(i).From
		m := copy(p[n:], s.data[offset-from:])
		if len(p) <= smallRead {
			v.keep(s.data, from, offset, int64(m))
		}
		v.release(s)
		n += m
		offset += int64(m)
	}
	return n, nil
}

// recall fills p if all of it lies in pages that are kept.
func (v *Reader) recall(p []byte, offset int64) bool {
	if len(p) > smallRead {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for n := 0; n < len(p); {
		at := offset + int64(n)
		page, place := v.pages[at/pageSize], at%pageSize
		if place >= int64(len(page)) {
			return false // not kept, or behind the end of the file
		}
		n += copy(p[n:], page[place:])
	}
	return true
}

// keep keeps the pages of a verified chunk, which begins at from, that hold n bytes at offset, and those beside. When there
// are too many, it starts again.
func (v *Reader) keep(data []byte, from, offset, n int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	first := max(offset/pageSize-neighbours, from/pageSize)
	end := min((offset+n-1)/pageSize+neighbours+1, (from+int64(len(data))+pageSize-1)/pageSize)
	for number := first; number < end; number++ {
		if v.pages[number] != nil {
			continue
		}
		if len(v.pages) >= keptPages {
			clear(v.pages)
		}
		start := number*pageSize - from
		v.pages[number] = bytes.Clone(data[start:min(start+pageSize, int64(len(data)))])
	}
}

// acquire returns the slot that holds chunk i, verified, and keeps it from being reused until release.
func (v *Reader) acquire(i int) (*slot, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for {
		s := v.find(i)
		if s == nil {
			s = v.oldestIdle()
			if s != nil {
				return v.fill(s, i)
			}
		} else if !s.loading {
			s.users++
			return s, nil
		}
		v.changed.Wait()
	}
}

func (v *Reader) release(s *slot) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clock++
	s.used = v.clock
	s.users--
	v.changed.Broadcast()
}

func (v *Reader) find(i int) *slot {
	for k := range v.slots {
		if v.slots[k].chunk == i {
			return &v.slots[k]
		}
	}
	return nil
}

func (v *Reader) oldestIdle() *slot {
	var oldest *slot
	for k := range v.slots {
		if s := &v.slots[k]; s.users == 0 && (oldest == nil || s.used < oldest.used) {
			oldest = s
		}
	}
	return oldest
}

// fill loads chunk i into an idle slot. It is called with the lock held and gives it up while it reads and hashes.
func (v *Reader) fill(s *slot, i int) (*slot, error) {
	s.chunk, s.users, s.loading = i, 1, true
	v.mu.Unlock()
	err := v.load(s)
	v.mu.Lock()
	s.loading = false
	v.changed.Broadcast()
	if err != nil {
		v.failure = cmp.Or(v.failure, err)
		s.chunk, s.users = -1, 0
		return nil, err
	}
	return s, nil
}

func (v *Reader) load(s *slot) error {
	place := v.list.Range(s.chunk)
	if s.data == nil {
		s.data = make([]byte, min(v.list.ChunkSize, v.list.Size))
	}
	s.data = s.data[:place.Len()]
	digest, err := readHashed(v.r, s.data, place.From)
	if err != nil {
		return err
	}
	return v.list.compare(s.chunk, digest)
}

// readHashed fills data, and hashes what it has read while it reads the next piece.
func readHashed(r io.ReaderAt, data []byte, offset int64) (digest [sha256.Size]byte, err error) {
	const size = 256 << 10
	pieces := make(chan []byte, len(data)/size+1)
	go func() {
		defer close(pieces)
		for piece := range slices.Chunk(data, size) {
			if err = readFull(r, piece, offset); err != nil {
				return
			}
			offset += int64(len(piece))
			pieces <- piece
		}
	}()
	hash := sha256.New()
	for piece := range pieces {
		hash.Write(piece)
	}
	hash.Sum(digest[:0])
	return digest, err
}
