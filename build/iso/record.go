package iso

import (
	"io/fs"
	"time"
)

// renderer writes the directories of one tree. Layout learns their sizes by rendering each once into nothing, before
// anything has a place; that works because the length of a record never depends on a sector number.
type renderer struct {
	image *Image
	tree  tree
	out   *sink
	stamp []byte // the one time of the image, as directory records hold it

	n            int64  // bytes of records of the directory at hand
	area         uint32 // where its continuation area begins
	continuation []byte // that area, which follows the records
	scratch      []byte
}

func (m *Image) newRenderer(t tree, out *sink) *renderer {
	return &renderer{image: m, tree: t, out: out, stamp: appendTime7(nil, m.options.ModTime)}
}

// render writes the records of a directory and its continuation area. It returns how many bytes either takes, padding
// to whole sectors included.
func (r *renderer) render(d *directory) (records, continuation int64) {
	r.n, r.continuation = 0, r.continuation[:0]
	r.area = d.lba[r.tree] + uint32(sectorsFor(int64(d.size[r.tree])))

	r.directoryRecord(identifierSelf, d, d.self == nil, "")
	r.directoryRecord(identifierParent, d.parent, false, "")
	for _, i := range d.order[r.tree] {
		if e := &d.entries[i]; e.dir != nil {
			r.directoryRecord(e.identifier(r.tree), e.dir, false, e.name)
		} else {
			r.fileRecords(e)
		}
	}
	r.n += r.write(padding(r.n))

	r.continuation = append(r.continuation, padding(int64(len(r.continuation)))...)
	r.write(r.continuation)
	return r.n, int64(len(r.continuation))
}

// directoryRecord writes a record of directory d. The one that begins the root announces the extensions.
func (r *renderer) directoryRecord(identifier string, d *directory, announce bool, name string) {
	r.begin(identifier, d.lba[r.tree], d.size[r.tree], flagDirectory)
	if r.tree == primaryTree {
		var tail []byte
		switch {
		case announce:
			r.scratch, tail = appendSP(r.scratch), appendER(nil)
		case name != "":
			tail = appendNM(nil, name)
		}
		r.systemUse(posixDirectory|0o555, 2+d.subdirs, tail)
	}
	r.end()
}

// fileRecords writes the records of a file: one for each section, all with the same identifier and system use.
func (r *renderer) fileRecords(e *entry) {
	var lba uint32
	links := uint32(1)
	if e.extent >= 0 {
		lba, links = r.image.extents[e.extent].lba, r.image.extents[e.extent].names
	}
	f := &r.image.files[e.file]
	mode := uint32(f.Mode & fs.ModePerm)
	if mode == 0 {
		mode = 0o444
	}
	identifier := e.identifier(r.tree)
	for left := f.Size; ; left -= maxSection {
		section, flags := left, byte(0)
		if left > maxSection {
			section, flags = maxSection, flagMultiExtent
		}
		r.begin(identifier, lba, uint32(section), flags)
		if r.tree == primaryTree {
			r.systemUse(posixRegular|mode, links, appendNM(nil, e.name))
		}
		r.end()
		if flags == 0 {
			return
		}
		lba += maxSection / sectorSize
	}
}

// begin starts a record in scratch, ECMA-119 9.1.
func (r *renderer) begin(identifier string, lba, size uint32, flags byte) {
	r.scratch = appendRecord(r.scratch[:0], identifier, lba, size, r.stamp, flags)
}

// appendRecord appends a directory record without system use.
func appendRecord(b []byte, identifier string, lba, size uint32, stamp []byte, flags byte) []byte {
	b = append(b, byte(recordSize(identifier)), 0)
	b = appendBoth32(b, lba)
	b = appendBoth32(b, size)
	b = append(b, stamp...)
	b = append(b, flags, 0, 0)
	b = appendBoth16(b, 1) // volume of the set
	b = append(b, byte(len(identifier)))
	b = append(b, identifier...)
	if len(b)%2 == 1 {
		b = append(b, 0)
	}
	return b
}

func recordSize(identifier string) int {
	n := 33 + len(identifier)
	return n + n%2
}

// end writes the record in scratch. No record crosses a sector.
func (r *renderer) end() {
	if len(r.scratch)%2 == 1 {
		r.scratch = append(r.scratch, 0)
	}
	r.scratch[0] = byte(len(r.scratch))
	if sectorSize-r.n%sectorSize < int64(len(r.scratch)) {
		r.n += r.write(padding(r.n))
	}
	r.n += r.write(r.scratch)
}

func (r *renderer) write(b []byte) int64 {
	r.out.write(b)
	return int64(len(b))
}

// zeros fills the gaps between the parts of an image.
var zeros [extentSectors * sectorSize]byte

// padding returns the zeros that fill n bytes up to a whole sector.
func padding(n int64) []byte { return zeros[:sectorsFor(n)*sectorSize-n] }

// appendTime7 appends a time as directory records hold it, ECMA-119 9.1.5, in UTC.
func appendTime7(b []byte, t time.Time) []byte {
	t = t.UTC()
	return append(b, byte(t.Year()-1900), byte(t.Month()), byte(t.Day()), byte(t.Hour()), byte(t.Minute()), byte(t.Second()), 0)
}
