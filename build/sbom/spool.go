package sbom

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
)

// inMemory is the size up to which a copy is kept in memory.
const inMemory = 4 << 20

// spool is a copy of a file of a layer that can be read at random: in memory, or in a temporary file.
type spool struct {
	io.ReaderAt
	size   int64
	digest string // sha256 of the content
	file   *os.File
	part   []byte // the last one that was visited
}

// newSpool copies the rest of r.
func newSpool(r io.Reader, size, limit int64) (*spool, error) {
	if size > limit {
		return nil, file{size: size}.tooLarge(limit)
	}
	hash := sha256.New()
	hashed := io.TeeReader(io.LimitReader(r, limit+1), hash)
	s := &spool{}
	if size <= inMemory {
		data, err := io.ReadAll(hashed)
		if err != nil {
			return nil, err
		}
		s.ReaderAt, s.size = bytes.NewReader(data), int64(len(data))
	} else {
		f, err := os.CreateTemp("", "solutionctl-sbom-*")
		if err != nil {
			return nil, err
		}
		s.ReaderAt, s.file = f, f
		if s.size, err = io.Copy(f, hashed); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if s.size > limit {
		return nil, errors.Join(file{size: s.size}.tooLarge(limit), s.Close())
	}
	s.digest = "sha256:" + hex.EncodeToString(hash.Sum(nil))
	return s, nil
}

// Close removes the copy.
func (s *spool) Close() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}
