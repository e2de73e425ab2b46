package versions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// pythonVersion is [EPOCH!]NUMBER{.NUMBER}[{a|b|rc}N][.postN][.devN][+LOCAL].
type pythonVersion struct {
	epoch                string
	numbers              []string
	pre                  int // the kind of prerelease: 0, 1 and 2 for a, b and rc; -1 for a development version of a release; 3 for the release
	preNumber, post, dev string
	hasPost, isDev       bool
	local                []string
}

// comparePython compares versions as PEP 440 does.
func comparePython(a, b string) (int, error) {
	left, err := parsePython(a)
	if err != nil {
		return 0, err
	}
	right, err := parsePython(b)
	if err != nil {
		return 0, err
	}
	return cmp.Or(
		compareNumbers(left.epoch, right.epoch),
		comparePadded(left.numbers, right.numbers),
		left.pre-right.pre,
		compareNumbers(left.preNumber, right.preNumber),
		compareOptional(left.post, left.hasPost, right.post, right.hasPost),
		compareDev(left, right),
		slices.CompareFunc(left.local, right.local, compareLocal),
	), nil
}

// compareDev compares development versions, which are older than the version itself.
func compareDev(a, b *pythonVersion) int {
	switch {
	case a.isDev && b.isDev:
		return compareNumbers(a.dev, b.dev)
	case a.isDev:
		return -1
	case b.isDev:
		return 1
	}
	return 0
}

// compareOptional compares numbers, of which none is older than any.
func compareOptional(a string, hasA bool, b string, hasB bool) int {
	switch {
	case hasA && hasB:
		return compareNumbers(a, b)
	case hasA:
		return 1
	case hasB:
		return -1
	}
	return 0
}

// comparePadded compares numbers; those that are missing at the end are zero.
func comparePadded(a, b []string) int {
	for i := range max(len(a), len(b)) {
		var left, right string
		if i < len(a) {
			left = a[i]
		}
		if i < len(b) {
			right = b[i]
		}
		if c := compareNumbers(left, right); c != 0 {
			return c
		}
	}
	return 0
}

// compareLocal compares segments of local versions: numbers are newer than text.
func compareLocal(a, b string) int {
	switch left, right := allDigits(a), allDigits(b); {
	case left && right:
		return compareNumbers(a, b)
	case left:
		return 1
	case right:
		return -1
	}
	return strings.Compare(a, b)
}

// release is the order of a version that is not a prerelease.
const release = 3

var pythonPrereleases = []struct {
	names []string
	order int
}{{[]string{"alpha", "a"}, 0}, {[]string{"beta", "b"}, 1}, {[]string{"preview", "pre", "rc", "c"}, 2}}

func parsePython(version string) (*pythonVersion, error) {
	wrong := fmt.Errorf("%q is not a version of PEP 440", version)
	text := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(version)), "v")
	text, local, hasLocal := strings.Cut(text, "+")
	v := &pythonVersion{epoch: "0", pre: release}
	if epoch, rest, ok := strings.Cut(text, "!"); ok {
		v.epoch, text = epoch, rest
	}
	number, rest := span(text, isDigit)
	v.numbers = []string{number}
	for number != "" && strings.HasPrefix(rest, ".") && len(rest) > 1 && isDigit(rest[1]) {
		number, rest = span(rest[1:], isDigit)
		v.numbers = append(v.numbers, number)
	}
	if number == "" || !allDigits(v.epoch) {
		return nil, wrong
	}
	for _, p := range pythonPrereleases {
		if n, after, ok := cutPythonPart(rest, p.names...); ok {
			v.pre, v.preNumber, rest = p.order, n, after
			break
		}
	}
	if after, ok := strings.CutPrefix(rest, "-"); ok && after != "" && isDigit(after[0]) {
		v.post, rest = span(after, isDigit)
		v.hasPost = true
	} else if n, after, ok := cutPythonPart(rest, "post", "rev", "r"); ok {
		v.post, rest, v.hasPost = n, after, true
	}
	if n, after, ok := cutPythonPart(rest, "dev"); ok {
		v.dev, rest, v.isDev = n, after, true
	}
	if v.isDev && v.pre == release && !v.hasPost {
		v.pre = -1 // 1.0.dev1 is older than 1.0a1
	}
	if hasLocal {
		v.local = strings.FieldsFunc(local, func(r rune) bool { return r == '.' || r == '-' || r == '_' })
	}
	if rest != "" || hasLocal && len(v.local) == 0 {
		return nil, wrong
	}
	return v, nil
}

// cutPythonPart reads [.-_]NAME[.-_][NUMBER].
func cutPythonPart(text string, names ...string) (number, rest string, ok bool) {
	text = trimSeparator(text)
	for _, name := range names {
		if after, found := strings.CutPrefix(text, name); found {
			if after != "" && isLetter(after[0]) {
				continue
			}
			if n, rest := span(trimSeparator(after), isDigit); n != "" {
				return n, rest, true
			}
			return "0", after, true
		}
	}
	return "", "", false
}

func trimSeparator(text string) string {
	if text != "" && strings.IndexByte(".-_", text[0]) >= 0 {
		return text[1:]
	}
	return text
}
