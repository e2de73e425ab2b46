package lint_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/build/iso"
)

// patched is an ISO image in memory whose structures a test damages.
type patched struct {
	tb   testing.TB
	data []byte
}

const (
	sector  = 2048
	primary = 16 * sector // descriptors
	joliet  = 17 * sector
)

func (p *patched) put32(at int, v uint32) {
	binary.LittleEndian.PutUint32(p.data[at:], v)
	binary.BigEndian.PutUint32(p.data[at+4:], v)
}

func (p *patched) get32(at int) uint32 { return binary.LittleEndian.Uint32(p.data[at:]) }

// directory returns the offset of the first record of the directory that identifiers lead to.
func (p *patched) directory(descriptor int, identifiers ...string) int {
	if len(identifiers) == 0 {
		return int(p.get32(descriptor+156+2)) * sector
	}
	return int(p.get32(p.record(descriptor, identifiers...)+2)) * sector
}

// record returns the offset of a directory record.
func (p *patched) record(descriptor int, identifiers ...string) int {
	p.tb.Helper()
	last := len(identifiers) - 1
	at := p.directory(descriptor, identifiers[:last]...)
	id := identifiers[last]
	if descriptor == joliet {
		id = ucs2(id)
	}
	for end := at + int(p.get32(at+10)); at < end; at += int(p.data[at]) {
		if p.data[at] == 0 {
			at = (at/sector + 1) * sector
		}
		if string(p.data[at+33:at+33+int(p.data[at+32])]) == id {
			return at
		}
	}
	p.tb.Fatalf("no record %q", identifiers)
	return 0
}

func ucs2(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		b.WriteByte(0)
		b.WriteByte(c)
	}
	return b.String()
}

// entry returns the offset of a system use entry of a record of the primary tree.
func (p *patched) entry(at int, signature string) int {
	p.tb.Helper()
	i := bytes.Index(p.data[at:at+int(p.data[at])], []byte(signature))
	if i < 0 {
		p.tb.Fatalf("no entry %s", signature)
	}
	return at + i
}

// manifest, role and deploy are records of the primary tree.
func (p *patched) manifest() int { return p.record(primary, "MANIFEST.YAML;1") }
func (p *patched) deploy() int   { return p.record(primary, "OPERATOR", "DEPLOY") }
func (p *patched) role() int     { return p.record(primary, "OPERATOR", "DEPLOY", "ROLE.YAML;1") }

// isoFaults damage any archive with a manifest and a role, one thing each.
var isoFaults = map[string]func(*patched){
	"shorter-than-its-descriptors": func(p *patched) { p.data = p.data[:17*sector] },
	"huge-directory":               func(p *patched) { p.put32(primary+166, 128<<20) },
	"no-terminator":                func(p *patched) { p.data[18*sector+1] = 'X' },
	"partition":                    func(p *patched) { p.data[joliet] = 3 },
	"boot-record":                  func(p *patched) { p.data[joliet] = 0 },
	"truncated":                    func(p *patched) { p.data = p.data[:len(p.data)-1] },
	"data-after-the-volume":        func(p *patched) { p.data = append(p.data, make([]byte, 100)...) },
	"no-rock-ridge":                func(p *patched) { copy(p.data[p.entry(p.directory(primary), "SP"):], "PD") },
	"no-joliet":                    func(p *patched) { p.data[joliet] = 255 },
	"halves-differ":                func(p *patched) { p.data[p.deploy()+9]++ },
	"path-table":                   func(p *patched) { p.data[int(p.get32(primary+140))*sector+2]++ },
	"record-too-long":              func(p *patched) { p.data[p.manifest()+32] = 250 },
	"hidden-file":                  func(p *patched) { p.data[p.manifest()+25] |= 1 },
	"dot-differs":                  func(p *patched) { p.put32(p.directory(primary, "OPERATOR", "DEPLOY")+10, 2*sector) },
	"own-parent": func(p *patched) {
		at := p.directory(joliet, "operator", "deploy")
		p.put32(at+int(p.data[at])+2, p.get32(at+2))
	},
	"odd-directory-size": func(p *patched) { p.put32(p.deploy()+10, 2049) },
	"directory-loop":     func(p *patched) { p.put32(p.deploy()+2, p.get32(primary+158)) },
	"unsorted": func(p *patched) {
		at := p.directory(joliet, "operator", "deploy")
		for range 2 {
			at += int(p.data[at])
		}
		first, second := slices.Clone(p.data[at:at+int(p.data[at])]), at+int(p.data[at])
		next := slices.Clone(p.data[second : second+int(p.data[second])])
		copy(p.data[at:], append(next, first...))
	},
	"extent-outside": func(p *patched) { p.put32(p.manifest()+2, 1<<31) },
	"extents-overlap": func(p *patched) {
		for _, at := range []int{p.manifest(), p.record(joliet, "manifest.yaml")} {
			p.put32(at+10, 3*sector)
		}
	},
	"section-missing":     func(p *patched) { p.data[p.manifest()+25] |= 0x80 },
	"system-use-too-long": func(p *patched) { p.data[p.entry(p.manifest(), "NM")+2] = 250 },
	"unknown-system-use":  func(p *patched) { copy(p.data[p.entry(p.manifest(), "TF"):], "ZZ") },
	"relocated":           func(p *patched) { copy(p.data[p.entry(p.deploy(), "TF"):], "RE") },
	"symbolic-link":       func(p *patched) { copy(p.data[p.entry(p.manifest(), "TF"):], "SL") },
	"set-user-id":         func(p *patched) { p.put32(p.entry(p.role(), "PX")+4, 0o104555) },
	"owner":               func(p *patched) { p.put32(p.entry(p.role(), "PX")+20, 1000) },
	"backslash":           func(p *patched) { p.data[p.entry(p.role(), "NM")+6] = '\\' },
	"lower-case":          func(p *patched) { p.data[p.role()+33] = 'r' },
	"same-but-for-case": func(p *patched) {
		a := p.directory(primary, "BLOBS", "SHA256")
		for range 2 {
			a += int(p.data[a]) // the records for itself and the parent
		}
		b := a + int(p.data[a])
		from, to := p.entry(a, "NM")+5, p.entry(b, "NM")+5
		copy(p.data[to:to+64], p.data[from:from+64])
		letter := to
		for p.data[letter] < 'a' {
			letter++
		}
		p.data[letter] -= 'a' - 'A'
	},
	"path-table-elsewhere": func(p *patched) { binary.LittleEndian.PutUint32(p.data[primary+140:], 1<<20) },
	"second-manifest":      func(p *patched) { p.put32(p.record(joliet, "manifest.yaml")+10, 4) },
	"implanted":            func(p *patched) { check(p.tb, iso.ImplantMD5(&writable{p.data}, int64(len(p.data)))) },
	"changed-after-implanting": func(p *patched) {
		check(p.tb, iso.ImplantMD5(&writable{p.data}, int64(len(p.data))))
		p.data[primary+574] ^= 1 // in the identifier of the application
	},
	"hidden-data":     func(p *patched) { p.data[510] = 0x55 },
	"partition-table": func(p *patched) { copy(p.data[510:], "\x55\xaa") },
}

// writable is an image that implantisomd5 may change.
type writable struct{ data []byte }

func (w *writable) ReadAt(b []byte, offset int64) (int, error) {
	return bytes.NewReader(w.data).ReadAt(b, offset)
}

func (w *writable) WriteAt(b []byte, offset int64) (int, error) {
	return copy(w.data[offset:], b), nil
}

// damage applies a fault to an image.
func damage(tb testing.TB, data []byte, fault string) []byte {
	tb.Helper()
	apply := isoFaults[fault]
	if apply == nil {
		tb.Fatalf("there is no fault %q", fault)
	}
	p := &patched{tb, bytes.Clone(data)}
	apply(p)
	return p.data
}
