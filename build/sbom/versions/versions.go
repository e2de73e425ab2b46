package versions

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// longest is the length of a version. Longer ones are refused.
const longest = 512

var rules = map[string]func(a, b string) (int, error){
	"deb":    compareDebian,
	"rpm":    compareRPM,
	"apk":    compareAlpine,
	"pypi":   comparePython,
	"maven":  compareMaven,
	"npm":    compareSemantic,
	"golang": compareSemantic,
	"cargo":  compareSemantic,
}

// Types lists the types of packages whose versions can be compared.
func Types() []string { return slices.Sorted(maps.Keys(rules)) }

// Compare returns a negative number, zero or a positive number, as version a is older than b, the same or newer. The type is that of a package URL.
func Compare(typ, a, b string) (int, error) {
	compare, ok := rules[typ]
	if !ok {
		return 0, fmt.Errorf("versions of type %q cannot be compared", typ)
	}
	for _, version := range []string{a, b} {
		if version == "" || len(version) > longest {
			return 0, errors.New("a version is empty or too long")
		}
	}
	return compare(a, b)
}

// compareNumbers compares decimal numbers of any length; leading zeros do not count.
func compareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// span returns the first part of text whose bytes are all of a kind, and the rest.
func span(text string, of func(byte) bool) (head, rest string) {
	n := 0
	for n < len(text) && of(text[n]) {
		n++
	}
	return text[:n], text[n:]
}

func allDigits(text string) bool {
	head, rest := span(text, isDigit)
	return head != "" && rest == ""
}

// splitVersion takes [EPOCH:]VERSION[-REVISION] apart, as dpkg and rpm have it. The epoch is 0 by default.
func splitVersion(text string) (parts [3]string) {
	epoch, rest, ok := strings.Cut(text, ":")
	if !ok {
		epoch, rest = "0", text
	}
	if i := strings.LastIndex(rest, "-"); i >= 0 {
		return [3]string{epoch, rest[:i], rest[i+1:]}
	}
	return [3]string{epoch, rest, ""}
}
