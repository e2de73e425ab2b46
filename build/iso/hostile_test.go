package iso

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
)

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestTruncated cuts the image at every sector of its metadata and around its end.
func TestTruncated(t *testing.T) {
	data := imageBytes(t, patchTree())
	lengths := []int{0, 1, 2047, len(data) - 1, len(data) - 2048, len(data) / 2}
	for n := 0; n < layout(t, patchTree()).sectorsOfMetadata(); n++ {
		lengths = append(lengths, n*sectorSize, n*sectorSize+100)
	}
	for _, n := range lengths {
		r := newCounted(t, data[:n])
		if _, err := Open(r, int64(n)); report.CodeOf(err) != report.Corrupt {
			t.Errorf("Open of %d bytes: %v, want it refused as corrupt", n, err)
		}
		if !report.HasErrors(Check(r, int64(n))) {
			t.Errorf("Check of %d bytes finds nothing", n)
		}
		if !report.HasErrors(CompareDiskFS(r, int64(n))) {
			t.Errorf("CompareDiskFS of %d bytes finds nothing", n)
		}
	}
}

func (m *Image) sectorsOfMetadata() int { return int(m.MetadataSize() / sectorSize) }

// TestSizeIsNotTrusted gives a size that the reader does not have.
func TestSizeIsNotTrusted(t *testing.T) {
	data := imageBytes(t, smallTree())
	if _, err := Open(bytes.NewReader(data[:20*sectorSize]), int64(len(data))); report.CodeOf(err) != report.Corrupt {
		t.Errorf("Open: %v", err)
	}
}

// badMedium fails to read one sector.
type badMedium struct {
	*bytes.Reader
	sector int64
}

var errMedium = errors.New("medium error")

func (b badMedium) ReadAt(p []byte, offset int64) (int, error) {
	if offset <= b.sector*sectorSize && b.sector*sectorSize < offset+int64(len(p)) {
		return 0, errMedium
	}
	return b.Reader.ReadAt(p, offset)
}

func TestBadMedium(t *testing.T) {
	p := newPatched(t)
	for name, at := range map[string]int{
		"descriptor": p.descriptor(jolietTree), "directory": p.directory(primaryTree, "PAIR"), "Joliet directory": p.directory(jolietTree, "pair"),
	} {
		t.Run(name, func(t *testing.T) {
			r := badMedium{bytes.NewReader(p.data), int64(at) / sectorSize}
			_, err := Open(r, r.Size())
			if !errors.Is(err, errMedium) || report.CodeOf(err) != report.Failure {
				t.Errorf("Open: %v with code %s", err, report.CodeOf(err))
			}
			findings := Check(r, r.Size())
			if len(findings) != 1 || findings[0].Rule != ruleUnreadable {
				t.Errorf("Check: %v", findings)
			}
		})
	}
}

// TestBounded reads each fault, and some made to be expensive, within bounds.
func TestBounded(t *testing.T) {
	cases := append(faults(),
		fault{name: "continuation cycle of two", patch: func(p *patched) {
			ce := p.entry(primaryPath("pair/long-"+strings.Repeat("n", 200)), "CE")
			p.put32(ce+20, 28)
			area := int(p.get32(ce+4))*sectorSize + int(p.get32(ce+12))
			copy(p.data[area:], p.data[ce:ce+28])
			p.put32(area+12, p.get32(ce+12)+28)
			copy(p.data[area+28:], p.data[ce:ce+28])
		}},
		fault{name: "directory as large as the image", patch: func(p *patched) {
			size := uint32(len(p.data)) &^ (sectorSize - 1)
			at := p.record(primaryTree, "PAIR")
			p.put32(at+10, size-p.get32(at+2)*sectorSize)
			p.put32(p.directory(primaryTree, "PAIR")+10, size-p.get32(at+2)*sectorSize)
		}},
		fault{name: "every size absurd", patch: func(p *patched) {
			for at := systemArea * sectorSize; at < len(p.data)-33; at++ {
				if p.data[at] > 33 && p.data[at+1] == 0 && bytes.Equal(p.data[at+28:at+32], []byte{1, 0, 0, 1}) {
					p.put32(at+10, 0xFFFFF800)
				}
			}
		}},
	)
	for _, f := range cases {
		t.Run(strings.ReplaceAll(f.name, " ", "-"), func(t *testing.T) {
			p := newPatched(t)
			f.patch(p)
			r, size := p.reader()
			for name, read := range map[string]func(io.ReaderAt, int64){
				"Open":          func(r io.ReaderAt, size int64) { _, _ = Open(r, size) },
				"Check":         func(r io.ReaderAt, size int64) { Check(r, size) },
				"CompareDiskFS": func(r io.ReaderAt, size int64) { CompareDiskFS(r, size) },
			} {
				c := &counted{tb: t, r: r, size: size}
				if n := allocated(func() { read(c, size) }); n > 4<<20 {
					t.Errorf("%s allocates %d bytes", name, n)
				}
				if c.calls > 2000 || c.bytes > 4<<20 {
					t.Errorf("%s reads %d bytes in %d calls", name, c.bytes, c.calls)
				}
			}
		})
	}
}

// TestBoundedPaths reads an image whose paths are longer than what may be kept of them: a small image has many long ones, in deep directories.
func TestBoundedPaths(t *testing.T) {
	r, size := newPatched(t).reader()
	for _, strict := range []bool{false, true} {
		s := newScan(r, size, strict)
		s.paths = 1000
		if _, _, err := s.index(); report.CodeOf(err) != report.Corrupt || !strings.Contains(err.Error(), "the paths of the image have more than") {
			t.Errorf("strict %v: got %v", strict, err)
		}
	}
}

// TestMutations flips bytes of the metadata at random: whatever Open accepts can be read without leaving the image.
func TestMutations(t *testing.T) {
	t.Parallel()
	count := 1500 // FuzzOpen tries more
	if testing.Short() {
		count = 500
	}
	good := imageBytes(t, patchTree())
	metadata := int(layout(t, patchTree()).MetadataSize())
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same mutations each time
	accepted := 0
	for range count {
		data := bytes.Clone(good)
		for range 1 + random.IntN(4) {
			at := systemArea*sectorSize + random.IntN(metadata-systemArea*sectorSize)
			data[at] ^= byte(1 + random.IntN(255))
		}
		r := newCounted(t, data)
		fsys, err := Open(r, r.size)
		Check(r, r.size)
		CompareDiskFS(r, r.size)
		if err != nil {
			continue
		}
		accepted++
		readAll(t, fsys)
	}
	if accepted == 0 || accepted == count {
		t.Errorf("%d of %d mutations were accepted", accepted, count)
	}
}
