package chunk

import (
	"bytes"
	"sync"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Zeros reads the spaces between the files of an archive, which have to be zeros, before their chunks are compared with the list. It reads no
// more than it is asked for, while a [Reader] reads and hashes the whole chunk. Zeros that it returned have to be confirmed when the chunk is
// copied. Other bytes are verified at once.
//
// It may be used by several goroutines at once.
type Zeros struct {
	verified *Reader

	mu     sync.Mutex
	ranges []Range // that were returned as zeros
}

// NewZeros returns a reader of the bytes of another one.
func NewZeros(verified *Reader) *Zeros { return &Zeros{verified: verified} }

// maxZeros bounds the ranges to confirm. Further ones are verified at once.
const maxZeros = 4096

// ReadAt implements [io.ReaderAt].
func (z *Zeros) ReadAt(p []byte, offset int64) (int, error) {
	end := offset + int64(len(p))
	if offset >= 0 && end <= z.verified.Size() && readFull(z.verified.r, p, offset) == nil && isZero(p) && z.note(Range{offset, end}) {
		return len(p), nil
	}
	return z.verified.ReadAt(p, offset)
}

// note keeps a range to be confirmed, if there is room for it.
func (z *Zeros) note(place Range) bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	if len(z.ranges) == maxZeros {
		return false
	}
	z.ranges = append(z.ranges, place)
	return true
}

// Confirm compares what was returned as zeros with verified bytes. The error has the code report.Corrupt.
func (z *Zeros) Confirm(verified []byte, offset int64) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, place := range z.ranges {
		from, to := max(place.From, offset), min(place.To, offset+int64(len(verified)))
		if from < to && !isZero(verified[from-offset:to-offset]) {
			return report.Errorf(report.Corrupt, "bytes %d to %d were changed after they had been examined", from, to-1)
		}
	}
	return nil
}

var zeroBlock [4 << 10]byte

func isZero(p []byte) bool {
	for len(p) > 0 {
		n := min(len(p), len(zeroBlock))
		if !bytes.Equal(p[:n], zeroBlock[:n]) {
			return false
		}
		p = p[n:]
	}
	return true
}
