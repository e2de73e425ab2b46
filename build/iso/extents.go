package iso

import (
	"cmp"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// The kinds of regions besides directories and tables.
const (
	regionFile         = "file"
	regionContinuation = "continuation area"
)

// region is a run of bytes that something in the image refers to.
type region struct {
	start, end int64
	kind, path string
}

// region records the owner of a range, for [scan.checkOverlaps] and [scan.checkHidden].
func (s *scan) region(start, length int64, kind, path string) {
	if s.strict && length > 0 {
		s.regions = append(s.regions, region{start, start + length, kind, path})
	}
}

// checkOverlaps requires that two regions are apart; names of one file share an extent.
func (s *scan) checkOverlaps() {
	slices.SortStableFunc(s.regions, func(a, b region) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	var last region
	for _, r := range s.regions {
		same := r.kind == regionFile && last.kind == regionFile && r.start == last.start && r.end == last.end
		if r.start < last.end && !same {
			s.add(ruleExtentOverlap, r.path, "the %s overlaps the %s of %s", r.kind, last.kind, nameOrRoot(last.path))
		}
		if r.end > last.end {
			last = r
		}
	}
}

func nameOrRoot(path string) string {
	if path == "" || path == "." {
		return "the volume"
	}
	return path
}

// space is a run of bytes that no region accounts for.
type space struct {
	start, end int64
	after      string // what it follows
}

// spaces returns the bytes that no region accounts for. The regions are sorted.
func (s *scan) spaces() []space {
	var list []space
	at, before := int64(0), "the start of the image"
	add := func(end int64) {
		if end > at {
			list = append(list, space{at, end, before})
		}
	}
	for _, r := range s.regions {
		add(r.start)
		if r.end > at {
			at, before = r.end, "the "+r.kind+" of "+nameOrRoot(r.path)
		}
	}
	add(s.volumeSize())
	return list
}

// checkHidden looks for bytes in the spaces that are not zero. Findings are in the order of the spaces.
func (s *scan) checkHidden(workers int) error {
	list := s.spaces()
	used, errs := make([]bool, len(list)), make([]error, len(list))
	var failed atomic.Int64 // the first space that could not be read
	failed.Store(int64(len(list)))
	var group errgroup.Group
	group.SetLimit(workers)
	for i, space := range list {
		group.Go(func() error {
			if failed.Load() < int64(i) {
				return nil // what follows an error is not reported
			}
			if used[i], errs[i] = s.src.isUsed(space); errs[i] != nil {
				lower(&failed, int64(i))
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	for i, space := range list {
		if errs[i] != nil {
			return s.explain(errs[i], space.start, "", "space between files")
		}
		if used[i] {
			s.add(ruleHiddenData, "", "there is data after %s that belongs to no file", space.after)
		}
	}
	return nil
}

// lower makes a number at most n.
func lower(number *atomic.Int64, n int64) {
	for old := number.Load(); n < old && !number.CompareAndSwap(old, n); old = number.Load() {
	}
}

// isUsed reports whether a space has a byte that is not zero.
func (s *source) isUsed(place space) (bool, error) {
	buffer := make([]byte, min(pieceSize, place.end-place.start))
	for at := place.start; at < place.end; at += int64(len(buffer)) {
		buffer = buffer[:min(int64(len(buffer)), place.end-at)]
		if err := s.read(buffer, at); err != nil {
			return false, err
		}
		if slices.ContainsFunc(buffer, func(b byte) bool { return b != 0 }) {
			return true, nil
		}
	}
	return false, nil
}
