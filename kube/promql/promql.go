// Package promql checks expressions of Prometheus: whether they are well-formed, which series they select, and of which
// namespaces. Start with [Parse]. It makes no requests, and evaluates nothing.
//
// The grammar is that of Prometheus' own parser, without experimental features, and for rules and graphs: the result is
// an instant vector or a scalar.
package promql

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Namespace is the label with the namespace that a series comes from.
const Namespace = "namespace"

// Error is a fault of an expression. Line and column count from 1, the column in characters.
type Error struct {
	Line, Column int
	Message      string
}

func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message) }

// Expression is a well-formed expression. It is never modified, and may be used concurrently.
type Expression struct {
	text      string
	root      parser.Expr
	selectors []*parser.VectorSelector // as they stand in the text
}

// Parse reads an expression; its errors are of type [*Error].
func Parse(text string) (*Expression, error) {
	if err := checkSize(text); err != nil {
		return nil, err
	}
	root, err := parser.ParseExpr(text)
	if err != nil {
		return nil, errorIn(text, err)
	}
	if kind := root.Type(); kind != parser.ValueTypeVector && kind != parser.ValueTypeScalar {
		return nil, &Error{1, 1, "expected an instant vector or a scalar, got a " + parser.DocumentedType(kind)}
	}
	e := &Expression{text: text, root: root}
	parser.Inspect(root, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			e.selectors = append(e.selectors, selector)
		}
		return nil
	})
	slices.SortFunc(e.selectors, func(a, b *parser.VectorSelector) int { return int(a.PosRange.Start - b.PosRange.Start) })
	return e, nil
}

const maxMessage = 150 // some repeat the fault at any length

// errorIn keeps the first of the parser's errors; those after it are often consequences.
func errorIn(text string, err error) *Error {
	var all parser.ParseErrors
	if !errors.As(err, &all) || len(all) == 0 {
		return &Error{1, 1, err.Error()}
	}
	return errorAt(text, int(all[0].PositionRange.Start), report.Cut(all[0].Err.Error(), maxMessage))
}

// errorAt is an error at an offset of the text.
func errorAt(text string, offset int, message string) *Error {
	before := text[:min(max(offset, 0), len(text))]
	line := strings.LastIndexByte(before, '\n') + 1
	return &Error{strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[line:]) + 1, message}
}

// Selector has the labels by which an expression selects series in one place.
type Selector struct {
	Metric string   // "" when series of any name are meant
	Labels []string // those that it matches, sorted
}

// Matches reports whether the selector has a matcher for a label.
func (s Selector) Matches(label string) bool { return slices.Contains(s.Labels, label) }

// Selectors returns the selectors of the expression, in their order.
func (e *Expression) Selectors() []Selector {
	list := make([]Selector, len(e.selectors))
	for i, s := range e.selectors {
		list[i] = selectorOf(s)
	}
	return list
}

func selectorOf(s *parser.VectorSelector) Selector {
	found := Selector{Metric: s.Name}
	for _, m := range s.LabelMatchers {
		if m.Name != labels.MetricName {
			found.Labels = append(found.Labels, m.Name)
		} else if m.Type == labels.MatchEqual {
			found.Metric = m.Value
		}
	}
	slices.Sort(found.Labels)
	found.Labels = slices.Compact(found.Labels)
	return found
}

// Metrics names the metrics that the expression reads, sorted.
func (e *Expression) Metrics() []string {
	var names []string
	for _, s := range e.Selectors() {
		if s.Metric != "" {
			names = append(names, s.Metric)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// IsScoped reports whether each selector selects namespaces. It is true without selectors.
func (e *Expression) IsScoped() bool { return scoped(e.root) }

// In returns the text of the expression about one namespace: selectors that say nothing of namespaces select from this one.
// Everything else stays as it is written, comments included.
func (e *Expression) In(namespace string) string {
	var b strings.Builder
	matcher, done := Namespace+"="+strconv.Quote(namespace), 0
	for _, s := range e.selectors {
		if selectorOf(s).Matches(Namespace) {
			continue
		}
		at, before, after := placeOf(e.text, int(s.PosRange.Start))
		b.WriteString(e.text[done:at] + before + matcher + after)
		done = at
	}
	return b.String() + e.text[done:]
}

// placeOf returns the place for a matcher in the selector that begins at an offset, and the separators around it.
func placeOf(text string, start int) (at int, before, after string) {
	lexer := parser.Lex(text[start:])
	first, second := next(lexer), next(lexer)
	end := func(i parser.Item) int { return start + int(i.Pos) + len(i.Val) }
	if first.Typ != parser.LEFT_BRACE { // the name of a metric
		if second.Typ != parser.LEFT_BRACE {
			return end(first), "{", "}"
		}
		first, second = second, next(lexer)
	}
	if second.Typ == parser.RIGHT_BRACE {
		return end(first), "", ""
	}
	return end(first), "", ","
}

// next returns the next item, without comments.
func next(lexer *parser.Lexer) parser.Item {
	for {
		var item parser.Item
		if lexer.NextItem(&item); item.Typ != parser.COMMENT {
			return item
		}
	}
}
