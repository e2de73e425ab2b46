package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean escapes control and invisible formatting characters, which a terminal or a browser might obey without showing them.
// Line feeds and tabs stay.
func Clean(text string) string {
	harmless := func(r rune) bool { return r == '\n' || r == '\t' || unicode.IsPrint(r) }
	if strings.IndexFunc(text, func(r rune) bool { return !harmless(r) || r == unicode.ReplacementChar }) < 0 {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == unicode.ReplacementChar && !strings.HasPrefix(text[i:], string(r)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case harmless(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// OneLine is the beginning of a text on one line, of at most limit bytes and without anything that a terminal would obey.
func OneLine(text string, limit int) string {
	return Cut(Clean(strings.Join(strings.Fields(text), " ")), limit)
}

// Cut is the beginning of a text, of at most limit bytes.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
}

// Capitalized is a text whose first letter is a capital: a heading, or a sentence of its own.
func Capitalized(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + text[size:]
}
