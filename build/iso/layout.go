package iso

import (
	"io"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/solutionctl/solutionctl/schema/report"
)

// ExtentAlignment divides the offset of every extent, in bytes, so that file systems with reflinks can
// clone content into an image. The bytes up to the next extent are zero.
const ExtentAlignment = 4096

const extentSectors = ExtentAlignment / sectorSize

// Layout decides where each byte of an image goes. It does no input or output and calls no Open function.
//
// Extents lie in the order in which files first name them; everything else depends on the names only. Layout refuses,
// with [report.Invalid] and a [PathError], names that some reader would misread: longer than 245 bytes, with a leading
// dot, a control character or a backslash; two names that differ in case only; a directory deeper than 8 levels. The
// image keeps files; they must not be changed any more.
func Layout(files []File, o Options) (*Image, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if len(files) > math.MaxInt32 {
		return nil, report.Errorf(report.Invalid, "iso layout: %d files are more than an image can hold", len(files))
	}
	m := &Image{files: files, options: o}
	if err := m.grow(); err != nil {
		return nil, err
	}
	m.numberDirectories(primaryTree)
	m.numberDirectories(jolietTree)
	if err := m.place(); err != nil {
		return nil, err
	}
	return m, nil
}

func (o *Options) check() error {
	switch year := o.ModTime.UTC().Year(); {
	case year < 1900 || year > 2155:
		return report.Errorf(report.Invalid, "iso layout: an image cannot record the year %d, only 1900 to 2155", year)
	case !isText(o.VolumeID):
		return report.Errorf(report.Invalid, "iso layout: volume id %q is not plain UTF-8 text", o.VolumeID)
	case len(o.VolumeID) > maxVolumeID:
		return report.Errorf(report.Invalid, "iso layout: volume id %q has %d bytes and the limit is %d", o.VolumeID, len(o.VolumeID), maxVolumeID).
			WithHint("choose a shorter volume id")
	case !isText(o.ApplicationID) || len(o.ApplicationID) > 128:
		return report.Errorf(report.Invalid, "iso layout: application id %q is not UTF-8 text of at most 128 bytes", o.ApplicationID)
	default:
		return nil
	}
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl) }

// numberDirectories puts the directories of a tree into path table order, ECMA-119 9.4: by level, then by the number of
// the parent, then by identifier.
func (m *Image) numberDirectories(t tree) {
	queue := []*directory{m.root}
	for i := 0; i < len(queue); i++ {
		d := queue[i]
		d.number[t] = uint16(i + 1)
		m.pathTables[t].size += int64(pathRecordSize(d.identifier(t)))
		for _, k := range d.order[t] {
			if child := d.entries[k].dir; child != nil {
				queue = append(queue, child)
			}
		}
	}
	m.directories[t] = queue
}

// place assigns sectors, from the first one after the volume descriptors to the end of the image:
//
//	path tables: primary little-endian, primary big-endian, Joliet little-endian, Joliet big-endian
//	directories of the primary tree, each followed by its continuation area
//	directories of the Joliet tree
//	extents
func (m *Image) place() error {
	next := int64(systemArea + volumeDescriptors)
	for t := range m.pathTables {
		table := &m.pathTables[t]
		table.little = uint32(next)
		table.large = uint32(next + sectorsFor(table.size))
		next += 2 * sectorsFor(table.size)
	}
	next, err := m.placeDirectories(next)
	if err != nil {
		return err
	}
	next = alignExtent(next)
	m.metadata = next
	for i := range m.extents {
		e := &m.extents[i]
		e.lba = uint32(next)
		next = alignExtent(next + sectorsFor(m.files[e.file].Size))
		if next > maxSectors {
			return report.Errorf(report.Invalid, "iso layout: %q does not fit: an image has at most 2^32-1 sectors of 2048 bytes", m.files[e.file].Path)
		}
	}
	m.sectors = next
	return nil
}

func (m *Image) placeDirectories(next int64) (int64, error) {
	for t := range m.directories {
		r := m.newRenderer(tree(t), &sink{w: io.Discard})
		for _, d := range m.directories[t] {
			records, continuation := r.render(d)
			if records > maxSection {
				return 0, refuse(d.path, "the directory has too many entries")
			}
			d.lba[t], d.size[t] = uint32(next), uint32(records)
			next += sectorsFor(records) + sectorsFor(continuation)
			if tree(t) == primaryTree {
				d.continuation = uint32(sectorsFor(continuation))
			}
			if next > maxSectors {
				return 0, refuse(d.path, "the directories do not fit into an image")
			}
		}
	}
	return next, nil
}

func alignExtent(lba int64) int64 { return (lba + extentSectors - 1) / extentSectors * extentSectors }
