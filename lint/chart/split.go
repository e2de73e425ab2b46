package chart

import (
	"regexp"
	"strings"
	"unicode"
)

// separator is Helm's own: it cuts "---apiVersion: v1" and "--- # comment" as well.
var separator = regexp.MustCompile(`(?m)^---[ \t]*`)

// document is one piece of a rendered template.
type document struct {
	line int // from 1
	text string
}

// split cuts a rendered template as Helm does, helm.sh/helm/v4/pkg/release/v1/util.SplitManifests, and counts lines,
// which that function does not.
func split(text string) []document {
	var documents []document
	start := len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
	line, counted := 1, 0
	add := func(piece string, end int) {
		trimmed := strings.TrimLeftFunc(piece, unicode.IsSpace)
		if trimmed == "" {
			return
		}
		at := end - len(trimmed)
		line += strings.Count(text[counted:at], "\n")
		counted = at
		documents = append(documents, document{line, trimmed})
	}
	body := text[start:]
	from := 0
	for _, cut := range separator.FindAllStringIndex(body, -1) {
		add(body[from:cut[0]], start+cut[0])
		from = cut[1]
	}
	add(body[from:], len(text))
	return documents
}
