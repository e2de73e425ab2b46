package iso

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// Section is a run of bytes of the image that holds a part of a file.
type Section struct{ Offset, Size int64 }

// Stat holds attributes of a file of an image; [fs.FileInfo.Sys] returns a pointer to one.
type Stat struct {
	Sections []Section // in file order, none for directories and empty files; not to be changed
	UID, GID uint32
	Links    uint32
}

// FS is an opened image: a read-only file system with the Rock Ridge names. It holds the whole directory tree in
// memory and is safe for concurrent use. Files that it opens implement [io.ReaderAt], [io.Seeker] and [io.WriterTo].
type FS struct {
	r        io.ReaderAt
	volumeID string
	nodes    map[string]*node
}

var (
	_ fs.ReadDirFS  = (*FS)(nil)
	_ fs.StatFS     = (*FS)(nil)
	_ fs.ReadFileFS = (*FS)(nil)
)

// Open indexes an image of the given size. It reads the directories of all trees once, refuses an image in which they
// disagree about any name or content, and reads file content only when a file is read. r must not change while the FS
// is used and must allow concurrent calls, as *os.File does.
//
// An image without Joliet tree is read by its Rock Ridge names; one without Rock Ridge names is refused. The error has
// the code Corrupt for an invalid image, and Failure when r returns an error.
func Open(r io.ReaderAt, size int64) (*FS, error) {
	s := newScan(r, size, false)
	tree, _, err := s.index()
	if err != nil {
		return nil, err
	}
	f := &FS{r: r, volumeID: s.primary.id, nodes: make(map[string]*node, len(tree.directories))}
	for _, d := range tree.directories {
		f.nodes[d.path] = d
		slices.SortFunc(d.children, func(a, b *node) int { return strings.Compare(a.name, b.name) })
		for _, c := range d.children {
			f.nodes[c.path] = c
		}
	}
	return f, nil
}

// VolumeID returns the volume identifier of the primary volume descriptor.
func (f *FS) VolumeID() string { return f.volumeID }

// Open opens a file or directory.
func (f *FS) Open(name string) (fs.File, error) {
	n, err := f.lookup("open", name)
	if err != nil {
		return nil, err
	}
	if n.dir {
		return &openDirectory{node: n}, nil
	}
	return &openFile{node: n, r: f.content(n)}, nil
}

// Stat describes a file or directory.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	n, err := f.lookup("stat", name)
	if err != nil {
		return nil, err
	}
	return info{n}, nil
}

// ReadDir lists a directory, sorted by name.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := f.lookup("readdir", name)
	if err != nil {
		return nil, err
	}
	if !n.dir {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errNotDirectory}
	}
	return n.entries(), nil
}

// ReadFile returns the content of a file.
func (f *FS) ReadFile(name string) ([]byte, error) {
	n, err := f.lookup("read", name)
	if err != nil {
		return nil, err
	}
	if n.dir {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errIsDirectory}
	}
	data := make([]byte, n.size)
	if _, err := io.ReadFull(io.NewSectionReader(f.content(n), 0, n.size), data); err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return data, nil
}

var (
	errNotDirectory = errors.New("not a directory")
	errIsDirectory  = errors.New("is a directory")
)

func (f *FS) lookup(op, name string) (*node, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	n, found := f.nodes[name]
	if !found {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return n, nil
}

// content returns the bytes of a file as they lie in the image.
func (f *FS) content(n *node) io.ReaderAt {
	if len(n.sections) == 1 {
		return io.NewSectionReader(f.r, n.sections[0].Offset, n.size)
	}
	return &stitched{r: f.r, sections: n.sections}
}

// stitched reads a file whose sections are apart.
type stitched struct {
	r        io.ReaderAt
	sections []Section
}

func (s *stitched) ReadAt(p []byte, offset int64) (n int, err error) {
	if offset < 0 {
		return 0, fs.ErrInvalid
	}
	for _, section := range s.sections {
		if offset >= section.Size {
			offset -= section.Size
			continue
		}
		part := p[n:min(int64(len(p)), int64(n)+section.Size-offset)]
		done, err := s.r.ReadAt(part, section.Offset+offset)
		if n += done; done < len(part) {
			return n, err
		}
		if n == len(p) {
			return n, nil
		}
		offset = 0
	}
	return n, io.EOF
}

// openFile is an opened regular file.
type openFile struct {
	node   *node
	r      io.ReaderAt
	at     int64
	closed bool

	inOrder int64  // bytes that were read up to at without a Seek
	buffer  []byte // of ahead
	ahead   []byte // bytes from at on
}

func (o *openFile) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: o.node.path, Err: err}
}

func (o *openFile) Stat() (fs.FileInfo, error) { return info{o.node}, nil }

func (o *openFile) Close() error {
	if o.closed {
		return o.fail("close", fs.ErrClosed)
	}
	o.closed = true
	return nil
}

func (o *openFile) Read(p []byte) (int, error) {
	if o.closed {
		return 0, o.fail("read", fs.ErrClosed)
	}
	if o.at >= o.node.size {
		return 0, io.EOF
	}
	if len(o.ahead) == 0 {
		if err := o.readAhead(len(p)); err != nil {
			return 0, err
		}
	}
	var n int
	var err error
	if len(o.ahead) > 0 {
		n = copy(p, o.ahead)
		o.ahead = o.ahead[n:]
	} else {
		n, err = o.ReadAt(p[:min(int64(len(p)), o.node.size-o.at)], o.at)
	}
	o.at += int64(n)
	o.inOrder += int64(n)
	return n, err
}

// readAhead reads as much as was read in order before, if that is more than size: all files of an image are read through one descriptor, for which
// the kernel does not read ahead as soon as two of them are read at once.
func (o *openFile) readAhead(size int) error {
	want := int(min(o.inOrder, copyBuffer, o.node.size-o.at))
	if want <= size {
		return nil
	}
	if len(o.buffer) < want {
		o.buffer = make([]byte, min(copyBuffer, o.node.size-o.at))
	}
	n, err := o.ReadAt(o.buffer[:want], o.at)
	o.ahead = o.buffer[:n]
	if n > 0 {
		return nil // an error comes again with the byte after these
	}
	return err
}

// ReadAt reads whole slices except at the end of the file. A medium that ends early is an error, never io.EOF.
func (o *openFile) ReadAt(p []byte, offset int64) (int, error) {
	switch {
	case o.closed:
		return 0, o.fail("read", fs.ErrClosed)
	case offset < 0:
		return 0, o.fail("read", fs.ErrInvalid)
	case offset >= o.node.size:
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	want := p[:min(int64(len(p)), o.node.size-offset)]
	n, err := o.r.ReadAt(want, offset)
	switch {
	case n < len(want) && (err == nil || errors.Is(err, io.EOF)):
		return n, o.fail("read", io.ErrUnexpectedEOF)
	case n < len(want):
		return n, o.fail("read", err)
	case n < len(p):
		return n, io.EOF
	}
	return n, nil
}

func (o *openFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += o.at
	case io.SeekEnd:
		offset += o.node.size
	default:
		return 0, o.fail("seek", fs.ErrInvalid)
	}
	if o.closed {
		return 0, o.fail("seek", fs.ErrClosed)
	}
	if offset < 0 {
		return 0, o.fail("seek", fs.ErrInvalid)
	}
	if offset != o.at {
		o.at, o.inOrder, o.ahead = offset, 0, nil
	}
	return offset, nil
}

// WriteTo writes the rest of the file to w.
func (o *openFile) WriteTo(w io.Writer) (int64, error) {
	buf := make([]byte, max(1, min(copyBuffer, o.node.size-o.at)))
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{o}, buf)
}

const copyBuffer = 1 << 20

// openDirectory is an opened directory.
type openDirectory struct {
	node   *node
	at     int
	closed bool
}

func (o *openDirectory) Stat() (fs.FileInfo, error) { return info{o.node}, nil }

func (o *openDirectory) Close() error {
	if o.closed {
		return &fs.PathError{Op: "close", Path: o.node.path, Err: fs.ErrClosed}
	}
	o.closed = true
	return nil
}

func (o *openDirectory) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: o.node.path, Err: errIsDirectory}
}

// ReadDir returns the next n entries, or all that are left when n is not positive.
func (o *openDirectory) ReadDir(n int) ([]fs.DirEntry, error) {
	if o.closed {
		return nil, &fs.PathError{Op: "readdir", Path: o.node.path, Err: fs.ErrClosed}
	}
	rest := o.node.entries()[o.at:]
	if n > 0 {
		if len(rest) == 0 {
			return nil, io.EOF
		}
		rest = rest[:min(n, len(rest))]
	}
	o.at += len(rest)
	return rest, nil
}

// info describes a node; it is both its FileInfo and its DirEntry.
type info struct{ n *node }

func (i info) Name() string               { return path.Base(i.n.path) }
func (i info) Size() int64                { return i.n.size }
func (i info) Mode() fs.FileMode          { return i.n.mode }
func (i info) ModTime() time.Time         { return i.n.modTime }
func (i info) IsDir() bool                { return i.n.dir }
func (i info) Type() fs.FileMode          { return i.n.mode.Type() }
func (i info) Info() (fs.FileInfo, error) { return i, nil }
func (i info) String() string             { return fs.FormatDirEntry(i) }

// Sys returns a *[Stat].
func (i info) Sys() any {
	return &Stat{Sections: i.n.sections, UID: i.n.uid, GID: i.n.gid, Links: i.n.links}
}

func (n *node) entries() []fs.DirEntry {
	entries := make([]fs.DirEntry, len(n.children))
	for i, c := range n.children {
		entries[i] = info{c}
	}
	return entries
}
