package versions

import (
	"fmt"
	"strings"
)

// compareDebian compares [EPOCH:]UPSTREAM[-REVISION], as in Debian's policy, section 5.6.12.
func compareDebian(a, b string) (int, error) {
	left, err := parseDebian(a)
	if err != nil {
		return 0, err
	}
	right, err := parseDebian(b)
	if err != nil {
		return 0, err
	}
	if c := compareNumbers(left[0], right[0]); c != 0 {
		return c, nil
	}
	for i := 1; i < len(left); i++ {
		if c := compareDebianPart(left[i], right[i]); c != 0 {
			return c, nil
		}
	}
	return 0, nil
}

// parseDebian returns epoch, upstream version and revision.
func parseDebian(version string) (parts [3]string, err error) {
	parts = splitVersion(version)
	allowed := func(c byte) bool { return isDigit(c) || isLetter(c) || strings.IndexByte(".+~-:", c) >= 0 }
	_, wrong := span(parts[1]+parts[2], allowed)
	if !allDigits(parts[0]) || parts[1] == "" || wrong != "" {
		return parts, fmt.Errorf("%q is not a version of dpkg", version)
	}
	return parts, nil
}

// compareDebianPart compares text and numbers in turn.
func compareDebianPart(a, b string) int {
	for a != "" || b != "" {
		var left, right string
		left, a = span(a, isNotDigit)
		right, b = span(b, isNotDigit)
		for i := 0; i < max(len(left), len(right)); i++ {
			if c := debianOrder(left, i) - debianOrder(right, i); c != 0 {
				return c
			}
		}
		left, a = span(a, isDigit)
		right, b = span(b, isDigit)
		if c := compareNumbers(left, right); c != 0 {
			return c
		}
	}
	return 0
}

func isNotDigit(c byte) bool { return !isDigit(c) }

// debianOrder sorts ~ before the end of the text, that before letters, and these before all else.
func debianOrder(text string, i int) int {
	switch {
	case i >= len(text):
		return 0
	case text[i] == '~':
		return -1
	case isLetter(text[i]):
		return int(text[i])
	}
	return int(text[i]) + 256
}
