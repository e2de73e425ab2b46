package versions

import (
	"fmt"
	"strings"
)

// compareRPM compares [EPOCH:]VERSION[-RELEASE] as rpm does. A version without a release is the same as one with any release.
func compareRPM(a, b string) (int, error) {
	left, err := parseRPM(a)
	if err != nil {
		return 0, err
	}
	right, err := parseRPM(b)
	if err != nil {
		return 0, err
	}
	if c := compareNumbers(left[0], right[0]); c != 0 {
		return c, nil
	}
	if c := compareRPMPart(left[1], right[1]); c != 0 || left[2] == "" || right[2] == "" {
		return c, nil
	}
	return compareRPMPart(left[2], right[2]), nil
}

// parseRPM returns epoch, version and release.
func parseRPM(version string) (parts [3]string, err error) {
	parts = splitVersion(version)
	if !allDigits(parts[0]) || parts[1] == "" || strings.ContainsAny(parts[1]+parts[2], " :") {
		return parts, fmt.Errorf("%q is not a version of rpm", version)
	}
	return parts, nil
}

// compareRPMPart compares runs of digits or letters; all between is a separator. ~ sorts before the end, ^ behind it and before anything else.
func compareRPMPart(a, b string) int {
	separator := func(c byte) bool { return !isDigit(c) && !isLetter(c) && c != '~' && c != '^' }
	for {
		_, a = span(a, separator)
		_, b = span(b, separator)
		for _, mark := range []string{"~", "^"} {
			left, right := strings.HasPrefix(a, mark), strings.HasPrefix(b, mark)
			switch {
			case left && right:
			case left:
				return markOrder(mark, b)
			case right:
				return -markOrder(mark, a)
			}
		}
		if a != "" && b != "" && (a[0] == '~' || a[0] == '^') {
			a, b = a[1:], b[1:]
			continue
		}
		if a == "" || b == "" {
			return len(a) - len(b)
		}
		of := isLetter
		if isDigit(a[0]) {
			of = isDigit
		}
		var left, right string
		left, a = span(a, of)
		right, b = span(b, of)
		if right == "" { // digits are newer than letters
			if isDigit(left[0]) {
				return 1
			}
			return -1
		}
		c := strings.Compare(left, right)
		if isDigit(left[0]) {
			c = compareNumbers(left, right)
		}
		if c != 0 {
			return c
		}
	}
}

// markOrder is the order of a version that continues with a mark, beside one that continues with other.
func markOrder(mark, other string) int {
	if mark == "^" && other == "" {
		return 1
	}
	return -1
}
