package iso

import (
	"io"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Check examines the structure of an image of the given size and returns what is wrong with it, in output order. It
// looks at everything that any reader of ISO 9660, Rock Ridge or Joliet relies on, and reads no file content. An image
// without an error finding shows the same files to every reader; see [Rules].
//
// A fault that leaves no ground for further judgements, such as a truncated file, ends the examination.
func Check(r io.ReaderAt, size int64) []report.Finding {
	s := newScan(r, size, true)
	if s.check() == nil { // what went wrong is among the findings
		_ = s.checkHidden()
	}
	return s.result()
}

// CheckRecords is [Check] without a look at the bytes that belong to no file and no directory. They lie all over an
// image, and what they hold is never more than a warning.
func CheckRecords(r io.ReaderAt, size int64) []report.Finding {
	s := newScan(r, size, true)
	_ = s.check()
	return s.result()
}

func (s *scan) check() error {
	primary, joliet, err := s.index()
	if err != nil {
		return err
	}
	s.region(systemArea*sectorSize, s.ended-systemArea*sectorSize, "volume descriptors", "")
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
