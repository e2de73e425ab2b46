package sbom

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
)

// inMemory is the size up to which a copy is kept in memory.
const inMemory = 4 << 20

// maxReads is how often a copy is read, on average of its bytes. Each byte is part of one package, and of few lists and links.
const maxReads = 16

var errOverlap = errors.New("its parts overlap, or are a loop")

// spool is a copy of a file of a layer that can be read at random: in memory, or in a temporary file.
type spool struct {
	ctx     context.Context // of the scan
	content io.ReaderAt
	size    int64
	left    int64  // bytes that can be read
	digest  string // sha256 of the content
	file    *os.File
	part    []byte // the last one that was visited
}

// newSpool copies the rest of r.
func newSpool(ctx context.Context, r io.Reader, size, limit int64) (*spool, error) {
	if size > limit {
		return nil, file{size: size}.tooLarge(limit)
	}
	hash := sha256.New()
	hashed := io.TeeReader(io.LimitReader(r, limit+1), hash)
	s := &spool{ctx: ctx}
	if size <= inMemory {
		data, err := io.ReadAll(hashed)
		if err != nil {
			return nil, err
		}
		s.content, s.size = bytes.NewReader(data), int64(len(data))
	} else {
		f, err := os.CreateTemp("", "solutionctl-sbom-*")
		if err != nil {
			return nil, err
		}
		s.content, s.file = f, f
		if s.size, err = io.Copy(f, hashed); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if s.size > limit {
		return nil, errors.Join(file{size: s.size}.tooLarge(limit), s.Close())
	}
	s.left = maxReads * s.size
	s.digest = "sha256:" + hex.EncodeToString(hash.Sum(nil))
	return s, nil
}

// ReadAt reads a part of the copy.
func (s *spool) ReadAt(p []byte, offset int64) (int, error) {
	n, err := s.content.ReadAt(p, offset)
	if failure := s.take(int64(n)); failure != nil {
		return 0, failure
	}
	return n, err
}

// take counts bytes that are read. It fails if they are more than can be read, and when the scan is interrupted.
func (s *spool) take(n int64) error {
	if s.left -= n; s.left < 0 {
		return errOverlap
	}
	return s.ctx.Err()
}

// Close removes the copy.
func (s *spool) Close() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}
