package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/build/oci"
)

const (
	wholeBlob = 1 << 20  // bytes; smaller blobs are fetched as a whole and kept
	maxFrame  = 32 << 20 // bytes; a larger compressed frame is not kept, but read again where it is needed again
	maxKept   = 32 << 20 // bytes of small blobs that are kept
	maxIdle   = 4        // streams that wait to be continued

	// head is how much of the first larger blob is kept, in bytes. The directories lie before it, in the same signed piece of 4 MiB: they are
	// read again when the content was compared.
	head = 4 << 20
)

// Reader reads an archive where it lies in a registry. Nothing is written to disk, and at most some 100 MiB are kept in memory: the
// frame, small blobs, and streams that continue where the last read ended. So one reading from the beginning to the end fetches each
// blob once. A Reader may be used by several goroutines.
//
// Package sign compares the bytes with the signature, as it does for a file.
type Reader struct {
	*layout.Archive
	fetcher *fetcher
}

// Reader returns a reader of the archive. Nothing is fetched before the first byte is read, and no more when the context ends.
func (r *Remote) Reader(ctx context.Context) (*Reader, error) {
	f := &fetcher{ctx: ctx, kept: map[oci.Digest][]byte{}}
	places := map[string]media.Run{}
	first := int64(head)
	for _, b := range layout.Blobs(&r.Layout) {
		blob := remoteBlob{f, r.blobs[b.SHA256], wholeBlob, 0}
		if b.Size > wholeBlob {
			blob.head, first = min(first, b.Size), 0
		}
		places[b.SHA256] = media.Run{ReaderAt: blob, Name: fmt.Sprintf("blob sha256:%s of %s", b.SHA256, r.reference)}
	}
	made, err := layout.Assemble(&r.Layout, r.reference.String(), layout.Frame{ReaderAt: remoteBlob{f, r.frame, maxFrame, 0}}, places)
	if err != nil {
		return nil, err
	}
	return &Reader{Archive: made, fetcher: f}, nil
}

// Fetched returns how many bytes were read from the registry so far.
func (r *Reader) Fetched() int64 { return r.fetcher.fetched.Load() }

// Close ends the streams. The archive cannot be read afterwards.
func (r *Reader) Close() error { return r.fetcher.close() }

// fetcher fetches blobs, or what follows an offset in them.
type fetcher struct {
	ctx     context.Context //nolint:containedctx // an io.ReaderAt takes none
	fetched atomic.Int64

	mu     sync.Mutex
	closed bool
	kept   map[oci.Digest][]byte
	order  []oci.Digest // of those that are kept, the oldest one first
	size   int64        // of those that are kept
	idle   []*place     // the one that waits longest first
}

// place is a stream of a blob, and the offset of its next byte.
type place struct {
	digest  oci.Digest
	at      int64
	content io.ReadCloser
}

// remoteBlob reads a blob at any offset. One of at most the size whole is fetched as a whole; of another one, head bytes are kept.
type remoteBlob struct {
	*fetcher
	oci.Blob
	whole, head int64
}

// ReadAt implements [io.ReaderAt].
func (b remoteBlob) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= b.Size {
		return 0, io.EOF
	}
	if b.Size <= b.whole {
		data, err := b.cached(b.Digest, func() ([]byte, error) {
			b.fetched.Add(b.Size)
			return oci.ReadBlob(b.ctx, b.Blob, b.whole)
		})
		if err != nil {
			return 0, err
		}
		return bytes.NewReader(data).ReadAt(p, offset)
	}
	if offset < b.head {
		return b.readHead(p, offset)
	}
	return b.stream(p, offset)
}

// readHead reads from the kept bytes, and what follows them from the stream.
func (b remoteBlob) readHead(p []byte, offset int64) (int, error) {
	data, err := b.cached(b.Digest, func() ([]byte, error) {
		data := make([]byte, b.head)
		_, err := b.stream(data, 0)
		return data, err
	})
	if err != nil {
		return 0, err
	}
	n := copy(p, data[offset:])
	if n == len(p) || b.head == b.Size {
		return bytes.NewReader(data).ReadAt(p, offset)
	}
	m, err := b.stream(p[n:], b.head)
	return n + m, err
}

// stream reads from the stream that has come to this offset, or from a new one.
func (b remoteBlob) stream(p []byte, offset int64) (int, error) {
	s, err := b.streamAt(b.Blob, offset)
	if err != nil {
		return 0, err
	}
	n, err := io.ReadFull(s.content, p[:min(int64(len(p)), b.Size-offset)])
	s.at += int64(n)
	b.fetched.Add(int64(n))
	if err != nil || s.at == b.Size {
		err = errors.Join(err, s.content.Close())
	} else {
		err = b.release(s)
	}
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// cached returns the kept bytes of a blob, or fetches them. Those that were fetched first are dropped first. Two goroutines that want the same
// bytes may both fetch them.
func (f *fetcher) cached(digest oci.Digest, fetch func() ([]byte, error)) ([]byte, error) {
	f.mu.Lock()
	data, ok := f.kept[digest]
	f.mu.Unlock()
	if ok {
		return data, nil
	}
	data, err := fetch()
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, twice := f.kept[digest]; twice || f.closed {
		return data, nil
	}
	size := int64(len(data))
	f.kept[digest], f.order, f.size = data, append(f.order, digest), f.size+size
	for f.size > max(maxKept, size) {
		f.size -= int64(len(f.kept[f.order[0]]))
		delete(f.kept, f.order[0])
		f.order = f.order[1:]
	}
	return data, nil
}

// streamAt returns the stream that waits at an offset, or a new one.
func (f *fetcher) streamAt(b oci.Blob, offset int64) (*place, error) {
	f.mu.Lock()
	i := slices.IndexFunc(f.idle, func(s *place) bool { return s.digest == b.Digest && s.at == offset })
	if i >= 0 {
		s := f.idle[i]
		f.idle = slices.Delete(f.idle, i, i+1)
		f.mu.Unlock()
		return s, nil
	}
	f.mu.Unlock()
	content, err := b.Open(f.ctx, offset)
	return &place{b.Digest, offset, content}, err
}

// release lets a stream wait for the next read. The one that has waited longest is closed where there are too many.
func (f *fetcher) release(s *place) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return s.content.Close()
	}
	f.idle = append(f.idle, s)
	if len(f.idle) <= maxIdle {
		return nil
	}
	oldest := f.idle[0]
	f.idle = f.idle[1:]
	return oldest.content.Close()
}

func (f *fetcher) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	var failures []error
	for _, s := range f.idle {
		failures = append(failures, s.content.Close())
	}
	f.idle, f.kept, f.order = nil, nil, nil
	return errors.Join(failures...)
}
