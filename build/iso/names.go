package iso

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The length of identifiers. ECMA-119 7.5 counts 30 characters and the dot for a file, 7.6.3 31 for a directory. Joliet
// allows 64, and every system reads the common longer form.
const (
	maxPrimary   = 31
	maxJoliet    = 103
	maxExtension = 9   // with its dot, when a name has to be cut
	maxName      = 245 // a Rock Ridge name in one NM entry that Linux does not cut
)

// tree is one of the two directory hierarchies of an image; Rock Ridge names live in the primary one.
type tree int

const (
	primaryTree tree = iota
	jolietTree
)

// primaryIdentifier returns the identifier that name gets in the primary tree: upper case letters, digits and
// underscores, ";1" on files. Serial 0 is the plain form; a higher one goes between base and extension to separate
// siblings with equal plain forms.
func primaryIdentifier(name string, dir bool, serial int) string {
	base, extension := splitExtension(name, dir)
	if dir {
		return fit(dCharacters(base), nil, serial, maxPrimary)
	}
	dotted := append([]rune{'.'}, dCharacters(strings.TrimPrefix(extension, "."))...)
	return fit(dCharacters(base), dotted, serial, maxPrimary) + ";1"
}

// jolietIdentifier returns the identifier that name gets in the Joliet tree, as text; [ucs2] makes the recorded bytes
// of it. Characters that Joliet forbids, and those outside UCS-2, become underscores, and so does a dot or space at the
// end, which Windows and 7-Zip would drop; there is no ";1".
func jolietIdentifier(name string, dir bool, serial int) string {
	base, extension := splitExtension(name, dir)
	id := fit(jolietCharacters(base), jolietCharacters(extension), serial, maxJoliet)
	if last := len(id) - 1; last >= 0 && (id[last] == '.' || id[last] == ' ') {
		return id[:last] + "_"
	}
	return id
}

// splitExtension cuts a file name before its last dot. Directories have no extension, and a leading dot starts none.
func splitExtension(name string, dir bool) (base, extension string) {
	if i := strings.LastIndexByte(name, '.'); i > 0 && !dir {
		return name[:i], name[i:]
	}
	return name, ""
}

// dCharacters maps text to the d-characters of ECMA-119 7.4.1. Only ASCII is raised to upper case: "ı" must not become
// the I of another name.
func dCharacters(text string) []rune {
	out := make([]rune, 0, len(text))
	for _, r := range text {
		switch {
		case 'a' <= r && r <= 'z':
			r -= 'a' - 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		default:
			r = '_'
		}
		out = append(out, r)
	}
	return out
}

// jolietCharacters maps text to the characters that the Joliet specification allows.
func jolietCharacters(text string) []rune {
	out := make([]rune, 0, len(text))
	for _, r := range text {
		if r < ' ' || r > 0xFFFF || r == utf8.RuneError || strings.ContainsRune(`*/:;?\`, r) {
			r = '_'
		}
		out = append(out, r)
	}
	return out
}

// fit joins base, serial number and extension to at most limit characters. A longer name first loses the end of its
// extension, then the end of its base.
func fit(base, extension []rune, serial, limit int) string {
	number := ""
	if serial > 0 {
		number = fmt.Sprintf("%03d", serial-1)
	}
	if len(base)+len(number)+len(extension) > limit {
		extension = extension[:min(len(extension), maxExtension)]
		base = base[:min(len(base), limit-len(number)-len(extension))]
	}
	return string(base) + number + string(extension)
}

// ucs2 encodes a Joliet identifier as it is recorded: big-endian UCS-2.
func ucs2(text string) []byte {
	out := make([]byte, 0, 2*len(text))
	for _, r := range text {
		out = binary.BigEndian.AppendUint16(out, uint16(r))
	}
	return out
}

// comparePrimary orders identifiers of the primary tree as ECMA-119 9.3 does: by name, then by extension. The padding
// with spaces that the standard prescribes sorts a prefix first, as a plain comparison does.
func comparePrimary(a, b string) int {
	aBase, aExtension, _ := strings.Cut(strings.TrimSuffix(a, ";1"), ".")
	bBase, bExtension, _ := strings.Cut(strings.TrimSuffix(b, ";1"), ".")
	return cmp.Or(strings.Compare(aBase, bBase), strings.Compare(aExtension, bExtension))
}

// foldName returns a name without case and Unicode composition: two names of which it returns the same are the same to some
// reader.
func foldName(name string) string {
	return norm.NFC.String(strings.ToLower(strings.ToUpper(norm.NFC.String(name))))
}

// sibling is a name in a directory.
type sibling struct {
	name string
	dir  bool
}

// identifier returns the identifier of the name in tree t.
func (t tree) identifier(s sibling, serial int) string {
	if t == primaryTree {
		return primaryIdentifier(s.name, s.dir, serial)
	}
	return jolietIdentifier(s.name, s.dir, serial)
}

// bare strips the parts of an identifier that readers hide: the version, and the dot of a file without extension.
func (t tree) bare(identifier string) string {
	if t == primaryTree {
		return strings.TrimSuffix(strings.TrimSuffix(identifier, ";1"), ".")
	}
	return identifier
}

// keeps reports whether the plain identifier of the name shows the name itself, give or take the case that the primary
// tree cannot express.
func (t tree) keeps(s sibling) bool {
	name := s.name
	if t == primaryTree {
		name = strings.ToUpper(name)
	}
	return t.bare(t.identifier(s, 0)) == name
}

// serials returns the serial numbers that make the identifiers of all names in one directory different, even for a
// reader that ignores case. Names that the tree can express come first: no mangled name ever takes the identifier of
// a sibling that needs no mangling. Among the others the given order, which is that of the names' bytes, decides.
func (t tree) serials(siblings []sibling) []int {
	serials := make([]int, len(siblings))
	taken := make(map[string]bool, len(siblings))
	var mangled []int
	for i, s := range siblings {
		if !t.keeps(s) {
			mangled = append(mangled, i)
			continue
		}
		taken[foldName(t.bare(t.identifier(s, 0)))] = true
	}
	next := make(map[string]int) // per plain identifier: a directory of equal prefixes takes linear time
	for _, i := range mangled {
		plain := t.identifier(siblings[i], 0)
		serial, id := next[plain], ""
		for ; ; serial++ {
			id = foldName(t.bare(t.identifier(siblings[i], serial)))
			if !taken[id] {
				break
			}
		}
		taken[id], serials[i], next[plain] = true, serial, serial+1
	}
	return serials
}

// nameProblem returns the reason why an image cannot hold a file or directory of this name, and "" when it can.
func nameProblem(name string) string {
	switch {
	case len(name) > maxName:
		return fmt.Sprintf("the name has %d bytes and the limit is %d", len(name), maxName)
	case strings.HasPrefix(name, "."):
		return "the name begins with a dot, which some readers strip"
	case !utf8.ValidString(name):
		return "the name is not UTF-8"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "the name contains a control character"
	case strings.ContainsRune(name, '\\'):
		return "the name contains a backslash, which some readers take for a separator"
	default:
		return ""
	}
}
