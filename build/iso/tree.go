package iso

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// builder turns a list of files into the two trees of an image.
type builder struct {
	image       *Image
	directories map[string]*directory
	shared      map[string]content
}

// content is the data of all files with one key.
type content struct {
	size   int64
	extent int32
}

// grow fills in the directories, entries and extents of the image.
func (m *Image) grow() error {
	m.root = &directory{path: "."}
	m.root.parent = m.root
	b := &builder{image: m, directories: map[string]*directory{".": m.root}, shared: map[string]content{}}
	for i := range m.files {
		if err := b.addFile(int32(i)); err != nil {
			return err
		}
	}
	return m.root.arrange()
}

func (b *builder) addFile(index int32) error {
	f := &b.image.files[index]
	if !fs.ValidPath(f.Path) || f.Path == "." {
		if slices.Contains(strings.Split(f.Path, "/"), "..") {
			return refuse(f.Path, `the path contains ".."`)
		}
		return refuse(f.Path, "the path must be relative, in its shortest form and UTF-8")
	}
	switch {
	case f.Size < 0:
		return refuse(f.Path, "the size is negative")
	case f.Size > maxSectors*sectorSize:
		return refuse(f.Path, "the file is larger than an image can be")
	case f.Mode&^fs.ModePerm != 0:
		return refuse(f.Path, "mode "+f.Mode.String()+" has more than permission bits")
	}
	parent, err := b.directory(path.Dir(f.Path))
	if err != nil {
		return err
	}
	if err = checkName(f.Path); err != nil {
		return err
	}
	extent, err := b.extent(index)
	if err != nil {
		return err
	}
	parent.entries = append(parent.entries, entry{name: path.Base(f.Path), file: index, extent: extent})
	return nil
}

// directory returns the directory of this path and makes it, and those above it, when it is not there yet.
func (b *builder) directory(name string) (*directory, error) {
	if d := b.directories[name]; d != nil {
		return d, nil
	}
	if levels := strings.Count(name, "/") + 2; levels > maxLevels {
		return nil, refuse(name, "the directory is deeper than 8 levels, the root included")
	}
	if len(b.directories) == maxDirs {
		return nil, report.Errorf(report.Invalid, "iso layout: %q is one directory too many: the limit is 65,535", name)
	}
	parent, err := b.directory(path.Dir(name))
	if err != nil {
		return nil, err
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	d := &directory{path: name, parent: parent}
	b.directories[name] = d
	parent.subdirs++
	parent.entries = append(parent.entries, entry{name: path.Base(name), dir: d, extent: -1})
	return d, nil
}

// extent returns the extent of a file: none when it is empty, that of an earlier file with the same key, or a new one.
func (b *builder) extent(index int32) (int32, error) {
	f := &b.image.files[index]
	known, ok := b.shared[f.Key]
	switch {
	case ok && known.size != f.Size:
		return 0, report.Errorf(report.Invalid, "iso layout: %q: two sizes, %d and %d bytes, for the same key %q", f.Path, f.Size, known.size, f.Key)
	case ok && f.Size > 0:
		b.image.extents[known.extent].names++
		return known.extent, nil
	}
	number := int32(-1)
	if f.Size > 0 {
		number = int32(len(b.image.extents))
		b.image.extents = append(b.image.extents, extent{file: index, names: 1})
	}
	if f.Key != "" {
		b.shared[f.Key] = content{f.Size, number}
	}
	return number, nil
}

// arrange sorts a directory and those below it, and finds identifiers for all their entries.
func (d *directory) arrange() error {
	slices.SortFunc(d.entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	if err := d.checkNames(); err != nil {
		return err
	}
	siblings := make([]sibling, len(d.entries))
	for i := range d.entries {
		siblings[i] = d.entries[i].sibling()
	}
	for _, t := range []tree{primaryTree, jolietTree} {
		for i, serial := range t.serials(siblings) {
			d.entries[i].serial[t] = int32(serial)
		}
		d.order[t] = d.sorted(t)
	}
	for i := range d.entries {
		e := &d.entries[i]
		if e.dir == nil {
			continue
		}
		e.dir.self = e
		if err := e.dir.arrange(); err != nil {
			return err
		}
	}
	return nil
}

// checkNames refuses names that are equal, or that some reader takes for equal.
func (d *directory) checkNames() error {
	folded := make(map[string]string, len(d.entries))
	for i := range d.entries {
		e := &d.entries[i]
		file := path.Join(d.path, e.name)
		key := foldName(e.name)
		other, dup := folded[key]
		switch {
		case !dup:
			folded[key] = e.name
		case other != e.name:
			return refuse(file, "the name differs from "+path.Join(d.path, other)+" in case or in Unicode composition only")
		case e.dir != nil || d.entries[i-1].dir != nil:
			return refuse(file, "the path is a file and a directory")
		default:
			return refuse(file, "the path occurs twice")
		}
	}
	return nil
}

// sorted returns the entries in the order in which tree t records them.
func (d *directory) sorted(t tree) []int32 {
	identifiers := make([]string, len(d.entries))
	order := make([]int32, len(d.entries))
	for i := range d.entries {
		identifiers[i], order[i] = d.entries[i].identifier(t), int32(i)
	}
	compare := strings.Compare
	if t == primaryTree {
		compare = comparePrimary
	}
	slices.SortFunc(order, func(a, b int32) int { return compare(identifiers[a], identifiers[b]) })
	return order
}

// checkName refuses a file or directory whose own name no image can hold.
func checkName(file string) error {
	if problem := nameProblem(path.Base(file)); problem != "" {
		return refuse(file, problem).WithHint("rename it or leave it out: every reader of an image has to show the same names")
	}
	return nil
}

// PathError is the file or directory that an image cannot hold, and why.
type PathError struct{ Path, Problem string }

func (e *PathError) Error() string { return fmt.Sprintf("%q: %s", e.Path, e.Problem) }

func refuse(file, problem string) *report.Error {
	return report.Errorf(report.Invalid, "iso layout: %w", &PathError{file, problem})
}
