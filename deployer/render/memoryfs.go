package render

import (
	"io"
	"io/fs"
	"path"
	"testing/fstest" // does not import testing

	"github.com/solutionctl/solutionctl/schema/report"
)

// memoryFiller reads files into memory, within the bounds of a payload.
type memoryFiller struct {
	files map[string][]byte
	dirs  map[string]bool
	size  int
}

func newMemoryFiller() *memoryFiller {
	return &memoryFiller{files: map[string][]byte{}, dirs: map[string]bool{}}
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

// memoryFS returns files in memory as a read-only file system. A directory exists when a file is in it.
func memoryFS(files map[string][]byte) fs.FS {
	m := fstest.MapFS{}
	for name, data := range files {
		m[name] = &fstest.MapFile{Data: data, Mode: 0o444}
	}
	return m
}
