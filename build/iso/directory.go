package iso

import (
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"
)

// node is a file or directory of one tree.
type node struct {
	name       string // Rock Ridge or Joliet name
	path       string // the names from the root on; "." for the root
	identifier string // as recorded, version included
	dir        bool
	splitName  bool   // the name is spread over several NM entries
	extent     uint32 // of a directory
	length     uint32
	size       int64
	sections   []Section
	mode       fs.FileMode
	uid, gid   uint32
	links      uint32
	record     uint32 // sector with the record of a directory
	modTime    time.Time
	parent     *node   // of the root, the root
	children   []*node // in the order of the records
	records    int     // directory records that make up the entry
	sum        uint64  // see [node.content]
}

// hierarchy is one tree of an image. Its directories are in breadth-first order.
type hierarchy struct {
	volume      *volume
	root        *node
	directories []*node
}

// reader reads one hierarchy.
type reader struct {
	*scan
	tree    hierarchy
	joliet  bool
	entries int
	seen    map[uint32]string // extent of each directory read so far
}

// readTree reads all directories of a volume.
func (s *scan) readTree(v *volume) (*hierarchy, error) {
	r := &reader{scan: s, joliet: v.joliet, seen: map[uint32]string{}}
	root := &node{name: ".", path: ".", identifier: identifierSelf, dir: true, mode: fs.ModeDir | 0o555, extent: v.root.extent, length: v.root.size}
	root.parent = root
	r.tree = hierarchy{volume: v, root: root, directories: []*node{root}}
	for i := 0; i < len(r.tree.directories); i++ {
		d := r.tree.directories[i]
		if err := r.readDirectory(d); err != nil {
			return nil, err
		}
		if !r.joliet {
			if err := r.checkIdentifiers(d); err != nil {
				return nil, err
			}
		}
		if err := r.checkDuplicates(d); err != nil {
			return nil, err
		}
		for _, c := range d.children {
			if c.dir {
				r.tree.directories = append(r.tree.directories, c)
			}
		}
	}
	return &r.tree, nil
}

// readDirectory reads the records of d, sector by sector.
func (r *reader) readDirectory(d *node) error {
	if err := r.checkDirectoryExtent(d); err != nil {
		return err
	}
	l := &listing{reader: r, dir: d}
	for done := int64(0); done < int64(d.length); {
		chunk := r.buf[:min(int64(len(r.buf)), int64(d.length)-done)]
		offset := int64(d.extent)*sectorSize + done
		if err := r.read(chunk, offset, d.path, "directory"); err != nil {
			return err
		}
		for sector := 0; sector < len(chunk); sector += sectorSize {
			l.sector = uint32((offset + int64(sector)) / sectorSize) //nolint:gosec // within the volume, whose sectors have numbers of 32 bits
			if err := l.readSector(chunk[sector : sector+sectorSize]); err != nil {
				return err
			}
		}
		done += int64(len(chunk))
	}
	return l.end()
}

func (r *reader) checkDirectoryExtent(d *node) error {
	start, length := int64(d.extent)*sectorSize, int64(d.length)
	kind := r.tree.volume.treeName() + " directory"
	switch {
	case length == 0 || length%sectorSize != 0:
		return r.fail(ruleDirectorySize, d.path, "the %s has %d bytes, want a multiple of %d", kind, length, sectorSize)
	case length > maxTableBytes:
		return r.fail(ruleLimits, d.path, "the %s has %d bytes, the limit is %d", kind, length, maxTableBytes)
	case start+length > r.volumeSize():
		return r.fail(ruleExtentBounds, d.path, "the %s ends at byte %d, the volume at %d", kind, start+length, r.volumeSize())
	}
	if other, again := r.seen[d.extent]; again {
		return r.fail(ruleDirectoryLoop, d.path, "the %s lies at sector %d, as does that of %s", kind, d.extent, other)
	}
	r.seen[d.extent] = d.path
	r.region(start, length, kind, d.path)
	return nil
}

// volumeSize is the size in bytes that the primary descriptor gives the volume; it is within the file.
func (s *scan) volumeSize() int64 { return int64(s.primary.blocks) * sectorSize }

// listing is the state while the records of one directory are read.
type listing struct {
	*reader
	dir      *node
	sector   uint32 // that is read
	count    int
	previous string // identifier of the record before
	open     *node  // the file whose further sections follow
}

func (l *listing) readSector(sector []byte) error {
	for at := 0; at < len(sector); {
		length := int(sector[at])
		if length == 0 {
			return l.checkZero(sector[at:])
		}
		if at+length > len(sector) {
			return l.fail(ruleRecord, l.dir.path, "a directory record of %d bytes crosses the end of its sector", length)
		}
		record, problem := parseRecord(sector[at : at+length])
		if problem != "" {
			return l.fail(ruleRecord, l.dir.path, "a directory record is malformed: %s", problem)
		}
		if err := l.readRecord(&record); err != nil {
			return err
		}
		at += length
	}
	return nil
}

func (l *listing) checkZero(rest []byte) error {
	for _, b := range rest {
		if b != 0 {
			return l.flag(ruleHiddenData, l.dir.path, "there are bytes after the last record in a sector of the directory")
		}
	}
	return nil
}

func (l *listing) readRecord(r *dirRecord) error {
	l.count++
	if l.entries++; l.entries > maxEntries {
		return l.fail(ruleLimits, l.dir.path, "there are more than %d directory records", maxEntries)
	}
	if err := l.checkRecordHalves(r, l.dir.path, l.tree.volume.treeName()); err != nil {
		return err
	}
	if l.count <= 2 {
		return l.readDotRecord(r)
	}
	n := &node{identifier: string(r.id), parent: l.dir, dir: r.flags&flagDirectory != 0, modTime: parseTime7(r.date[:])}
	if err := l.readName(n, r); err != nil {
		return err
	}
	if l.paths -= len(n.path); l.paths < 0 {
		return l.fail(ruleLimits, l.dir.path, "the paths of the image have more than %d MiB", maxPathBytes>>20)
	}
	if err := l.checkRecordForm(r, n.path); err != nil {
		return err
	}
	if err := l.checkSorted(n); err != nil {
		return err
	}
	if n.dir {
		return l.addDirectory(n, r)
	}
	return l.addSection(n, r)
}

// checkRecordHalves compares the halves of the both-endian fields.
func (s *scan) checkRecordHalves(r *dirRecord, dir, tree string) error {
	for _, f := range []struct {
		same  bool
		field string
	}{{r.extentSame, "extent"}, {r.sizeSame, "size"}, {r.volumeSame, "volume sequence number"}} {
		if f.same {
			continue
		}
		if err := s.flag(ruleBothEndian, dir, "%s directory record %q: the halves of the %s differ", tree, r.id, f.field); err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) checkRecordForm(r *dirRecord, path string) error {
	var what string
	switch {
	case r.flags&flagHidden != 0:
		what = "is hidden"
	case r.flags&flagAssociated != 0:
		what = "is an associated file"
	case r.flags&(flagRecord|flagProtection) != 0 || r.attributes != 0:
		what = "has extended attributes"
	case r.unit != 0 || r.gap != 0:
		what = "is interleaved"
	case r.volume != 1:
		what = "is on another volume of the set"
	case r.flags&flagReserved != 0:
		what = "has reserved flags"
	default:
		return nil
	}
	return s.flag(ruleRecordForm, path, "the file %s", what)
}

// readDotRecord checks the records of the directory itself and of its parent.
func (l *listing) readDotRecord(r *dirRecord) error {
	want, what := l.dir, "itself"
	if l.count == 2 {
		want, what = l.dir.parent, "its parent"
	}
	kind := l.tree.volume.treeName()
	if len(r.id) != 1 || int(r.id[0]) != l.count-1 || r.flags&flagDirectory == 0 {
		return l.fail(ruleDotEntries, l.dir.path, "record %d of the %s directory is not the one for %s", l.count, kind, what)
	}
	if l.joliet && l.count == 2 && r.extent == l.dir.extent && r.size == l.dir.length && want != l.dir {
		return l.flag(ruleParentEntry, l.dir.path, "the parent record of the Joliet directory leads to the directory itself")
	}
	if r.extent != want.extent || r.size != want.length {
		return l.flag(ruleDotEntries, l.dir.path, "the record of the %s directory for %s gives sector %d and %d bytes, want %d and %d",
			kind, what, r.extent, r.size, want.extent, want.length)
	}
	if err := l.checkRecordForm(r, l.dir.path); err != nil || l.joliet {
		return err
	}
	rr, err := l.readSystemUse(r.systemUse, l.dir.path, l.count == 1 && l.dir.parent == l.dir)
	if err != nil || l.count == 2 || !rr.hasMode {
		return err
	}
	if l.dir.parent == l.dir {
		l.dir.applyRockRidge(&rr)
		return l.checkOwner(l.dir)
	}
	if rr.mode&0o777 != uint32(l.dir.mode.Perm()) || rr.uid != l.dir.uid || rr.gid != l.dir.gid {
		return l.flag(ruleDotEntries, l.dir.path, "the record of the directory for itself gives mode %#o and owner %d:%d, want %#o and %d:%d",
			rr.mode&0o777, rr.uid, rr.gid, l.dir.mode.Perm(), l.dir.uid, l.dir.gid)
	}
	return nil
}

// readName sets the name of n: the Rock Ridge name in the primary tree, the decoded identifier in the Joliet tree.
func (l *listing) readName(n *node, r *dirRecord) error {
	if l.joliet {
		n.name = trimVersion(parseUCS2(r.id))
		if !utf8.ValidString(n.name) || problemOfName(n.name) != "" {
			return l.fail(ruleName, l.dir.path, "the Joliet identifier %q is not a name", n.name)
		}
		n.path = joinPath(l.dir.path, n.name)
		return nil
	}
	path := joinPath(l.dir.path, trimVersion(n.identifier))
	rr, err := l.readSystemUse(r.systemUse, path, false)
	if err != nil {
		return err
	}
	if !rr.hasMode || !rr.hasName {
		return l.fail(ruleNoRockRidge, path, "the file has no Rock Ridge name or mode")
	}
	n.name = string(rr.name)
	n.splitName = rr.nameParts > 1
	if problem := problemOfName(n.name); problem != "" {
		return l.fail(ruleName, l.dir.path, "the name %q %s", n.name, problem)
	}
	n.path = joinPath(l.dir.path, n.name)
	n.applyRockRidge(&rr)
	return l.checkMode(n, &rr)
}

func joinPath(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// problemOfName returns the reason why no reader of Solutions can show a file of this name.
func problemOfName(name string) string {
	switch {
	case name == "" || name == "." || name == "..":
		return "is reserved"
	case len(name) > 255:
		return "is longer than 255 bytes"
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case strings.ContainsAny(name, "/\\"):
		return "contains a separator"
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7F }):
		return "contains a control character"
	}
	return ""
}

func (l *listing) checkSorted(n *node) error {
	previous := l.previous
	l.previous = n.identifier
	if l.count == 3 || l.open != nil && previous == n.identifier {
		return nil
	}
	order := strings.Compare(previous, n.identifier)
	if !l.joliet {
		order = comparePrimary(previous, n.identifier)
	}
	if order > 0 {
		return l.flag(ruleSortOrder, n.path, "the %s directory lists %s after %s", l.tree.volume.treeName(),
			l.printIdentifier(n.identifier), l.printIdentifier(previous))
	}
	return nil
}

func (l *listing) printIdentifier(id string) string {
	if l.joliet {
		id = parseUCS2([]byte(id))
	}
	return id
}

func (l *listing) addDirectory(n *node, r *dirRecord) error {
	n.extent, n.length, n.record = r.extent, r.size, l.sector
	if r.flags&flagMultiExtent != 0 || l.open != nil {
		return l.fail(ruleMultiExtent, n.path, "a directory is in the place of a section of a file")
	}
	if depth := strings.Count(n.path, "/") + 2; depth > maxDepth {
		return l.fail(ruleLimits, n.path, "the directory is nested deeper than %d levels", maxDepth)
	}
	n.records = 1
	l.dir.children = append(l.dir.children, n)
	return nil
}

// addSection adds a file, or the next section of the file before.
func (l *listing) addSection(n *node, r *dirRecord) error {
	section := Section{Offset: int64(r.extent) * sectorSize, Size: int64(r.size)}
	last := r.flags&flagMultiExtent == 0
	switch {
	case section.Size > 0 && section.Offset+section.Size > l.volumeSize():
		return l.fail(ruleExtentBounds, n.path, "the file ends at byte %d, the volume at %d", section.Offset+section.Size, l.volumeSize())
	case !last && (section.Size == 0 || section.Size%sectorSize != 0):
		return l.fail(ruleMultiExtent, n.path, "a section of %d bytes is followed by another one", section.Size)
	case l.open != nil && (l.open.identifier != n.identifier || l.open.name != n.name):
		return l.fail(ruleMultiExtent, l.open.path, "its last section is missing")
	}
	if l.open != nil && !l.open.continues(section) {
		return l.fail(ruleMultiExtent, n.path, "its sections are not in the order of the image")
	}
	if l.open == nil {
		l.open = n
		l.dir.children = append(l.dir.children, n)
	}
	l.open.records++
	l.open.addSection(section)
	if section.Size > 0 && !l.joliet {
		l.region(section.Offset, section.Size, regionFile, n.path)
	}
	if last {
		l.open = nil
	}
	return nil
}

// continues reports whether a section lies behind those that the file has; so a file is never larger than its image.
func (n *node) continues(s Section) bool {
	i := len(n.sections) - 1
	return i < 0 || s.Size == 0 || s.Offset >= n.sections[i].Offset+n.sections[i].Size
}

// addSection appends a section; one that continues the last is merged with it.
func (n *node) addSection(s Section) {
	if s.Size == 0 {
		return
	}
	n.size += s.Size
	if i := len(n.sections) - 1; i >= 0 && n.sections[i].Offset+n.sections[i].Size == s.Offset {
		n.sections[i].Size += s.Size
		return
	}
	n.sections = append(n.sections, s)
}

func (l *listing) end() error {
	if l.open != nil {
		return l.fail(ruleMultiExtent, l.open.path, "its last section is missing")
	}
	if l.count < 2 {
		return l.fail(ruleDotEntries, l.dir.path, "the %s directory lacks the records for itself and its parent", l.tree.volume.treeName())
	}
	return nil
}
