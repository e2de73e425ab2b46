package versions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// alpineVersion is NUMBER{.NUMBER}[LETTER]{_SUFFIX[NUMBER]}[~COMMIT][-rREVISION].
type alpineVersion struct {
	numbers  []string
	letter   string
	suffixes []alpineSuffix
	revision string
}

type alpineSuffix struct {
	order  int // negative before the version itself
	number string
}

// alpineSuffixes in their order; the version itself is between those before a release and those behind it.
var alpineSuffixes = map[string]int{"alpha": -4, "beta": -3, "pre": -2, "rc": -1, "cvs": 1, "svn": 2, "git": 3, "hg": 4, "p": 5}

// compareAlpine compares versions as apk does.
func compareAlpine(a, b string) (int, error) {
	left, err := parseAlpine(a)
	if err != nil {
		return 0, err
	}
	right, err := parseAlpine(b)
	if err != nil {
		return 0, err
	}
	return cmp.Or(
		compareAlpineNumbers(left.numbers, right.numbers),
		strings.Compare(left.letter, right.letter),
		slices.CompareFunc(pad(left.suffixes, right.suffixes), pad(right.suffixes, left.suffixes), func(a, b alpineSuffix) int {
			return cmp.Or(a.order-b.order, compareNumbers(a.number, b.number))
		}),
		min(len(left.revision), 1)-min(len(right.revision), 1), // without a revision is older than -r0
		compareNumbers(left.revision, right.revision),
	), nil
}

// pad returns suffixes with as many empty ones behind it as other is longer.
func pad(suffixes, other []alpineSuffix) []alpineSuffix {
	return append(slices.Clone(suffixes), make([]alpineSuffix, max(0, len(other)-len(suffixes)))...)
}

// compareAlpineNumbers compares the first numbers by value. A later one with a leading zero is compared as digits behind a decimal point.
func compareAlpineNumbers(a, b []string) int {
	for i := range min(len(a), len(b)) {
		c := compareNumbers(a[i], b[i])
		if i > 0 && (a[i][0] == '0' || b[i][0] == '0') {
			c = strings.Compare(a[i], b[i])
		}
		if c != 0 {
			return c
		}
	}
	return len(a) - len(b)
}

func parseAlpine(version string) (*alpineVersion, error) {
	wrong := fmt.Errorf("%q is not a version of apk", version)
	v, rest := &alpineVersion{}, version
	for {
		var number string
		if number, rest = span(rest, isDigit); number == "" {
			return nil, wrong
		}
		v.numbers = append(v.numbers, number)
		after, ok := strings.CutPrefix(rest, ".")
		if !ok {
			break
		}
		rest = after
	}
	if rest != "" && 'a' <= rest[0] && rest[0] <= 'z' {
		v.letter, rest = rest[:1], rest[1:]
	}
	for strings.HasPrefix(rest, "_") {
		var name string
		name, rest = span(rest[1:], isLetter)
		order, ok := alpineSuffixes[name]
		if !ok {
			return nil, wrong
		}
		suffix := alpineSuffix{order: order}
		suffix.number, rest = span(rest, isDigit)
		v.suffixes = append(v.suffixes, suffix)
	}
	if commit, ok := strings.CutPrefix(rest, "~"); ok { // the commit has no order
		_, rest = span(commit, func(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' })
	}
	if revision, ok := strings.CutPrefix(rest, "-r"); ok {
		if v.revision, rest = span(revision, isDigit); v.revision == "" {
			return nil, wrong
		}
	}
	if rest != "" {
		return nil, wrong
	}
	return v, nil
}
