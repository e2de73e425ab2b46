package iso

import (
	"cmp"
	"slices"
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

// checkHidden looks for bytes that no region accounts for and that are not zero. The regions are sorted.
func (s *scan) checkHidden() error {
	at, before := int64(0), "the start of the image"
	gap := func(end int64) error {
		if end <= at {
			return nil
		}
		zero, err := s.isZero(at, end)
		if err == nil && !zero {
			s.add(ruleHiddenData, "", "there is data after %s that belongs to no file", before)
		}
		return err
	}
	for _, r := range s.regions {
		if err := gap(r.start); err != nil {
			return err
		}
		if r.end > at {
			at, before = r.end, "the "+r.kind+" of "+nameOrRoot(r.path)
		}
	}
	return gap(s.volumeSize())
}

func (s *scan) isZero(start, end int64) (bool, error) {
	for start < end {
		b := s.buf[:min(int64(len(s.buf)), end-start)]
		if err := s.read(b, start, "", "space between files"); err != nil {
			return false, err
		}
		for _, c := range b {
			if c != 0 {
				return false, nil
			}
		}
		start += int64(len(b))
	}
	return true, nil
}
