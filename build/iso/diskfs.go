package iso

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"

	"github.com/solutionctl/solutionctl/schema/report"
)

// CompareDiskFS reads the image with go-diskfs, which shares no code with this package, and reports every difference in
// names, sizes, modes and extents. An image that [Open] refuses is reported as such and not compared.
//
// go-diskfs trusts its input: it allocates declared sizes, indexes without checks and follows loops. So it only gets
// images whose structure, with the sizes of the path tables, is sound, reads through bounds and a budget, and a panic
// counts as a refusal.
func CompareDiskFS(r io.ReaderAt, size int64) []report.Finding {
	v := verdict{strict: true}
	ours := newScan(r, size, false)
	tree, _, err := ours.index()
	if err != nil {
		v.add(ruleSecondOpinion, "", "the image cannot be compared: %w", err)
		return v.result()
	}
	c := &comparison{verdict: &v}
	if err := c.run(ours, tree); err != nil {
		v.add(ruleSecondOpinion, "", "go-diskfs cannot read the image: %w", err)
	}
	return v.result()
}

// The calls that go-diskfs can make, some for opening and some for each entry, and the bytes that it can ask for. It reads a part of every
// directory on the way to a directory again, and makes one call for each record of them that has a continuation area.
const (
	diskfsCalls         = 100_000
	diskfsCallsPerEntry = 16
	diskfsBytes         = 512 << 20
	diskfsEntries       = 1 << 17 // in one directory: it takes 2 KB of memory for each
)

// comparison walks our index and that of go-diskfs side by side.
type comparison struct {
	*verdict
	guard  *guardedFile
	theirs *iso9660.FileSystem
}

func (c *comparison) run(ours *scan, tree *hierarchy) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panics: %v", p)
		}
	}()
	guard := &guardedFile{r: ours.src.r, size: ours.src.size, calls: diskfsCalls, bytes: diskfsBytes, way: map[int64]*node{}, records: map[int64]*node{}}
	c.guard = guard
	for _, d := range tree.directories {
		if len(d.children) > diskfsEntries {
			return fmt.Errorf("%s has more than %d entries", d.path, diskfsEntries)
		}
		guard.calls += int64(len(d.children)) * diskfsCallsPerEntry
	}
	if c.theirs, err = iso9660.Read(file.New(guard, true), 0, 0, sectorSize); err != nil {
		return err
	}
	return c.directory(tree.root, ".")
}

// guardedFile is the file that go-diskfs reads: never outside the image, never for ever.
type guardedFile struct {
	r            io.ReaderAt
	size         int64
	calls, bytes int64
	way          map[int64]*node // by the offset of a directory on the way to the one that is listed, the next one
	records      map[int64]*node // the same, by the offset of the sector with its record
}

// ReadAt reads, of a directory on the way, only the sector with the record that leads on: go-diskfs parses all that it gets, and the time for a
// directory with many others would grow with their square. Sectors that begin with a zero are empty to it. The directory has been compared.
func (g *guardedFile) ReadAt(p []byte, offset int64) (int, error) {
	if next := g.records[offset]; next != nil && len(p) == sectorSize {
		return g.readRecord(p, next)
	}
	next := g.way[offset]
	if next == nil || int64(len(p)) != int64(next.parent.length) {
		return g.read(p, offset)
	}
	g.bytes -= int64(len(p) - sectorSize)
	for at := 0; at < len(p); at += sectorSize {
		p[at] = 0
	}
	at := int64(next.record)*sectorSize - offset
	if _, err := g.readRecord(p[at:at+sectorSize], next); err != nil {
		return 0, err
	}
	return len(p), nil
}

// readRecord reads the sector with the record of a directory. If that is on the way itself, its record shows the one sector of it that leads on:
// go-diskfs makes room for as many bytes as a record shows.
func (g *guardedFile) readRecord(sector []byte, n *node) (int, error) {
	count, err := g.read(sector, int64(n.record)*sectorSize)
	next := g.way[int64(n.extent)*sectorSize]
	if err != nil || next == nil {
		return count, err
	}
	for at := 0; at < sectorSize && sector[at] != 0; at += int(sector[at]) {
		if r := sector[at:]; len(r) > 33 && r[25]&flagDirectory != 0 && binary.LittleEndian.Uint32(r[2:]) == n.extent {
			appendBoth32(appendBoth32(r[:2], next.record), sectorSize)
		}
	}
	return count, nil
}

func (g *guardedFile) read(p []byte, offset int64) (int, error) {
	g.calls--
	g.bytes -= int64(len(p))
	if g.calls < 0 || g.bytes < 0 || len(p) > maxTableBytes {
		return 0, errBudget
	}
	if offset < 0 || offset > g.size || int64(len(p)) > g.size-offset {
		return 0, errOutside
	}
	n, err := g.r.ReadAt(p, offset)
	if n == len(p) {
		err = nil
	}
	return n, err
}

// The other methods of a file for go-diskfs; it reads by ReadAt only.
func (g *guardedFile) Stat() (fs.FileInfo, error)         { return nil, fs.ErrInvalid }
func (g *guardedFile) Read([]byte) (int, error)           { return 0, fs.ErrInvalid }
func (g *guardedFile) Seek(_ int64, _ int) (int64, error) { return 0, fs.ErrInvalid }
func (g *guardedFile) Close() error                       { return nil }

// theirEntry is an entry as go-diskfs shows it.
type theirEntry struct {
	name     string
	dir      bool
	mode     fs.FileMode
	size     int64
	location uint32
	sections []Section
}

// directory compares one directory. Both sides list its records in the order of the image, so they pair up without a
// search; theirPath is the directory's path as go-diskfs shows it.
func (c *comparison) directory(d *node, theirPath string) error {
	theirs, err := c.read(theirPath)
	if err != nil {
		return err
	}
	for _, n := range d.children {
		if len(theirs) < n.records {
			c.add(ruleSecondOpinion, n.path, "go-diskfs does not show this %s", n.kind())
			return nil
		}
		found := joinSections(theirs[:n.records])
		theirs = theirs[n.records:]
		if c.compare(n, found) && n.dir {
			here := int64(d.extent) * sectorSize
			record := int64(n.record) * sectorSize
			c.guard.way[here], c.guard.records[record] = n, n
			err := c.directory(n, joinPath(theirPath, found.name))
			delete(c.guard.way, here)
			delete(c.guard.records, record)
			if err != nil {
				return err
			}
		}
	}
	for _, e := range theirs {
		c.add(ruleSecondOpinion, joinPath(d.path, e.name), "only go-diskfs shows this file")
	}
	return nil
}

// read lists a directory with go-diskfs.
func (c *comparison) read(dir string) ([]theirEntry, error) {
	list, err := c.theirs.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	entries := make([]theirEntry, 0, len(list))
	for _, e := range list {
		i, err := e.Info()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", joinPath(dir, e.Name()), err)
		}
		stat, ok := i.Sys().(*iso9660.StatT)
		if !ok {
			return nil, errors.New("it does not provide the offset of a file")
		}
		next := theirEntry{name: i.Name(), dir: i.IsDir(), mode: i.Mode(), location: stat.Location, size: i.Size()}
		if !next.dir && next.size > 0 {
			next.sections = []Section{{Offset: int64(stat.Location) * sectorSize, Size: next.size}}
		}
		entries = append(entries, next)
	}
	return entries, nil
}

// joinSections makes one file of its sections, each of which go-diskfs shows as a file of its own.
func joinSections(parts []theirEntry) theirEntry {
	e := parts[0]
	if e.dir {
		return e
	}
	var whole node
	for _, part := range parts {
		for _, s := range part.sections {
			whole.addSection(s)
		}
	}
	e.size, e.sections = whole.size, whole.sections
	return e
}

// compare compares everything that both sides say about an entry, and reports whether they mean the same one.
func (c *comparison) compare(n *node, e theirEntry) bool {
	switch {
	case e.name != n.name && !c.misreads(n, e.name):
		c.add(ruleSecondOpinion, n.path, "go-diskfs shows this %s as %q", n.kind(), e.name)
	case e.dir != n.dir:
		c.add(ruleSecondOpinion, n.path, "this is a %s; go-diskfs shows something else", n.kind())
	case n.dir && e.location != n.extent:
		c.add(ruleSecondOpinion, n.path, "the directory lies at sector %d; go-diskfs shows %d", n.extent, e.location)
	case !n.dir && (e.size != n.size || !slices.Equal(e.sections, n.sections)):
		c.add(ruleSecondOpinion, n.path, "the file has %s; go-diskfs shows %s", describeSections(n.sections), describeSections(e.sections))
	case e.mode.Perm() != n.mode.Perm():
		c.add(ruleSecondOpinion, n.path, "the mode is %04o; go-diskfs shows %04o", n.mode.Perm(), e.mode.Perm())
	default:
		if e.name != n.name {
			c.add(ruleSecondGap, n.path, "go-diskfs shows this %s as %q", n.kind(), e.name)
		}
		return true
	}
	return false
}

// misreads reports whether go-diskfs is known to show the name of n as this other one: it strips dots and versions
// from file names, and shows one NM entry of a name that has several.
func (c *comparison) misreads(n *node, shown string) bool {
	name := n.name
	if n.splitName {
		return strings.Contains(name, strings.TrimSuffix(shown, "."))
	}
	stripped := strings.TrimPrefix(strings.TrimSuffix(strings.TrimSuffix(name, ";1"), "."), ".")
	return !n.dir && shown == stripped
}
