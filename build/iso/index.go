package iso

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// index reads both trees and compares them. It returns the primary tree, whose names are the Rock Ridge names, and
// the Joliet tree, which is nil when the image has none.
func (s *scan) index() (primary, joliet *hierarchy, err error) {
	if err = s.readDescriptors(); err != nil {
		return nil, nil, err
	}
	if primary, err = s.readTree(&s.primary); err != nil {
		return nil, nil, err
	}
	if s.joliet == nil {
		return primary, nil, s.flag(ruleNoJoliet, "", "the image has no Joliet tree")
	}
	if joliet, err = s.readTree(s.joliet); err != nil {
		return nil, nil, err
	}
	return primary, joliet, s.compareDirectories(primary.root, joliet.root)
}

// checkIdentifiers compares the primary identifiers of a directory with the Rock Ridge names: readers of both must find
// the same content under the same name. A name that the primary tree can express must have exactly that identifier.
// Writers mangle the others in their own ways, and all of these are accepted unless the identifier belongs to a
// sibling.
func (r *reader) checkIdentifiers(d *node) error {
	plain := make([]string, len(d.children)) // the primary tree's form of a name that it can express
	owners := make(map[string]*node, len(d.children))
	for i, c := range d.children {
		bare := bareIdentifier(primaryTree.identifier(sibling{c.name, c.dir}, 0))
		if bare == strings.ToUpper(c.name) {
			plain[i], owners[bare] = bare, c
		}
	}
	for i, c := range d.children {
		if err := r.checkIdentifier(c, plain[i], owners); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) checkIdentifier(c *node, plain string, owners map[string]*node) error {
	if !isPrimaryIdentifier(c.identifier, c.dir) {
		if err := r.flag(rulePrimaryName, c.path, "the primary identifier is %q", c.identifier); err != nil {
			return err
		}
	}
	bare := bareIdentifier(c.identifier)
	owner := owners[bare]
	switch {
	case owner == c || owner == nil && plain == "":
		return nil
	case owner != nil:
		return r.flag(ruleTreeDiverges, c.path, "ISO 9660 shows this file as %s, which is the name of %s", c.identifier, owner.path)
	case !isLevel1(bare, plain):
		return r.flag(ruleTreeDiverges, c.path, "ISO 9660 shows this file as %s, want %s", c.identifier, plain)
	}
	return r.flag(rulePrimaryName, c.path, "ISO 9660 shows this file as %s, want %s", c.identifier, plain)
}

// bareIdentifier is an identifier as readers compare it: without version, trailing dot and case.
func bareIdentifier(id string) string { return strings.ToUpper(primaryTree.bare(id)) }

// isLevel1 reports whether bare is an 8.3 form of the longer name want, as mkisofs writes without -l.
func isLevel1(bare, want string) bool {
	base, extension, _ := strings.Cut(bare, ".")
	wantBase, wantExtension, _ := strings.Cut(want, ".")
	if len(base) > 8 || len(extension) > 3 || len(wantBase) <= 8 && len(wantExtension) <= 3 {
		return false
	}
	stem := min(5, len(wantBase)) // mkisofs replaces the three last characters by a number on collision
	return len(base) >= stem && base[:stem] == wantBase[:stem] && strings.HasPrefix(wantExtension, extension)
}

// isPrimaryIdentifier reports whether the standard allows the identifier at level 3.
func isPrimaryIdentifier(id string, dir bool) bool {
	dots := 0
	if !dir {
		var versioned bool
		if id, versioned = strings.CutSuffix(id, ";1"); !versioned {
			return false
		}
		dots = 1
	}
	bad := strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '.'
	})
	return !bad && len(id) <= maxPrimary && strings.Count(id, ".") <= dots
}

// checkDuplicates refuses names of one directory that are equal, or that readers take for equal. The names of a file
// in the trees differ, so each kind of name is looked at by itself.
func (r *reader) checkDuplicates(d *node) error {
	names := make(map[string]string, len(d.children))
	identifiers := make(map[string]string, len(d.children))
	for _, c := range d.children {
		folded := foldKey(c.name)
		if other, again := names[folded]; again {
			if err := r.flag(ruleDuplicateName, c.path, "the directory also has %q in the %s tree", other, r.namesOf()); err != nil {
				return err
			}
		}
		names[folded] = c.name
		if r.joliet {
			continue
		}
		bare := bareIdentifier(c.identifier)
		if other, again := identifiers[bare]; again && foldKey(other) != folded {
			if err := r.flag(ruleDuplicateName, c.path, "ISO 9660 shows this file and %q as %s", other, c.identifier); err != nil {
				return err
			}
		}
		identifiers[bare] = c.name
	}
	return nil
}

// foldKey is [foldName] without its cost for the usual name.
func foldKey(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return foldName(name)
	}
	return strings.ToLower(name)
}

func (r *reader) namesOf() string {
	if r.joliet {
		return "Joliet"
	}
	return "Rock Ridge"
}

// compareDirectories requires that a Joliet directory shows the same as the primary one.
func (s *scan) compareDirectories(p, j *node) error {
	pairs, err := s.pairEntries(p, j)
	if err != nil {
		return err
	}
	for _, pair := range pairs {
		if err := s.compareEntries(pair[0], pair[1]); err != nil {
			return err
		}
	}
	return nil
}

// compareEntries requires that a file has the same sections, or a directory the same files, in both trees.
func (s *scan) compareEntries(p, j *node) error {
	switch {
	case p.dir != j.dir:
		return s.flag(ruleTreeDiverges, p.path, "Rock Ridge shows a %s, Joliet (%s) a %s", p.kind(), j.path, j.kind())
	case p.dir:
		return s.compareDirectories(p, j)
	case !slices.Equal(p.sections, j.sections):
		return s.flag(ruleTreeDiverges, p.path, "Rock Ridge shows %s, Joliet (%s) shows %s",
			describeSections(p.sections), j.path, describeSections(j.sections))
	}
	return nil
}

// describeSections words where the content of a file lies.
func describeSections(sections []Section) string {
	if len(sections) == 0 {
		return "an empty file"
	}
	parts := make([]string, 0, len(sections))
	for _, section := range sections[:min(len(sections), 4)] {
		parts = append(parts, fmt.Sprintf("%d bytes at byte %d", section.Size, section.Offset))
	}
	return strings.Join(parts, " and ")
}

func (n *node) kind() string {
	if n.dir {
		return "directory"
	}
	return "file"
}

// pairEntries matches the entries of a directory in both trees. Names that Joliet can express match exactly; mangled
// ones match by their content.
func (s *scan) pairEntries(p, j *node) ([][2]*node, error) {
	rest := make(map[string]*node, len(j.children))
	for _, c := range j.children {
		rest[c.name] = c
	}
	pairs := make([][2]*node, 0, len(p.children))
	var missing []*node
	for _, c := range p.children {
		other, found := rest[c.name]
		if !found {
			missing = append(missing, c)
			continue
		}
		delete(rest, c.name)
		pairs = append(pairs, [2]*node{c, other})
	}
	if len(missing) == 0 && len(rest) == 0 {
		return pairs, nil
	}
	displaced := displacedNames(p)
	for i, c := range missing {
		if !isJolietName(c) || displaced(c.name) {
			continue
		}
		missing[i] = nil
		if err := s.flag(ruleTreeDiverges, c.path, "Rock Ridge shows this %s, Joliet does not", c.kind()); err != nil {
			return nil, err
		}
	}
	mangled := slices.DeleteFunc(missing, func(c *node) bool { return c == nil })
	return s.pairMangled(pairs, mangled, rest)
}

// displacedNames returns a function that reports whether a name, although Joliet can express it, may be recorded as
// another: xorriso numbers all names of a directory whose mangled forms are equal.
func displacedNames(d *node) func(name string) bool {
	forms, long := map[string]bool{}, false
	for _, c := range d.children {
		if !isJolietName(c) {
			forms[jolietTree.identifier(sibling{c.name, c.dir}, 0)] = true
			long = long || len(c.name) > jolietLimit
		}
	}
	return func(name string) bool {
		return forms[name] || long && utf8.RuneCountInString(name) == jolietLimit
	}
}

func (s *scan) pairMangled(pairs [][2]*node, mangled []*node, rest map[string]*node) ([][2]*node, error) {
	byContent := map[uint64][]*node{}
	for _, c := range rest {
		byContent[c.content()] = append(byContent[c.content()], c)
	}
	for _, c := range mangled {
		same := byContent[c.content()]
		if len(same) == 0 {
			if err := s.flag(ruleTreeDiverges, c.path, "Rock Ridge shows this %s, Joliet shows no such content", c.kind()); err != nil {
				return nil, err
			}
			continue
		}
		byContent[c.content()] = same[1:]
		delete(rest, same[0].name)
		pairs = append(pairs, [2]*node{c, same[0]})
	}
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		c := rest[name]
		if err := s.flag(ruleTreeDiverges, c.path, "Joliet shows this %s, Rock Ridge does not", c.kind()); err != nil {
			return nil, err
		}
	}
	return pairs, nil
}

// content is a number that is equal for entries that show the same bytes, whatever their names are. It is computed
// once, since every level of mangled directories asks for it.
func (n *node) content() uint64 {
	if n.sum != 0 {
		return n.sum
	}
	h := fnv.New64a()
	if n.dir {
		sums := make([]uint64, len(n.children))
		for i, c := range n.children {
			sums[i] = c.content()
		}
		slices.Sort(sums)
		_ = binary.Write(h, binary.LittleEndian, sums) // a hash takes everything
	} else {
		_ = binary.Write(h, binary.LittleEndian, n.sections)
	}
	const isFile, isDirectory = 1, 2 // so that the sum is neither 0 nor that of the other kind
	n.sum = h.Sum64()&^3 | isFile
	if n.dir {
		n.sum ^= isFile | isDirectory
	}
	return n.sum
}

// jolietLimit is the number of characters that the Joliet specification allows and most writers use.
const jolietLimit = 64

// isJolietName reports whether every writer records the name in the Joliet tree as it is: at most 64 characters of
// UCS-2, none of those that the specification forbids.
func isJolietName(n *node) bool {
	return utf8.RuneCountInString(n.name) <= jolietLimit && jolietTree.keeps(sibling{n.name, n.dir})
}
