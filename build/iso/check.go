package iso

import (
	"io"
	"slices"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Check examines the structure of an image of the given size and returns its faults, in output order. It checks
// everything that any reader of ISO 9660, Rock Ridge or Joliet relies on, and reads no file content. An image without
// an error finding shows the same files to every reader; see [Rules].
//
// A fault after which nothing else can be judged, such as a truncated file, ends the examination.
func Check(r io.ReaderAt, size int64) []report.Finding {
	return CheckVerified(r, r, size, 1)
}

// CheckVerified is like [Check] for a reader r that reads megabytes around each byte to verify it. Only the bytes
// between the files, which are all over an image and which no program reads, are read from spaces, by this number of workers: a reader
// that verifies hashes megabytes for each of them.
func CheckVerified(r, spaces io.ReaderAt, size int64, workers int) []report.Finding {
	s := newScan(r, size, true)
	if s.check() == nil && s.checkFormats() == nil { // errors are among the findings
		s.src = &source{r: spaces, size: size} // with a budget of its own
		_ = s.checkHidden(workers)
	}
	return s.result()
}

// Refusal makes an error of the findings of [Check] and [CompareDiskFS]: the most informative one, or nil when no
// finding is an error.
func Refusal(findings []report.Finding) error {
	report.SortFindings(findings)
	errors := slices.DeleteFunc(slices.Clone(findings), func(f report.Finding) bool { return f.Severity != report.SeverityError })
	if len(errors) == 0 {
		return nil
	}
	first := max(0, slices.IndexFunc(errors, func(f report.Finding) bool { return f.Rule == ruleOtherFormat }))
	return report.Errorf(report.Invalid, "%s", errors[first])
}

func (s *scan) check() error {
	primary, joliet, err := s.index()
	if err != nil {
		return err
	}
	s.region(systemArea*sectorSize, s.ended-systemArea*sectorSize, "volume descriptors", "")
	if err := s.checkVersionSector(); err != nil {
		return err
	}
	if err := s.checkPathTables(primary); err != nil {
		return err
	}
	if joliet != nil {
		if err := s.checkPathTables(joliet); err != nil {
			return err
		}
	}
	if rest := s.src.size - s.volumeSize(); rest > 0 {
		s.add(ruleTrailingData, "", "%d bytes follow the end of the volume", rest)
	}
	s.checkOverlaps()
	return nil
}
