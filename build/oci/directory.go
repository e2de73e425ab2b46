package oci

import (
	"errors"
	"io/fs"
	"os"
)

// Directory is a directory of the host as a file system in which only regular files and directories can be opened:
// opening a FIFO waits, perhaps for ever, for a writer.
func Directory(name string) fs.FS { return directory{os.DirFS(name)} }

type directory struct{ fs.FS }

func (d directory) Open(name string) (fs.File, error) {
	info, err := fs.Stat(d.FS, name)
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("neither a file nor a directory")}
	}
	if err != nil {
		return nil, err
	}
	return d.FS.Open(name)
}

// Stat implements [fs.StatFS], which [os.DirFS] has as well: it works for files that cannot be opened.
func (d directory) Stat(name string) (fs.FileInfo, error) { return fs.Stat(d.FS, name) }
