package iso

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// patched is an image in memory whose structures a test damages. It finds its way by identifiers alone, without the
// parser that is tested.
type patched struct {
	tb   testing.TB
	data []byte
}

// patchTree is a small archive in which every rule can be broken.
func patchTree() []File {
	files := smallTree()
	for i := range 30 {
		files = append(files, textFile(fmt.Sprintf("many/file%02d", i), fmt.Sprint(i)))
	}
	return append(files,
		textFile("pair/dup-x", "first of a pair"),
		textFile("pair/dup-y", "second of a pair"),
		textFile("pair/evil", "kind: Evil\n"),
		textFile("pair/good", "kind: Good\n"),
		textFile("pair/long-"+strings.Repeat("n", 200), "has a continuation area"),
		textFile("zone/inner/file", "deep"),
		textFile("zone/other/file", "deeper"),
	)
}

func newPatched(tb testing.TB) *patched {
	tb.Helper()
	return &patched{tb, imageBytes(tb, patchTree())}
}

func (p *patched) reader() (r io.ReaderAt, size int64) {
	return bytes.NewReader(p.data), int64(len(p.data))
}

// put32 sets a both-endian field.
func (p *patched) put32(at int, v uint32) {
	binary.LittleEndian.PutUint32(p.data[at:], v)
	binary.BigEndian.PutUint32(p.data[at+4:], v)
}

func (p *patched) get32(at int) uint32 { return binary.LittleEndian.Uint32(p.data[at:]) }

// descriptor returns the offset of the primary (0) or Joliet (1) volume descriptor.
func (p *patched) descriptor(t tree) int { return (systemArea + int(t)) * sectorSize }

// record returns the offset of the directory record that the slash-separated identifiers lead to; "" is the record of
// the root directory for itself. Joliet identifiers are given as text.
func (p *patched) record(t tree, identifiers string) int {
	p.tb.Helper()
	at := int(p.get32(p.descriptor(t)+156+2)) * sectorSize
	if identifiers == "" {
		return at
	}
	for i, id := range strings.Split(identifiers, "/") {
		if i > 0 {
			at = int(p.get32(at+2)) * sectorSize
		}
		at = p.find(t, at, id)
	}
	return at
}

// directory returns the offset of the first record of a directory.
func (p *patched) directory(t tree, identifiers string) int {
	return int(p.get32(p.record(t, identifiers)+2)) * sectorSize
}

func (p *patched) find(t tree, at int, id string) int {
	p.tb.Helper()
	if t == jolietTree {
		id = string(ucs2(id))
	}
	for end := at + int(p.get32(at+10)); at < end; {
		if p.data[at] == 0 {
			at = (at/sectorSize + 1) * sectorSize
			continue
		}
		if string(p.data[at+33:at+33+int(p.data[at+32])]) == id {
			return at
		}
		at += int(p.data[at])
	}
	p.tb.Fatalf("no record %q", id)
	return 0
}

// entry returns the offset of a system use entry of a record of the primary tree, or of its continuation area.
func (p *patched) entry(identifiers, signature string) int {
	p.tb.Helper()
	at := p.record(primaryTree, identifiers)
	end := at + int(p.data[at])
	at += 33 + int(p.data[at+32])
	for at += at & 1; at+4 <= end; at += int(p.data[at+2]) {
		if string(p.data[at:at+2]) == signature {
			return at
		}
		if string(p.data[at:at+2]) == "CE" && signature == "NM" {
			return int(p.get32(at+4))*sectorSize + int(p.get32(at+12))
		}
	}
	p.tb.Fatalf("%s has no entry %s", identifiers, signature)
	return 0
}

// swap exchanges two runs of bytes of equal length.
func (p *patched) swap(a, b, length int) {
	kept := slices.Clone(p.data[a : a+length])
	copy(p.data[a:a+length], p.data[b:b+length])
	copy(p.data[b:b+length], kept)
}

// replace overwrites the bytes at an offset that must hold old.
func (p *patched) replace(at int, old, text string) {
	p.tb.Helper()
	if len(old) != len(text) || string(p.data[at:at+len(old)]) != old {
		p.tb.Fatalf("at %d: want %q, have %q", at, old, p.data[at:at+len(old)])
	}
	copy(p.data[at:], text)
}

// identifier returns the offset of the identifier of a record.
func (p *patched) identifier(t tree, identifiers string) int { return p.record(t, identifiers) + 33 }

// pathTable returns the offset of a path table.
func (p *patched) pathTable(t tree, big bool) int {
	if big {
		return int(binary.BigEndian.Uint32(p.data[p.descriptor(t)+148:])) * sectorSize
	}
	return int(p.get32(p.descriptor(t)+140)) * sectorSize
}

// primaryPath returns the identifiers of a path in the primary tree, for a path whose names need no serial number.
func primaryPath(path string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = primaryIdentifier(parts[i], i < len(parts)-1, 0)
	}
	return strings.Join(parts, "/")
}

// counted is an image that counts how it is read, and fails the test when a read leaves it.
type counted struct {
	tb    testing.TB
	r     io.ReaderAt
	size  int64
	calls int
	bytes int64
}

func newCounted(tb testing.TB, data []byte) *counted {
	tb.Helper()
	return &counted{tb: tb, r: bytes.NewReader(data), size: int64(len(data))}
}

func (c *counted) ReadAt(b []byte, offset int64) (int, error) {
	c.calls++
	c.bytes += int64(len(b))
	if offset < 0 || offset+int64(len(b)) > c.size {
		c.tb.Errorf("read of %d bytes at %d leaves the image of %d bytes", len(b), offset, c.size)
	}
	return c.r.ReadAt(b, offset)
}
