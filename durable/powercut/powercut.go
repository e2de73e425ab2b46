//go:build linux

package powercut

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/solutionctl/solutionctl/durable/trace"
)

// Disk is the content of a directory after the power came back.
type Disk struct {
	Before string            // the change that was about to be made; "" after the command has ended
	Files  map[string]string // path: content; of a directory the path ends with a slash
}

// Play runs a command, whose output must go to files, and calls judge with everything that the directory may hold if the power
// fails at any moment. What follows a moment that judge has not liked may be wrong in the same way.
func Play(ctx context.Context, cmd *exec.Cmd, dir string, judge func(Disk)) (*unix.WaitStatus, error) {
	m, err := newMedium(dir)
	if err != nil {
		return nil, err
	}
	show := func(before string) {
		err = cmp.Or(err, m.observe())
		for _, files := range m.outcomes() {
			judge(Disk{before, files})
		}
	}
	t := &trace.Tracer{
		Below:  dir,
		Begins: func(c trace.Change) { show(c.String()) },
		Ends: func(c trace.Change) {
			if c.Call == "fsync" || c.Call == "fdatasync" {
				err = cmp.Or(err, m.observe(), m.sync(c.Path))
			}
		},
	}
	status, failed := t.Run(ctx, cmd)
	if failed != nil {
		return nil, failed
	}
	show("")
	return status, err
}

// node is a file or a directory, whatever its names are.
type node struct {
	number  uint64
	names   map[string]*node // of a directory: what is on the medium; nil for a file
	content string           // of a file: what is on the medium
	written string           // of a file: its content
}

// entry is a name that was given or taken.
type entry struct {
	in   *node
	name string
	to   *node // nil: removed
}

// renaming is one change of names that is not on the medium, or not in all directories.
type renaming []entry

// medium is a directory as its file system sees it.
type medium struct {
	dir     string
	root    *node
	known   map[uint64]*node           // what has a name now, by its number
	now     map[*node]map[string]*node // the names in each directory
	pending []renaming
}

func newMedium(dir string) (*medium, error) {
	m := &medium{dir: dir, known: map[uint64]*node{}}
	if err := m.observe(); err != nil {
		return nil, err
	}
	m.pending = nil
	for directory, names := range m.now {
		directory.names = maps.Clone(names)
	}
	for _, n := range m.known {
		n.content = n.written
	}
	return m, nil
}

// observe finds out what the last change has done.
func (m *medium) observe() error {
	now, known := map[*node]map[string]*node{}, map[uint64]*node{}
	err := filepath.WalkDir(m.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		n := m.nodeOf(info, known)
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			n.written = string(data)
		}
		if path == m.dir {
			m.root = n
		} else {
			parent, err := os.Lstat(filepath.Dir(path))
			if err != nil {
				return err
			}
			now[m.nodeOf(parent, known)][e.Name()] = n
		}
		if info.IsDir() {
			now[n] = map[string]*node{}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if change := m.changed(now); len(change) > 0 {
		m.pending = append(m.pending, change)
	}
	m.now, m.known = now, known
	return nil
}

// nodeOf returns the node with a number. A number that had no name meanwhile is another node.
func (m *medium) nodeOf(info fs.FileInfo, known map[uint64]*node) *node {
	number := info.Sys().(*syscall.Stat_t).Ino //nolint:forcetypeassert // on Linux it always is
	n := known[number]
	if n == nil {
		n = m.known[number]
	}
	if n == nil {
		n = &node{number: number}
		if info.IsDir() {
			n.names = map[string]*node{}
		}
	}
	known[number] = n
	return n
}

func (m *medium) changed(now map[*node]map[string]*node) renaming {
	var change renaming
	for directory, after := range now {
		before := m.now[directory]
		for name, n := range after {
			if before[name] != n {
				change = append(change, entry{directory, name, n})
			}
		}
		for name := range before {
			if after[name] == nil {
				change = append(change, entry{directory, name, nil})
			}
		}
	}
	return change
}

// sync brings a file, or the names in a directory, to the medium.
func (m *medium) sync(path string) error {
	info, err := os.Lstat(filepath.Join(m.dir, path))
	if err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	n := m.nodeOf(info, m.known)
	if n.names == nil {
		n.content = n.written
		return nil
	}
	for i, change := range m.pending {
		var rest renaming
		for _, c := range change {
			if c.in == n {
				set(n.names, c.name, c.to)
			} else {
				rest = append(rest, c)
			}
		}
		m.pending[i] = rest
	}
	m.pending = slices.DeleteFunc(m.pending, func(c renaming) bool { return len(c) == 0 })
	return nil
}

func set(names map[string]*node, name string, to *node) {
	if to == nil {
		delete(names, name)
	} else {
		names[name] = to
	}
}

// maxCombined is the number of changes of names that are combined in all ways; of more, the older ones have happened.
const maxCombined = 7

// outcomes returns every content that may be found.
func (m *medium) outcomes() []map[string]string {
	sure := max(0, len(m.pending)-maxCombined)
	var all []map[string]string
	for chosen := range 1 << (len(m.pending) - sure) {
		names := map[*node]map[string]*node{}
		for i, change := range m.pending {
			if i >= sure && chosen&(1<<(i-sure)) == 0 {
				continue
			}
			for _, c := range change {
				if names[c.in] == nil {
					names[c.in] = maps.Clone(c.in.names)
				}
				set(names[c.in], c.name, c.to)
			}
		}
		for _, written := range []bool{false, true} {
			files := map[string]string{}
			collect(m.root, "", names, written, files)
			all = append(all, files)
		}
	}
	return all
}

func collect(n *node, path string, names map[*node]map[string]*node, written bool, files map[string]string) {
	if n.names == nil {
		files[path] = n.content
		if written {
			files[path] = n.written
		}
		return
	}
	if path != "" {
		path += "/"
		files[path] = ""
	}
	children, changed := names[n]
	if !changed {
		children = n.names
	}
	for name, child := range children {
		collect(child, path+name, names, written, files)
	}
}
