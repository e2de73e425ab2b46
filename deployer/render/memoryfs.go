package render

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

// memoryFS is a read-only file system in memory, by path. A directory exists when a file is in it.
type memoryFS map[string][]byte

// memoryFiller fills a memoryFS, within the bounds of a payload.
type memoryFiller struct {
	files memoryFS
	dirs  map[string]bool
	size  int
}

func newMemoryFiller() *memoryFiller {
	return &memoryFiller{files: memoryFS{}, dirs: map[string]bool{}}
}

// add reads a file.
func (m *memoryFiller) add(name string, r io.Reader) error {
	if !fs.ValidPath(name) || name == "." {
		return report.Errorf(report.Invalid, "%q is not a path", name)
	}
	_, twice := m.files[name]
	twice = twice || m.dirs[name]
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		_, isFile := m.files[dir]
		twice = twice || isFile
		m.dirs[dir] = true
	}
	if twice {
		return report.Errorf(report.Invalid, "%s is there twice", name)
	}
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return err
	}
	if len(data) > maxFile {
		return report.Errorf(report.Invalid, "%s is larger than %d MiB", name, maxFile>>20)
	}
	m.files[name] = data
	m.size += len(data)
	if len(m.files) > maxFiles || m.size > maxTotal {
		return report.Errorf(report.Invalid, "the archive has more than %d MiB or %d files besides images", maxTotal>>20, maxFiles).
			WithHint("put large data into an image")
	}
	return nil
}

func (m memoryFS) names() []string { return slices.Sorted(maps.Keys(m)) }

func (m memoryFS) isDir(name string) bool {
	if name == "." {
		return true
	}
	for file := range m {
		if strings.HasPrefix(file, name+"/") {
			return true
		}
	}
	return false
}

// Open implements [fs.FS].
func (m memoryFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if data, ok := m[name]; ok {
		return &memoryFile{Reader: bytes.NewReader(data), info: memoryInfo{path.Base(name), int64(len(data)), 0o444}}, nil
	}
	if m.isDir(name) {
		return &memoryDir{info: memoryInfo{path.Base(name), 0, fs.ModeDir | 0o555}, name: name, rest: m.entries(name)}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// entries lists a directory, sorted.
func (m memoryFS) entries(dir string) []fs.DirEntry {
	prefix := dir + "/"
	if dir == "." {
		prefix = ""
	}
	infos := map[string]memoryInfo{}
	for file, data := range m {
		rest, ok := strings.CutPrefix(file, prefix)
		if !ok {
			continue
		}
		first, _, nested := strings.Cut(rest, "/")
		infos[first] = memoryInfo{first, int64(len(data)), 0o444}
		if nested {
			infos[first] = memoryInfo{first, 0, fs.ModeDir | 0o555}
		}
	}
	var entries []fs.DirEntry
	for _, name := range slices.Sorted(maps.Keys(infos)) {
		entries = append(entries, fs.FileInfoToDirEntry(infos[name]))
	}
	return entries
}

type memoryInfo struct {
	name string
	size int64
	mode fs.FileMode
}

func (i memoryInfo) Name() string       { return i.name }
func (i memoryInfo) Size() int64        { return i.size }
func (i memoryInfo) Mode() fs.FileMode  { return i.mode }
func (i memoryInfo) ModTime() time.Time { return time.Time{} }
func (i memoryInfo) IsDir() bool        { return i.mode.IsDir() }
func (i memoryInfo) Sys() any           { return nil }

type memoryFile struct {
	*bytes.Reader
	info memoryInfo
}

func (f *memoryFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *memoryFile) Close() error               { return nil }

type memoryDir struct {
	info memoryInfo
	name string
	rest []fs.DirEntry
}

func (d *memoryDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *memoryDir) Close() error               { return nil }

func (d *memoryDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: fs.ErrInvalid}
}

// ReadDir implements [fs.ReadDirFile].
func (d *memoryDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		all := d.rest
		d.rest = nil
		return all, nil
	}
	if len(d.rest) == 0 {
		return nil, io.EOF
	}
	some := d.rest[:min(n, len(d.rest))]
	d.rest = d.rest[len(some):]
	return some, nil
}
