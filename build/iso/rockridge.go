package iso

import (
	"bytes"
	"io/fs"
	"slices"
	"time"
)

// The file types of the mode in a PX entry.
const (
	modeTypeMask  = 0o170000
	modeDirectory = 0o040000
	modeRegular   = 0o100000
	modeSetUID    = 0o4000
	modeSetGID    = 0o2000
)

// rockRidge holds the system use entries of one record (IEEE P1282).
type rockRidge struct {
	hasMode, hasName bool
	mode             uint32
	links, uid, gid  uint32
	name             []byte
	nameParts        int
	nameOpen         bool // the last NM entry announces another one
	modTime          time.Time
	isSUSP           bool // SP was seen
	extensions       []string
}

// continuation is the place of further entries of the same record (SUSP, entry CE).
type continuation struct{ block, offset, length uint32 }

// readSystemUse parses the system use field of a record and its continuation areas. In the first record of the root
// directory it also requires that SUSP and Rock Ridge are announced.
func (s *scan) readSystemUse(field []byte, path string, root bool) (rockRidge, error) {
	var rr rockRidge
	next, err := s.parseEntries(&rr, field, path, root)
	for areas := 0; err == nil && next != nil; areas++ {
		if areas == maxContinuations {
			return rr, s.fail(ruleSUSP, path, "the record has more than %d continuation areas", maxContinuations)
		}
		if field, err = s.readContinuation(*next, path); err != nil {
			return rr, err
		}
		next, err = s.parseEntries(&rr, field, path, false)
	}
	if err != nil {
		return rr, err
	}
	if rr.nameOpen {
		return rr, s.fail(ruleSUSP, path, "the name is not continued")
	}
	if root && (!rr.isSUSP || !slices.ContainsFunc(rr.extensions, isRockRidge)) {
		return rr, s.fail(ruleNoRockRidge, "", "the image has no Rock Ridge names")
	}
	return rr, nil
}

func isRockRidge(extension string) bool {
	return extension == "RRIP_1991A" || extension == "IEEE_P1282" || extension == "IEEE_1282"
}

// readContinuation returns the bytes of a continuation area. They are valid until the next call.
func (s *scan) readContinuation(c continuation, path string) ([]byte, error) {
	if c.offset >= sectorSize || c.length > sectorSize-c.offset {
		return nil, s.fail(ruleSUSP, path, "a continuation area crosses the end of its sector")
	}
	start := int64(c.block) * sectorSize
	if start+sectorSize > s.volumeSize() {
		return nil, s.fail(ruleExtentBounds, path, "a continuation area lies outside the volume")
	}
	if s.ceBlock != int64(c.block) {
		s.ceBlock = 0
		if err := s.read(s.ce[:], start, path, "continuation area"); err != nil {
			return nil, err
		}
		s.ceBlock = int64(c.block)
	}
	s.region(start+int64(c.offset), int64(c.length), regionContinuation, path)
	return s.ce[c.offset : c.offset+c.length], nil
}

// parseEntries parses the entries of one area into rr and returns the continuation that it names.
func (s *scan) parseEntries(rr *rockRidge, area []byte, path string, root bool) (*continuation, error) {
	var next *continuation
	for len(area) >= 4 {
		if area[0] == 0 { // padding
			break
		}
		length := int(area[2])
		if length < 4 || length > len(area) {
			return nil, s.fail(ruleSUSP, path, "a system use entry of %d bytes does not fit where it is", length)
		}
		entry := area[:length]
		area = area[length:]
		signature := string(entry[:2])
		if signature == "ST" {
			break
		}
		if signature == "CE" {
			c, err := s.parseContinuation(entry, path)
			if err != nil {
				return nil, err
			}
			if next != nil {
				return nil, s.fail(ruleSUSP, path, "an area has two continuations")
			}
			next = &c
			continue
		}
		if err := s.parseEntry(rr, entry, path, root); err != nil {
			return nil, err
		}
	}
	if len(bytes.Trim(area, "\x00")) > 0 {
		return next, s.flag(ruleHiddenData, path, "there are bytes after the last system use entry")
	}
	return next, nil
}

func (s *scan) parseContinuation(entry []byte, path string) (c continuation, err error) {
	if len(entry) != 28 {
		return c, s.fail(ruleSUSP, path, "a CE entry has %d bytes, want 28", len(entry))
	}
	for i, to := range []*uint32{&c.block, &c.offset, &c.length} {
		var same bool
		if *to, same = parseBoth32(entry[4+8*i:]); !same {
			if err := s.flag(ruleBothEndian, path, "the halves of a field of a CE entry differ"); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

func (s *scan) parseEntry(rr *rockRidge, entry []byte, path string, root bool) error {
	switch signature := string(entry[:2]); signature {
	case "SP":
		if !root || len(entry) != 7 || entry[4] != 0xBE || entry[5] != 0xEF || entry[6] != 0 {
			return s.fail(ruleSUSP, path, "an SP entry is malformed or not in the root directory")
		}
		rr.isSUSP = true
	case "ER":
		if len(entry) < 8 || 8+int(entry[4]) > len(entry) {
			return s.fail(ruleSUSP, path, "an ER entry is malformed")
		}
		rr.extensions = append(rr.extensions, string(entry[8:8+int(entry[4])]))
	case "PX":
		return s.parsePX(rr, entry, path)
	case "NM":
		return s.parseNM(rr, entry, path)
	case "TF":
		return s.parseTF(rr, entry, path)
	case "CL", "PL", "RE":
		return s.fail(ruleRelocated, path, "the directory is relocated (%s)", signature)
	case "SL", "PN", "SF", "ZF":
		return s.fail(ruleFileType, path, "it is a %s", map[string]string{
			"SL": "symbolic link", "PN": "device", "SF": "sparse file", "ZF": "compressed file (zisofs)",
		}[signature])
	case "RR", "PD", "ES":
	default:
		return s.flag(ruleSUSPUnknown, path, "the record has a system use entry %q", signature)
	}
	return nil
}

// parsePX parses mode, links, user and group. A serial number after them is ignored.
func (s *scan) parsePX(rr *rockRidge, entry []byte, path string) error {
	if len(entry) != 36 && len(entry) != 44 || rr.hasMode {
		return s.fail(ruleSUSP, path, "a PX entry is malformed or repeated")
	}
	for i, to := range []*uint32{&rr.mode, &rr.links, &rr.uid, &rr.gid} {
		var same bool
		if *to, same = parseBoth32(entry[4+8*i:]); !same {
			if err := s.flag(ruleBothEndian, path, "the halves of a field of a PX entry differ"); err != nil {
				return err
			}
		}
	}
	rr.hasMode = true
	return nil
}

func (s *scan) parseNM(rr *rockRidge, entry []byte, path string) error {
	const following, current, parent = 1, 2, 4
	if len(entry) < 5 || entry[4]&^following != 0 || rr.hasName && !rr.nameOpen {
		if len(entry) == 5 && (entry[4] == current || entry[4] == parent) && path != "" {
			return s.fail(ruleName, path, "the name is . or ..")
		}
		return s.fail(ruleSUSP, path, "an NM entry is malformed or repeated")
	}
	rr.hasName, rr.nameOpen = true, entry[4]&following != 0
	rr.nameParts++
	rr.name = append(rr.name, entry[5:]...)
	if len(rr.name) > 1024 {
		return s.fail(ruleName, path, "the name is longer than 255 bytes")
	}
	return nil
}

// parseTF reads the time of modification, the second of the times that the flags announce.
func (s *scan) parseTF(rr *rockRidge, entry []byte, path string) error {
	const creation, modify, long = 0x01, 0x02, 0x80
	if len(entry) < 5 {
		return s.fail(ruleSUSP, path, "a TF entry is malformed")
	}
	flags := entry[4]
	if flags&modify == 0 || flags&long != 0 {
		return nil
	}
	at := 5
	if flags&creation != 0 {
		at += 7
	}
	if at+7 > len(entry) {
		return s.fail(ruleSUSP, path, "a TF entry is malformed")
	}
	rr.modTime = parseTime7(entry[at:])
	return nil
}

func (n *node) applyRockRidge(rr *rockRidge) {
	n.mode = fs.FileMode(rr.mode & 0o777)
	if n.dir {
		n.mode |= fs.ModeDir
	}
	n.uid, n.gid, n.links = rr.uid, rr.gid, rr.links
	if !rr.modTime.IsZero() {
		n.modTime = rr.modTime
	}
}

// checkMode judges type, permissions and owner of a file.
func (l *listing) checkMode(n *node, rr *rockRidge) error {
	want := uint32(modeRegular)
	if n.dir {
		want = modeDirectory
	}
	if got := rr.mode & modeTypeMask; got != want {
		return l.fail(ruleFileType, n.path, "the Rock Ridge type is %#o, want %#o", got, want)
	}
	if !n.dir && rr.mode&(modeSetUID|modeSetGID) != 0 {
		if err := l.flag(ruleMode, n.path, "the file has mode %04o", rr.mode&0o7777); err != nil {
			return err
		}
	}
	return l.checkOwner(n)
}

func (s *scan) checkOwner(n *node) error {
	if n.uid != 0 || n.gid != 0 {
		return s.flag(ruleOwner, n.path, "the owner is user %d and group %d", n.uid, n.gid)
	}
	return nil
}
