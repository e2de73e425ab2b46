package iso

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Bounds of a reader. They are far above the needs of any Solution and bound the work for a hostile image.
const (
	maxTableBytes    = 64 << 20  // one directory or one path table
	maxEntries       = 1 << 20   // directory records of one tree
	maxDepth         = 32        // levels of directories
	maxPathBytes     = 256 << 20 // paths of both trees, which are kept
	maxDescriptors   = 64        // volume descriptors before the terminator
	maxContinuations = 16        // continuation areas of one record
	maxMetadataBytes = 1 << 30   // read in total, both trees; and between files
	maxMetadataReads = 1 << 21   // calls of ReadAt in total
)

// descriptorBoot is the type of a boot record; the writer makes none.
const descriptorBoot = 0

// pieceSize is the size in bytes of the pieces in which directories and spaces are read.
const pieceSize = 32 * sectorSize

// source reads an image within its bounds and within a budget. Several goroutines may read at once.
type source struct {
	r            io.ReaderAt
	size         int64
	calls, bytes atomic.Int64
}

var (
	errOutside = errors.New("it lies outside the image")
	errBudget  = errors.New("the image has more metadata than is sensible")
)

func (s *source) read(p []byte, offset int64) error {
	if offset < 0 || offset > s.size || int64(len(p)) > s.size-offset {
		return errOutside
	}
	if s.calls.Add(1) > maxMetadataReads || s.bytes.Add(int64(len(p))) > maxMetadataBytes {
		return errBudget
	}
	n, err := s.r.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// volume holds the fields of a volume descriptor (ECMA-119, section 8.4).
type volume struct {
	joliet     bool
	blocks     uint32
	pathTable  uint32    // bytes
	pathTables [4]uint32 // sectors: little-endian, its optional copy, big-endian, its optional copy
	root       dirRecord
	id         string
}

// scan is one pass over the metadata of an image; Open and Check share it.
type scan struct {
	verdict
	src     *source
	primary volume
	joliet  *volume // nil when the image has none
	ended   int64   // first byte after the descriptors

	buf     []byte // one chunk of a directory
	ceBlock int64  // the sector held in ce, 0 for none
	ce      [sectorSize]byte
	regions []region // kept in strict mode only
	paths   int      // bytes of paths that may follow
}

func newScan(r io.ReaderAt, size int64, strict bool) *scan {
	return &scan{verdict: verdict{strict: strict}, src: &source{r: r, size: size}, buf: make([]byte, pieceSize), paths: maxPathBytes}
}

// read fills p and words the failure.
func (s *scan) read(p []byte, offset int64, path, what string) error {
	if err := s.src.read(p, offset); err != nil {
		return s.explain(err, offset, path, what)
	}
	return nil
}

// explain words the failure of a read.
func (s *scan) explain(err error, offset int64, path, what string) error {
	switch {
	case errors.Is(err, errBudget):
		return s.fail(ruleLimits, path, "read %s: %w", what, err)
	case errors.Is(err, errOutside), errors.Is(err, io.ErrUnexpectedEOF):
		return s.fail(ruleUnreadable, path, "read %s at byte %d: %w", what, offset, err)
	}
	if s.strict {
		s.add(ruleUnreadable, path, "read %s at byte %d: %w", what, offset, err)
	}
	return report.Errorf(report.CodeOf(err), "read %s at byte %d: %w", what, offset, err)
}

// readDescriptors reads the volume descriptors up to the terminator.
func (s *scan) readDescriptors() error {
	b := make([]byte, sectorSize)
	for i := range int64(maxDescriptors) {
		offset := (systemArea + i) * sectorSize
		if i == 0 && s.src.size < offset+sectorSize {
			return s.fail(ruleUnreadable, "", "this is not an ISO 9660 image: it has %d bytes, and the volume descriptors begin at byte %d", s.src.size, offset)
		}
		if err := s.read(b, offset, "", "volume descriptor"); err != nil {
			return err
		}
		if string(b[1:6]) != standardID {
			if i == 0 {
				return s.fail(ruleDescriptor, "", "this is not an ISO 9660 image: there is no volume descriptor at sector 16")
			}
			return s.fail(ruleDescriptor, "", "the volume descriptors end without a terminator at sector %d", systemArea+i)
		}
		if i == 0 && b[0] != descriptorPrimary {
			return s.fail(ruleDescriptor, "", "the first volume descriptor has type %d, want 1 (primary)", b[0])
		}
		if b[0] == descriptorTerminator {
			s.ended = offset + sectorSize
			return s.checkVolumeSizes()
		}
		if err := s.readDescriptor(b, i); err != nil {
			return err
		}
	}
	return s.fail(ruleDescriptor, "", "there are more than %d volume descriptors", maxDescriptors)
}

func (s *scan) readDescriptor(b []byte, i int64) error {
	switch b[0] {
	case descriptorPrimary:
		if i > 0 {
			return s.fail(ruleDescriptor, "", "there is a second primary volume descriptor at sector %d", systemArea+i)
		}
		return s.parseVolume(b, &s.primary)
	case descriptorSupplementary:
		if !isJoliet(b) {
			return s.flag(ruleExtraDescriptor, "", "sector %d holds a supplementary volume descriptor that is not Joliet", systemArea+i)
		}
		if s.joliet != nil {
			return s.fail(ruleDescriptor, "", "there is a second Joliet volume descriptor at sector %d", systemArea+i)
		}
		s.joliet = &volume{joliet: true}
		return s.parseVolume(b, s.joliet)
	case descriptorBoot:
		return s.flag(ruleElTorito, "", "sector %d holds a boot record (%s)", systemArea+i, printable(b[7:39]))
	default:
		return s.flag(ruleExtraDescriptor, "", "sector %d holds a volume descriptor of type %d", systemArea+i, b[0])
	}
}

func isJoliet(b []byte) bool {
	switch string(b[88:91]) {
	case "%/@", "%/C", "%/E":
		return b[6] == 1 && b[91] == 0
	}
	return false
}

func (s *scan) parseVolume(b []byte, v *volume) error {
	name := v.treeName()
	if b[6] != 1 || b[881] != 1 {
		return s.fail(ruleDescriptor, "", "%s volume descriptor: version %d and structure version %d, want 1 and 1", name, b[6], b[881])
	}
	blocks, table, err := s.parseSizes(b, name)
	if err != nil {
		return err
	}
	if table > maxTableBytes {
		return s.fail(ruleLimits, "", "the path table of the %s tree has %d bytes, the limit is %d", name, table, maxTableBytes)
	}
	v.blocks, v.pathTable = blocks, table
	v.pathTables = [4]uint32{
		binary.LittleEndian.Uint32(b[140:]), binary.LittleEndian.Uint32(b[144:]),
		binary.BigEndian.Uint32(b[148:]), binary.BigEndian.Uint32(b[152:]),
	}
	v.id = parseVolumeID(b[40:72], v.joliet)
	root, problem := parseRecord(b[156:190])
	if problem != "" || root.flags&flagDirectory == 0 {
		return s.fail(ruleDescriptor, "", "%s volume descriptor: the record of the root directory is malformed", name)
	}
	v.root = root
	return s.checkRecordHalves(&v.root, "", name)
}

// parseSizes parses the both-endian fields of a descriptor: three have one acceptable value, two are returned.
func (s *scan) parseSizes(b []byte, name string) (blocks, table uint32, err error) {
	for _, f := range []struct {
		field  string
		offset int
		to     *uint32
	}{{"volume size", 80, &blocks}, {"path table size", 132, &table}} {
		var same bool
		if *f.to, same = parseBoth32(b[f.offset:]); !same {
			if err := s.flag(ruleBothEndian, "", "%s volume descriptor: the halves of the %s differ", name, f.field); err != nil {
				return 0, 0, err
			}
		}
	}
	for _, f := range []struct {
		field  string
		offset int
		want   uint16
	}{{"volume set size", 120, 1}, {"volume sequence number", 124, 1}, {"logical block size", 128, sectorSize}} {
		got, same := parseBoth16(b[f.offset:])
		if !same {
			if err := s.flag(ruleBothEndian, "", "%s volume descriptor: the halves of the %s differ", name, f.field); err != nil {
				return 0, 0, err
			}
		}
		if got != f.want {
			return 0, 0, s.fail(ruleDescriptor, "", "%s volume descriptor: the %s is %d, want %d", name, f.field, got, f.want)
		}
	}
	return blocks, table, nil
}

func (s *scan) checkVolumeSizes() error {
	if size := int64(s.primary.blocks) * sectorSize; size > s.src.size {
		return s.fail(ruleVolumeSize, "", "the volume has %d bytes, the file only %d", size, s.src.size)
	}
	if s.joliet != nil && s.joliet.blocks != s.primary.blocks {
		return s.flag(ruleVolumeSize, "", "the primary descriptor gives the volume %d blocks, the Joliet descriptor %d",
			s.primary.blocks, s.joliet.blocks)
	}
	return nil
}

func (v *volume) treeName() string {
	if v.joliet {
		return "Joliet"
	}
	return "primary"
}

func printable(b []byte) string {
	return fmt.Sprintf("%q", bytes.TrimRight(b, " \x00"))
}
