package twin

import (
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"hash"
	"strings"
)

// interleaved updates both states block by block. Less than a block is the same bytes for both.
type interleaved struct {
	whole, chunk state
	rest         []byte
}

func newInterleaved() *interleaved {
	return &interleaved{whole: state{words: initial}, chunk: state{words: initial}}
}

func (h *interleaved) write(p []byte) {
	if len(h.rest) > 0 {
		n := min(sha256.BlockSize-len(h.rest), len(p))
		h.rest, p = append(h.rest, p[:n]...), p[n:]
		if len(h.rest) < sha256.BlockSize {
			return
		}
		h.blocks(h.rest)
		h.rest = h.rest[:0]
	}
	full := len(p) &^ (sha256.BlockSize - 1)
	h.blocks(p[:full])
	h.rest = append(h.rest, p[full:]...)
}

func (h *interleaved) blocks(p []byte) {
	blocksSHA(&h.whole.words, &h.chunk.words, &constants, p)
	h.whole.length += uint64(len(p))
	h.chunk.length += uint64(len(p))
}

func (h *interleaved) cut(digests []byte) []byte {
	digest := h.chunk.sum(h.rest)
	h.chunk = state{words: initial}
	return append(digests, digest[:]...)
}

func (h *interleaved) sum() [sha256.Size]byte { return h.whole.sum(h.rest) }

// state is a computation of SHA-256 that stands between two blocks.
type state struct {
	words  [8]uint32
	length uint64
}

// magic begins the form of a computation in the standard library, formSize is its length in bytes.
const (
	magic    = "sha\x03"
	formSize = len(magic) + sha256.Size + sha256.BlockSize + 8
)

// sum lets the standard library pad and finish the computation.
func (s *state) sum(rest []byte) [sha256.Size]byte {
	h := sha256.New()
	if err := s.continueIn(h); err != nil {
		panic("twin: the standard library does not take its own form: " + err.Error())
	}
	h.Write(rest)
	return [sha256.Size]byte(h.Sum(nil))
}

// continueIn replaces the state of a computation of the standard library by s. The form in which it imports a state is stable,
// because programs store it.
func (s *state) continueIn(h hash.Hash) error {
	form := []byte(magic)
	for _, word := range s.words {
		form = binary.BigEndian.AppendUint32(form, word)
	}
	form = append(form, make([]byte, sha256.BlockSize)...)
	form = binary.BigEndian.AppendUint64(form, s.length)
	return h.(encoding.BinaryUnmarshaler).UnmarshalBinary(form) //nolint:forcetypeassert // all of crypto/sha256 have it
}

// The initial state and the constants of the rounds (FIPS 180-4, sections 5.3.3 and 4.2.2).
var (
	initial = [8]uint32{
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	}
	constants = [64]uint32{
		0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
		0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
		0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
		0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
		0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
		0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
		0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
		0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
	}
)

// Both adds p to whole, a SHA-256 of the standard library, and returns the digest of p alone. Where the processor has
// the SHA extensions, and whole stands at the end of a block, that takes one pass over p.
func Both(whole hash.Hash, p []byte) [sha256.Size]byte {
	words, length, ok := stateOf(whole)
	if !ok || !supported() {
		whole.Write(p)
		return sha256.Sum256(p)
	}
	h := &interleaved{whole: state{words: words, length: length}, chunk: state{words: initial}}
	h.write(p)
	if err := h.whole.continueIn(whole); err != nil {
		panic("twin: the standard library does not take its own form: " + err.Error())
	}
	whole.Write(h.rest)
	return h.chunk.sum(h.rest)
}

// stateOf returns the state of a computation of the standard library that stands between two blocks.
func stateOf(h hash.Hash) (words [8]uint32, length uint64, ok bool) {
	m, ok := h.(encoding.BinaryAppender)
	if !ok {
		return words, 0, false
	}
	form, err := m.AppendBinary(nil)
	if err != nil || len(form) != formSize || !strings.HasPrefix(string(form), magic) {
		return words, 0, false
	}
	for i := range words {
		words[i] = binary.BigEndian.Uint32(form[len(magic)+4*i:])
	}
	length = binary.BigEndian.Uint64(form[formSize-8:])
	return words, length, length%sha256.BlockSize == 0
}
