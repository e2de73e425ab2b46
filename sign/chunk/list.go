package chunk

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"math/bits"

	"github.com/solutionctl/solutionctl/schema/report"
)

// DefaultSize is the chunk size that [Sum] uses: 4 MiB keeps the list of a 20 GB file below 160 KiB.
const DefaultSize = 4 << 20

// Bounds of a chunk size that a foreign list may ask for. A reader holds whole chunks in memory.
const (
	MinSize = 64 << 10
	MaxSize = 64 << 20
)

const algorithm = "sha256"

// List holds the digest of every chunk of a file of Size bytes. In JSON the size is not part of it: a document that
// embeds the list has the size beside it and sets it after decoding.
type List struct {
	Size      int64  `json:"-"`
	ChunkSize int64  `json:"chunkSize"`
	Algorithm string `json:"algorithm"`
	Digests   []byte `json:"digests"` // the concatenated digests, base64 in JSON
}

// Validate refuses a list that does not describe exactly Size bytes. Every function of this package validates the
// lists that it is given.
func (l *List) Validate() error {
	switch {
	case l.Size <= 0:
		return report.Errorf(report.Invalid, "chunk list: size %d, want at least 1", l.Size)
	case l.Algorithm != algorithm:
		return report.Errorf(report.Invalid, "chunk list: algorithm %q, want %q", l.Algorithm, algorithm)
	case l.ChunkSize < MinSize || l.ChunkSize > MaxSize || bits.OnesCount64(uint64(l.ChunkSize)) != 1:
		return report.Errorf(report.Invalid, "chunk list: chunk size %d, want a power of two from %d to %d",
			l.ChunkSize, MinSize, MaxSize)
	}
	// Written so that a size near the largest integer does not overflow.
	count := (l.Size-1)/l.ChunkSize + 1
	if have := int64(len(l.Digests)); have%sha256.Size != 0 || have/sha256.Size != count {
		return report.Errorf(report.Invalid, "chunk list: %d bytes of digests for %d chunks, want %d per chunk",
			have, count, sha256.Size)
	}
	return nil
}

// Len is the number of chunks.
func (l *List) Len() int { return len(l.Digests) / sha256.Size }

// Range returns the bytes of chunk i; only the last chunk may be shorter than the others.
func (l *List) Range(i int) Range {
	from := int64(i) * l.ChunkSize
	return Range{From: from, To: from + min(l.ChunkSize, l.Size-from)}
}

// Part returns the list of size bytes from an offset on, which must be that of a chunk.
func (l *List) Part(at, size int64) *List {
	first := at / l.ChunkSize
	last := (at + size + l.ChunkSize - 1) / l.ChunkSize
	return &List{Size: size, ChunkSize: l.ChunkSize, Algorithm: l.Algorithm, Digests: l.Digests[first*sha256.Size : last*sha256.Size]}
}

// Equal reports whether both lists say the same.
func (l *List) Equal(other *List) bool {
	return l.Size == other.Size && l.ChunkSize == other.ChunkSize && l.Algorithm == other.Algorithm && bytes.Equal(l.Digests, other.Digests)
}

func (l *List) digest(i int) [sha256.Size]byte {
	return [sha256.Size]byte(l.Digests[i*sha256.Size:])
}

// Range is a range of bytes: From is the first one, To the one after the last.
type Range struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Len is the number of bytes in the range.
func (r Range) Len() int64 { return r.To - r.From }

func byStart(a, b Range) int { return cmp.Compare(a.From, b.From) }

// merge joins ascending ranges that touch or overlap.
func merge(ranges []Range) []Range {
	joined := ranges[:0]
	for _, r := range ranges {
		if n := len(joined); n > 0 && r.From <= joined[n-1].To {
			joined[n-1].To = max(joined[n-1].To, r.To)
			continue
		}
		joined = append(joined, r)
	}
	return joined
}
