package tardiff

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

const (
	anchor      = 16  // bytes that are looked up
	shortest    = 24  // bytes that a place in the old file must share to be used
	shortestRun = 128 // equal bytes that are copied where the bytes around them differ
	maxLoss     = 64  // how far the score of an extension may fall behind its best
)

// matcher finds places of an old file that resemble pieces of a new one.
type matcher struct {
	old   []byte
	table []int32 // places by the hash of their first bytes, plus one
	shift int
}

func (m *matcher) hash(b []byte) uint64 {
	x, y := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	return (x*0x9e3779b97f4a7c15 ^ bits.RotateLeft64(y*0xc2b2ae3d27d4eb4f, 31)) * 0x165667b19e3779f9 >> m.shift
}

// reset makes old the old file. Of a small file each fourth place is known, of a large one each sixteenth.
func (m *matcher) reset(old []byte) {
	stride := anchor / 4
	for len(old)/stride > 1<<20 && stride < anchor {
		stride *= 2
	}
	size := bits.Len(uint(len(old)/stride)) + 1
	m.old, m.shift = old, 64-size
	if cap(m.table) < 1<<size {
		m.table = make([]int32, 1<<size)
	}
	m.table = m.table[:1<<size]
	clear(m.table)
	for i := (len(old) - anchor) / stride * stride; i >= 0 && len(old) >= anchor; i -= stride {
		m.table[m.hash(old[i:])] = int32(i) + 1 //nolint:gosec // at most maxOld
	}
}

// region is a piece of a new file that resembles the old one at a place.
type region struct{ from, to, at int }

// next returns the first region that lies behind the byte from; from == to when there is none.
func (m *matcher) next(made []byte, from int) region {
	for p := from; p+anchor <= len(made); p++ {
		at := int(m.table[m.hash(made[p:])]) - 1
		if at < 0 || !bytes.Equal(made[p:p+anchor], m.old[at:at+anchor]) {
			continue
		}
		r := region{p, p + anchor, at}
		for r.from > from && r.at > 0 && made[r.from-1] == m.old[r.at-1] {
			r.from, r.at = r.from-1, r.at-1
		}
		end := r.at + r.to - r.from
		for r.to < len(made) && end < len(m.old) && made[r.to] == m.old[end] {
			r.to, end = r.to+1, end+1
		}
		if r.to-r.from < shortest {
			continue
		}
		r.to += m.extend(made[r.to:], end)
		back := m.extendBack(made[from:r.from], r.at)
		return region{r.from - back, r.to, r.at - back}
	}
	return region{}
}

// extend returns how many bytes resemble the old file at a place: more than half of them are equal, however long the piece.
func (m *matcher) extend(made []byte, at int) int {
	score, best, length := 0, 0, 0
	for i := 0; i < len(made) && at+i < len(m.old) && score > best-maxLoss; i++ {
		score--
		if made[i] == m.old[at+i] {
			score += 2
		}
		if score > best {
			best, length = score, i+1
		}
	}
	return length
}

// extendBack is [matcher.extend] for the last bytes of made, before a place of the old file.
func (m *matcher) extendBack(made []byte, at int) int {
	score, best, length := 0, 0, 0
	for i := 1; i <= len(made) && i <= at && score > best-maxLoss; i++ {
		score--
		if made[len(made)-i] == m.old[at-i] {
			score += 2
		}
		if score > best {
			best, length = score, i
		}
	}
	return length
}

// sameRun returns the number of equal bytes at the beginning.
func sameRun(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
