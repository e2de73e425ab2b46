package versions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Range is a set of versions of one type of packages.
type Range struct {
	typ         string
	constraints []constraint // sorted by version
}

type constraint struct{ operator, version string }

// operators, the longer ones first.
var operators = []string{">=", "<=", "!=", "<", ">", "="}

// maxConstraints is how many constraints a range may have.
const maxConstraints = 64

// ParseRange reads a range in the syntax of vers, without its head: constraints between "|", each an operator and a version, such as ">=1.0|<1.2.3".
// A version without an operator is that version; "*" or an empty text is every version.
func ParseRange(typ, text string) (*Range, error) {
	if _, ok := rules[typ]; !ok {
		return nil, fmt.Errorf("versions of type %q cannot be compared; these can: %s", typ, strings.Join(Types(), ", "))
	}
	r := &Range{typ: typ}
	if text == "" || text == "*" {
		return r, nil
	}
	parts := strings.Split(text, "|")
	if len(parts) > maxConstraints {
		return nil, fmt.Errorf("a range has at most %d constraints", maxConstraints)
	}
	for _, part := range parts {
		c := constraint{"=", strings.TrimSpace(part)}
		for _, operator := range operators {
			if version, ok := strings.CutPrefix(c.version, operator); ok {
				c = constraint{operator, strings.TrimSpace(version)}
				break
			}
		}
		if c.version == "" || strings.ContainsAny(c.version, "<>=!*") {
			return nil, fmt.Errorf("%q is not a constraint: want an operator and a version, such as <1.2.3", part)
		}
		if _, err := Compare(typ, c.version, c.version); err != nil {
			return nil, err
		}
		r.constraints = append(r.constraints, c)
	}
	var failure error
	slices.SortStableFunc(r.constraints, func(a, b constraint) int {
		c, err := Compare(typ, a.version, b.version)
		failure = errors.Join(failure, err)
		return c
	})
	return r, errors.Join(failure, r.check())
}

// check refuses ranges whose meaning is not clear: the bounds of a range are in pairs, lower and upper in turn.
func (r *Range) check() error {
	var bounds []constraint
	for i, c := range r.constraints {
		if i > 0 {
			if same, err := Compare(r.typ, c.version, r.constraints[i-1].version); err != nil || same == 0 {
				return fmt.Errorf("the range has version %s twice", c.version)
			}
		}
		if c.isBound() {
			bounds = append(bounds, c)
		}
	}
	for i := 1; i < len(bounds); i++ {
		if bounds[i].isLower() == bounds[i-1].isLower() {
			return fmt.Errorf("%s%s and %s%s are bounds on the same side", bounds[i-1].operator, bounds[i-1].version, bounds[i].operator, bounds[i].version)
		}
	}
	return nil
}

func (c constraint) isBound() bool { return c.operator != "=" && c.operator != "!=" }
func (c constraint) isLower() bool { return c.operator[0] == '>' }

// Contains reports whether a version is in the range. The error is about a version that cannot be compared.
//
// The epoch of a version of dpkg or rpm does not count if the range has none: <3.0.15 is about 1:3.0.7 as well. Users write ranges with the versions of
// the authors, and a strict comparison would answer that a package with an epoch is newer than all of them.
func (r *Range) Contains(version string) (bool, error) {
	if len(r.constraints) == 0 {
		return true, nil
	}
	hasEpoch := func(c constraint) bool { return strings.Contains(c.version, ":") }
	if (r.typ == "deb" || r.typ == "rpm") && !slices.ContainsFunc(r.constraints, hasEpoch) {
		if epoch, rest, ok := strings.Cut(version, ":"); ok && allDigits(epoch) {
			version = rest
		}
	}
	var bounds []constraint
	excludes := false
	for _, c := range r.constraints {
		if c.isBound() {
			bounds = append(bounds, c)
			continue
		}
		order, err := Compare(r.typ, version, c.version)
		if err != nil {
			return false, err
		}
		if order == 0 {
			return c.operator == "=", nil
		}
		excludes = excludes || c.operator == "!="
	}
	if len(bounds) == 0 {
		return excludes, nil // all but those
	}
	for i := 0; i < len(bounds); i++ {
		inside, err := r.satisfies(version, bounds[i])
		if err == nil && inside && bounds[i].isLower() && i+1 < len(bounds) {
			i++
			inside, err = r.satisfies(version, bounds[i])
		} else if bounds[i].isLower() && i+1 < len(bounds) {
			i++
		}
		if inside || err != nil {
			return inside, err
		}
	}
	return false, nil
}

func (r *Range) satisfies(version string, c constraint) (bool, error) {
	order, err := Compare(r.typ, version, c.version)
	switch {
	case err != nil:
		return false, err
	case order == 0:
		return len(c.operator) == 2, nil
	case c.isLower():
		return order > 0, nil
	}
	return order < 0, nil
}

// String returns the range in the syntax of vers.
func (r *Range) String() string {
	parts := make([]string, len(r.constraints))
	for i, c := range r.constraints {
		parts[i] = strings.TrimPrefix(c.operator, "=") + c.version
	}
	if len(parts) == 0 {
		parts = []string{"*"}
	}
	return "vers:" + r.typ + "/" + strings.Join(parts, "|")
}
