package versions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// compareSemantic compares [v]MAJOR[.MINOR[.PATCH]][-PRERELEASE][+BUILD], as in Semantic Versioning 2.0.0. Go has the versions of its
// toolchain as well, such as 1.22rc1.
func compareSemantic(a, b string) (int, error) {
	left, leftPre, err := parseSemantic(a)
	if err != nil {
		return 0, err
	}
	right, rightPre, err := parseSemantic(b)
	if err != nil {
		return 0, err
	}
	if c := slices.CompareFunc(left[:], right[:], compareNumbers); c != 0 {
		return c, nil
	}
	if leftPre == "" || rightPre == "" { // a release is newer than what precedes it
		return cmp.Compare(len(rightPre), len(leftPre)), nil
	}
	return slices.CompareFunc(strings.Split(leftPre, "."), strings.Split(rightPre, "."), comparePrerelease), nil
}

func comparePrerelease(a, b string) int {
	switch left, right := allDigits(a), allDigits(b); {
	case left && right:
		return compareNumbers(a, b)
	case left:
		return -1
	case right:
		return 1
	}
	return strings.Compare(a, b)
}

func parseSemantic(version string) (numbers [3]string, prerelease string, err error) {
	wrong := fmt.Errorf("%q is not a semantic version", version)
	core, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), "+")
	core, prerelease, hasPrerelease := strings.Cut(core, "-")
	if i := strings.IndexFunc(core, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); i > 0 && !hasPrerelease { // of Go: 1.22rc1
		name, number := span(core[i:], isLetter)
		if name != "rc" && name != "beta" || !allDigits(number) {
			return numbers, "", wrong
		}
		core, prerelease, hasPrerelease = core[:i], name+"."+number, true
	}
	parts := strings.Split(core, ".")
	if len(parts) > len(numbers) {
		return numbers, "", wrong
	}
	for i, part := range parts {
		if !allDigits(part) {
			return numbers, "", wrong
		}
		numbers[i] = part
	}
	_, rest := span(prerelease, func(c byte) bool { return isDigit(c) || isLetter(c) || c == '-' || c == '.' })
	if rest != "" || hasPrerelease && slices.Contains(strings.Split(prerelease, "."), "") {
		return numbers, "", wrong
	}
	return numbers, prerelease, nil
}
