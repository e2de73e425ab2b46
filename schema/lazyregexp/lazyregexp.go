// Package lazyregexp defers the compilation of a regular expression to its first use. A program with a hundred
// expressions in package variables would compile all of them at each start, though a command needs few.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is a [regexp.Regexp] that its first use compiles. Several goroutines may use it at once.
type Regexp struct {
	text     string
	once     sync.Once
	compiled *regexp.Regexp
}

// New returns the expression without compiling it. The text must be valid: its first use panics otherwise, as
// [regexp.MustCompile] does. A test of this package compiles the texts of the whole module.
func New(text string) *Regexp { return &Regexp{text: text} }

func (r *Regexp) get() *regexp.Regexp {
	r.once.Do(func() { r.compiled = regexp.MustCompile(r.text) })
	return r.compiled
}

// String returns the text of the expression, and does not compile it.
func (r *Regexp) String() string { return r.text }

// The methods below have the names and results of the methods of [regexp.Regexp].

// MatchString reports whether text contains a match.
func (r *Regexp) MatchString(text string) bool { return r.get().MatchString(text) }

// FindIndex returns where the leftmost match in data begins and ends.
func (r *Regexp) FindIndex(data []byte) []int { return r.get().FindIndex(data) }

// FindSubmatch returns the leftmost match in data and its groups.
func (r *Regexp) FindSubmatch(data []byte) [][]byte { return r.get().FindSubmatch(data) }

// FindStringIndex returns where the leftmost match in text begins and ends.
func (r *Regexp) FindStringIndex(text string) []int { return r.get().FindStringIndex(text) }

// FindStringSubmatch returns the leftmost match in text and its groups.
func (r *Regexp) FindStringSubmatch(text string) []string { return r.get().FindStringSubmatch(text) }

// FindAllString returns up to n matches, all if n is negative.
func (r *Regexp) FindAllString(text string, n int) []string { return r.get().FindAllString(text, n) }

// FindAllStringIndex returns where up to n matches begin and end.
func (r *Regexp) FindAllStringIndex(text string, n int) [][]int {
	return r.get().FindAllStringIndex(text, n)
}

// FindAllStringSubmatch returns up to n matches with their groups.
func (r *Regexp) FindAllStringSubmatch(text string, n int) [][]string {
	return r.get().FindAllStringSubmatch(text, n)
}

// Split returns up to n pieces of text between the matches, all if n is negative.
func (r *Regexp) Split(text string, n int) []string { return r.get().Split(text, n) }

// ReplaceAllFunc replaces each match in data by the result of f.
func (r *Regexp) ReplaceAllFunc(data []byte, f func([]byte) []byte) []byte {
	return r.get().ReplaceAllFunc(data, f)
}

// ReplaceAllLiteral replaces each match in data by replacement, in which $ means nothing.
func (r *Regexp) ReplaceAllLiteral(data, replacement []byte) []byte {
	return r.get().ReplaceAllLiteral(data, replacement)
}

// ReplaceAllLiteralString replaces each match in text by replacement, in which $ means nothing.
func (r *Regexp) ReplaceAllLiteralString(text, replacement string) string {
	return r.get().ReplaceAllLiteralString(text, replacement)
}

// ReplaceAllString replaces each match in text by replacement, in which $1 is the first group.
func (r *Regexp) ReplaceAllString(text, replacement string) string {
	return r.get().ReplaceAllString(text, replacement)
}

// ReplaceAllStringFunc replaces each match in text by the result of f.
func (r *Regexp) ReplaceAllStringFunc(text string, f func(string) string) string {
	return r.get().ReplaceAllStringFunc(text, f)
}
