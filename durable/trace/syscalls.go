//go:build linux

package trace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// change holds the positions of the arguments by which a system call names the files that it changes.
type change struct {
	name  string
	files []int    // file descriptors
	paths [][2]int // directory and path; the directory -1 is the current one
	// only reports whether a call with these arguments changes something; nil means always.
	only func(arguments [6]uint64) bool
}

const workingDirectory = -1

func creates(at int) func([6]uint64) bool {
	return func(arguments [6]uint64) bool {
		return arguments[at]&(unix.O_CREAT|unix.O_TRUNC|(unix.O_TMPFILE&^unix.O_DIRECTORY)) != 0
	}
}

func clones(arguments [6]uint64) bool {
	return arguments[1] == unix.FICLONE || arguments[1] == unix.FICLONERANGE
}

// changes are the system calls that change files, on every processor.
var changes = map[uint64]change{
	unix.SYS_WRITE:           {name: "write", files: []int{0}},
	unix.SYS_WRITEV:          {name: "writev", files: []int{0}},
	unix.SYS_PWRITE64:        {name: "pwrite", files: []int{0}},
	unix.SYS_PWRITEV:         {name: "pwritev", files: []int{0}},
	unix.SYS_SENDFILE:        {name: "sendfile", files: []int{0}},
	unix.SYS_SPLICE:          {name: "splice", files: []int{2}},
	unix.SYS_COPY_FILE_RANGE: {name: "copy_file_range", files: []int{2}},
	unix.SYS_IOCTL:           {name: "clone", files: []int{0}, only: clones},
	unix.SYS_FTRUNCATE:       {name: "ftruncate", files: []int{0}},
	unix.SYS_FALLOCATE:       {name: "fallocate", files: []int{0}},
	unix.SYS_FSYNC:           {name: "fsync", files: []int{0}},
	unix.SYS_FDATASYNC:       {name: "fdatasync", files: []int{0}},
	unix.SYS_SYNC_FILE_RANGE: {name: "sync_file_range", files: []int{0}},
	unix.SYS_FCHMOD:          {name: "fchmod", files: []int{0}},
	unix.SYS_FCHOWN:          {name: "fchown", files: []int{0}},
	unix.SYS_OPENAT:          {name: "open", paths: [][2]int{{0, 1}}, only: creates(2)},
	unix.SYS_MKDIRAT:         {name: "mkdir", paths: [][2]int{{0, 1}}},
	unix.SYS_MKNODAT:         {name: "mknod", paths: [][2]int{{0, 1}}},
	unix.SYS_UNLINKAT:        {name: "unlink", paths: [][2]int{{0, 1}}},
	unix.SYS_RENAMEAT:        {name: "rename", paths: [][2]int{{0, 1}, {2, 3}}},
	unix.SYS_RENAMEAT2:       {name: "rename", paths: [][2]int{{0, 1}, {2, 3}}},
	unix.SYS_LINKAT:          {name: "link", paths: [][2]int{{0, 1}, {2, 3}}},
	unix.SYS_SYMLINKAT:       {name: "symlink", paths: [][2]int{{1, 2}}},
	unix.SYS_FCHMODAT:        {name: "chmod", paths: [][2]int{{0, 1}}},
	unix.SYS_FCHOWNAT:        {name: "chown", paths: [][2]int{{0, 1}}},
	unix.SYS_UTIMENSAT:       {name: "utimens", paths: [][2]int{{0, 1}}},
	unix.SYS_TRUNCATE:        {name: "truncate", paths: [][2]int{{workingDirectory, 0}}},
	unix.SYS_MOUNT:           {name: "mount", paths: [][2]int{{workingDirectory, 1}}},
	unix.SYS_UMOUNT2:         {name: "umount", paths: [][2]int{{workingDirectory, 0}}},
}

// changes returns the change that the call of a thread makes below a directory, nil if it makes none there.
func (c *call) changes(id int, below string) *Change {
	kind, ok := changes[c.number]
	if !ok {
		kind, ok = oldChanges[c.number]
	}
	if !ok || kind.only != nil && !kind.only(c.arguments) {
		return nil
	}
	for _, at := range kind.files {
		path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", id, int32(c.arguments[at])))
		if err == nil && within(path, below) {
			return &Change{kind.name, relative(path, below)}
		}
	}
	for _, at := range kind.paths {
		path, err := c.path(id, at)
		if err == nil && within(path, below) {
			return &Change{kind.name, relative(path, below)}
		}
	}
	return nil
}

func (c *call) path(id int, at [2]int) (string, error) {
	name, err := readString(id, c.arguments[at[1]])
	if err != nil || filepath.IsAbs(name) {
		return filepath.Clean(name), err
	}
	directory := fmt.Sprintf("/proc/%d/cwd", id)
	if at[0] != workingDirectory {
		if fd := int32(c.arguments[at[0]]); fd != unix.AT_FDCWD {
			directory = fmt.Sprintf("/proc/%d/fd/%d", id, fd)
		}
	}
	directory, err = os.Readlink(directory)
	return filepath.Join(directory, name), err
}

func relative(path, below string) string {
	if path == below {
		return "."
	}
	return strings.TrimPrefix(path, below+"/")
}

func within(path, below string) bool { return path == below || strings.HasPrefix(path, below+"/") }
