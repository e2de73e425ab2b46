package iso

import (
	"io"
	"io/fs"
	"time"
)

// File is one name in an image.
type File struct {
	Path string      // slash-separated, relative, as [fs.ValidPath] wants it; its directories are implied
	Size int64       // in bytes; Open must deliver exactly as many
	Mode fs.FileMode // permission bits; 0 means 0444. The owner is always root
	Key  string      // files with equal non-empty keys, such as a digest, have the same content and share its extent

	// Open returns the content. It is called at most once for each extent, in the order of the extents, and never for
	// an empty file. It may stay nil when only the metadata is written.
	Open func() (io.ReadCloser, error)
}

// Options are the identifiers and times of an image. There is no other input: no clock, no host, no user.
type Options struct {
	VolumeID      string    // at most 32 bytes; Joliet has room for the first 16 characters
	ApplicationID string    // at most 128 bytes
	ModTime       time.Time // of everything in the image; from 1900 to 2155
}

// Image is the layout of an image: the place of each byte, before any content was read. It is immutable, and safe for
// concurrent use if the files' Open functions are.
type Image struct {
	files   []File
	options Options

	root        *directory
	directories [2][]*directory // of each tree, in the order of its path tables
	pathTables  [2]pathTable
	extents     []extent // in the order of the files that first name them

	metadata int64 // sectors before the first extent
	sectors  int64 // of the whole image
}

// Extent is one run of file content in an image.
type Extent struct {
	Offset, Size int64  // in bytes; the offset is a multiple of 4096
	Path, Key    string // of the first file that has this content
	Open         func() (io.ReadCloser, error)
}

// directory is a directory of the image, in both trees.
type directory struct {
	path    string // "." is the root
	parent  *directory
	self    *entry // in the parent; nil for the root, which is its own parent
	entries []entry
	order   [2][]int32 // indexes of entries as each tree sorts them
	subdirs uint32

	number       [2]uint16 // in the path tables
	lba          [2]uint32 // of its records
	size         [2]uint32 // of its records, in bytes: whole sectors
	continuation uint32    // sectors of the continuation area that follows the records of the primary tree
}

// entry is a name in a directory. Images of hundreds of thousands of files keep one for each, so it holds no
// identifiers: they are made when they are needed.
type entry struct {
	name   string
	dir    *directory // nil for a file
	file   int32      // index in Image.files
	extent int32      // index in Image.extents, -1 for an empty file
	serial [2]int32   // separates equal identifiers of each tree
}

// extent is a run of content and the number of names that share it.
type extent struct {
	file  int32 // index in Image.files of the first name
	names uint32
	lba   uint32
}

// pathTable is one tree's pair of path tables.
type pathTable struct {
	size          int64
	little, large uint32 // LBA of the copies in the two byte orders
}

// Size returns the length of the image in bytes, a multiple of 4096.
func (m *Image) Size() int64 { return m.sectors * sectorSize }

// MetadataSize returns the number of bytes before the first extent.
func (m *Image) MetadataSize() int64 { return m.metadata * sectorSize }

// Extents returns the runs of content, each once, in ascending order. Between them lie zeros.
func (m *Image) Extents() []Extent {
	out := make([]Extent, len(m.extents))
	for i, e := range m.extents {
		f := &m.files[e.file]
		out[i] = Extent{Offset: int64(e.lba) * sectorSize, Size: f.Size, Path: f.Path, Key: f.Key, Open: f.Open}
	}
	return out
}

func (e *entry) sibling() sibling { return sibling{e.name, e.dir != nil} }

// identifier returns the recorded identifier of the entry in tree t.
func (e *entry) identifier(t tree) string {
	id := t.identifier(e.sibling(), int(e.serial[t]))
	if t == jolietTree {
		return string(ucs2(id))
	}
	return id
}

// identifier returns the recorded identifier of the directory in the path tables of tree t.
func (d *directory) identifier(t tree) string {
	if d.self == nil {
		return identifierSelf
	}
	return d.self.identifier(t)
}
