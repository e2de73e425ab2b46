package chart

import "fmt"

// Document is a piece of a template for tests of this package.
type Document struct {
	Line int
	Text string
}

func (d Document) String() string { return fmt.Sprintf("%d %q", d.Line, d.Text) }

// Split is split.
func Split(text string) []Document {
	var documents []Document
	for d := range split(text) {
		documents = append(documents, Document{d.line, d.text})
	}
	return documents
}
