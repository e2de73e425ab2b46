package chart

import (
	"iter"
	"strings"
	"unicode"
)

// document is one piece of a rendered template.
type document struct {
	line int // from 1
	text string
}

// split cuts a rendered template as Helm does: where a line begins with ---, whatever follows, as in "---apiVersion: v1" and
// "--- # comment".
func split(text string) iter.Seq[document] {
	return func(yield func(document) bool) {
		line, counted := 1, 0
		cutOut := func(from, to int) (goOn bool) {
			piece := strings.TrimLeftFunc(text[from:to], unicode.IsSpace)
			if piece == "" {
				return true
			}
			line += strings.Count(text[counted:to-len(piece)], "\n")
			counted = to - len(piece)
			return yield(document{line, piece})
		}
		from := len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
		cut := from
		if !strings.HasPrefix(text[from:], "---") {
			cut = nextSeparator(text, from)
		}
		for ; cut < len(text); cut = nextSeparator(text, from) {
			if !cutOut(from, cut) {
				return
			}
			from = len(text) - len(strings.TrimLeft(text[cut+len("---"):], " \t"))
		}
		cutOut(from, len(text))
	}
}

// nextSeparator is where the next line begins with ---, or the end.
func nextSeparator(text string, from int) int {
	if i := strings.Index(text[from:], "\n---"); i >= 0 {
		return from + i + 1
	}
	return len(text)
}
