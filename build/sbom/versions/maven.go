package versions

import (
	"cmp"
	"slices"
	"strings"
)

// mavenToken is a part of a version of Maven, and the separator before it: '.' or '-'.
type mavenToken struct {
	separator byte
	text      string
}

// mavenQualifiers are qualifiers with an order of their own, before and behind the release. Others follow, in the order of their letters.
var mavenQualifiers = []string{"alpha", "beta", "milestone", "rc", "snapshot", "", "sp"}

// compareMaven compares versions in the order that https://maven.apache.org/pom.html specifies. Every text is a version.
func compareMaven(a, b string) (int, error) {
	left, right := parseMaven(a), parseMaven(b)
	for i := range max(len(left), len(right)) {
		if c := compareMavenTokens(mavenAt(left, right, i), mavenAt(right, left, i)); c != 0 {
			return c, nil
		}
	}
	return 0, nil
}

// mavenAt returns a token, or what is compared with that of the other version where this one ends.
func mavenAt(tokens, other []mavenToken, i int) mavenToken {
	switch {
	case i < len(tokens):
		return tokens[i]
	case other[i].separator == '.' && allDigits(other[i].text):
		return mavenToken{'.', "0"}
	}
	return mavenToken{other[i].separator, ""}
}

func compareMavenTokens(a, b mavenToken) int {
	if c := mavenClass(a) - mavenClass(b); c != 0 {
		return c
	}
	if allDigits(a.text) {
		return compareNumbers(a.text, b.text)
	}
	left, right := slices.Index(mavenQualifiers, a.text), slices.Index(mavenQualifiers, b.text)
	if left < 0 && right < 0 {
		return strings.Compare(a.text, b.text)
	}
	unknown := len(mavenQualifiers)
	if left < 0 {
		left = unknown
	}
	if right < 0 {
		right = unknown
	}
	return cmp.Compare(left, right)
}

// mavenClass sorts qualifiers before numbers behind a hyphen, and those before numbers behind a dot.
func mavenClass(t mavenToken) int {
	switch {
	case !allDigits(t.text):
		return 0
	case t.separator == '-':
		return 1
	}
	return 2
}

// parseMaven splits at dots, hyphens and between digits and letters, and removes what does not count before a hyphen and at the end.
func parseMaven(version string) []mavenToken {
	var tokens []mavenToken
	separator, rest := byte('.'), strings.ToLower(version)
	for {
		end := strings.IndexAny(rest, ".-_")
		part := rest
		if end >= 0 {
			part = rest[:end]
		}
		tokens = append(tokens, splitMaven(separator, part)...)
		if end < 0 {
			break
		}
		separator = rest[end]
		if separator == '_' {
			separator = '-'
		}
		rest = rest[end+1:]
	}
	return trimMaven(tokens)
}

// splitMaven splits between digits and letters.
func splitMaven(separator byte, part string) []mavenToken {
	if part == "" {
		return []mavenToken{{separator, "0"}}
	}
	var tokens []mavenToken
	for part != "" {
		of := isNotDigit
		if isDigit(part[0]) {
			of = isDigit
		}
		var text string
		text, part = span(part, of)
		tokens = append(tokens, mavenToken{separator, mavenAlias(text, part != "")})
		separator = '-'
	}
	return tokens
}

// mavenAlias returns the qualifier of other names; a, b and m are short forms before a number.
func mavenAlias(text string, beforeNumber bool) string {
	switch {
	case text == "ga" || text == "final" || text == "release":
		return ""
	case text == "cr":
		return "rc"
	case beforeNumber && text == "a":
		return "alpha"
	case beforeNumber && text == "b":
		return "beta"
	case beforeNumber && text == "m":
		return "milestone"
	}
	return text
}

func trimMaven(tokens []mavenToken) []mavenToken {
	isNull := func(t mavenToken) bool { return t.text == "" || allDigits(t.text) && strings.Trim(t.text, "0") == "" }
	for end := len(tokens); end > 0; {
		start := end
		for start > 0 && isNull(tokens[start-1]) {
			start--
		}
		tokens = slices.Delete(tokens, start, end)
		for end = start; end > 0 && tokens[end-1].separator != '-'; end-- { // to the hyphen before
		}
		end--
	}
	return tokens
}
