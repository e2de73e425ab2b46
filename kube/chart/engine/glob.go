package engine

import (
	"fmt"
	"strings"

	"github.com/gobwas/glob"
	"github.com/gobwas/glob/match"
)

// Bounds of a pattern.
const (
	maxGlob      = 512
	maxWildcards = 12
)

// globPattern is a pattern for the names of files, with the budget of the rendering.
//
// The library compares in a time that grows with the power of the wildcards, and has oddities that charts rely on: dir/**/x matches dir/x,
// but not dir/**/*.x. So its matchers are used, and their work is counted.
type globPattern struct {
	text   string
	budget *budget
}

// String returns the pattern, as it is printed.
func (p globPattern) String() string { return p.text }

// compile returns the function that compares names. It matches all of them when the pattern is none.
func (p globPattern) compile() (func(name string) (bool, error), error) {
	if len(p.text) > maxGlob || strings.Count(p.text, "*")+strings.Count(p.text, "{") > maxWildcards {
		return nil, excess(fmt.Sprintf("Glob: the pattern has more than %d bytes or %d wildcards", maxGlob, maxWildcards))
	}
	parts := int64(1) // of texts and wildcards
	for _, sign := range []string{"*", "?", "[", "{", ","} {
		parts += 2 * int64(strings.Count(p.text, sign))
	}
	if err := p.budget.spend(callCost + 10*parts*parts*parts); err != nil {
		return nil, err
	}
	compiled, err := glob.Compile(p.text, '/')
	if err != nil {
		return func(string) (bool, error) { return true, nil }, nil //nolint:nilerr // as Helm
	}
	work := &globWork{budget: p.budget}
	matcher := work.counted(compiled.(match.Matcher)) //nolint:forcetypeassert // what it compiles to
	return func(name string) (bool, error) {
		matches := matcher.Match(name)
		return matches, work.err
	}, nil
}

// globWork counts the work of the matchers of a pattern. After an error they match nothing, so that they end soon.
type globWork struct {
	budget *budget
	err    error
}

func (w *globWork) spend(work int64) bool {
	if w.err == nil {
		w.err = w.budget.spend(work)
	}
	return w.err == nil
}

// counted returns a matcher that counts the work of a matcher and of those in it.
func (w *globWork) counted(m match.Matcher) match.Matcher {
	all := func(matchers match.Matchers) (result match.Matchers) {
		for _, m := range matchers {
			result = append(result, w.counted(m))
		}
		return result
	}
	c := countedMatcher{work: w, perByte: 1}
	switch inner := m.(type) {
	case nil:
		return nil
	case match.BTree:
		inner.Value, inner.Left, inner.Right = w.counted(inner.Value), w.counted(inner.Left), w.counted(inner.Right)
		m = inner
	case match.AnyOf:
		inner.Matchers = all(inner.Matchers)
		m = inner
	case match.EveryOf:
		inner.Matchers, c.square = all(inner.Matchers), true
		m = inner
	case match.Row:
		inner.Matchers = all(inner.Matchers)
		m = inner
	case match.List:
		c.perByte += int64(len(inner.List))
	}
	c.Matcher = m
	return c
}

// countedMatcher is a matcher whose work is counted.
type countedMatcher struct {
	match.Matcher

	work    *globWork
	perByte int64
	square  bool // it compares each position with all others
}

const globCost = 30 // work of a call of a matcher

func (c countedMatcher) Match(text string) bool {
	return c.work.spend(globCost+c.perByte*int64(len(text))) && c.Matcher.Match(text)
}

func (c countedMatcher) Index(text string) (int, []int) {
	cost := globCost + c.perByte*int64(len(text))
	if c.square {
		cost += product(len(text), len(text))
	}
	if !c.work.spend(cost) {
		return -1, nil
	}
	return c.Matcher.Index(text)
}
