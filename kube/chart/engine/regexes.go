package engine

import (
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"text/template"
	"unicode/utf8"
)

// Bounds of regular expressions.
const (
	maxPattern      = 16 << 10 // bytes
	maxInstructions = 50_000   // of the program that a pattern is compiled to
	instructionSize = 64
	maxMatches      = 500_000
	stepWork        = 8 // of an instruction at a character
)

// expressions are the functions of regular expressions. A pattern is compiled once for a rendering.
func (b *budget) expressions() template.FuncMap {
	table := template.FuncMap{}
	compiled := map[string]*pattern{}
	compile := func(name, text, subject string) (*pattern, error) {
		p, ok := compiled[text]
		if !ok {
			var err error
			if p, err = b.compile(name, text); err != nil {
				return nil, err
			}
			compiled[text] = p
		}
		return p, b.spend(callCost + product(len(subject)+1, int(p.work)))
	}
	list := func(name string, find func(p *pattern, text string, n int) []string) func(expression, text string, n int) ([]string, error) {
		return func(expression, text string, n int) ([]string, error) {
			p, err := compile(name, expression, text)
			if err != nil {
				return []string{}, err
			}
			if n < 0 || n > maxMatches {
				n = maxMatches + 1
			}
			if err = b.try(name, p, text); err != nil {
				return nil, err
			}
			return b.matches(name, find(p, text, n))
		}
	}
	replace := func(name string, literal bool) func(expression, text, other string) (string, error) {
		return func(expression, text, other string) (string, error) {
			p, err := compile(name, expression, text)
			if err == nil {
				err = b.try(name, p, text)
			}
			if err != nil {
				return "", err
			}
			if literal {
				return b.make(name, p.replaced(text, other, 0), func() string { return p.ReplaceAllLiteralString(text, other) })
			}
			return b.make(name, p.replaced(text, other, strings.Count(other, "$")), func() string { return p.ReplaceAllString(text, other) })
		}
	}
	for _, prefix := range []string{"regex", "mustRegex"} {
		table[prefix+"Match"] = func(expression, text string) (bool, error) {
			p, err := compile(prefix+"Match", expression, text)
			if IsExcess(err) || prefix == "mustRegex" && err != nil {
				return false, err
			}
			return err == nil && p.MatchString(text), nil
		}
		table[prefix+"Find"] = func(expression, text string) (string, error) {
			p, err := compile(prefix+"Find", expression, text)
			if err != nil {
				return "", err
			}
			return p.FindString(text), nil
		}
		table[prefix+"FindAll"] = list(prefix+"FindAll", func(p *pattern, text string, n int) []string { return p.FindAllString(text, n) })
		table[prefix+"Split"] = list(prefix+"Split", func(p *pattern, text string, n int) []string { return p.Split(text, n) })
		table[prefix+"ReplaceAll"] = replace(prefix+"ReplaceAll", false)
		table[prefix+"ReplaceAllLiteral"] = replace(prefix+"ReplaceAllLiteral", true)
	}
	return table
}

// pattern is a regular expression, and the work that it is at a character.
type pattern struct {
	*regexp.Regexp
	work    int64
	further *regexp.Regexp // finds the pattern after a character that it skips; nil until it is needed
}

func (b *budget) compile(name, text string) (*pattern, error) {
	if len(text) > maxPattern {
		return nil, excess(fmt.Sprintf("%s: the pattern has more than %d bytes", name, maxPattern))
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	count := instructions(tree)
	if count > maxInstructions || count*int64(tree.MaxCap()+1) > 10*maxInstructions {
		return nil, excess(fmt.Sprintf("%s: the pattern is too large", name))
	}
	if err = b.spend(count * 1000); err != nil {
		return nil, err
	}
	if err = b.keepSmall(count * instructionSize * 2); err != nil {
		return nil, err
	}
	compiled, err := regexp.Compile(text)
	return &pattern{Regexp: compiled, work: count * stepWork}, err
}

// PatternSize is how many instructions a pattern is compiled to at most; 0 for one that is none.
func PatternSize(text string) int64 {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0
	}
	return instructions(tree)
}

// instructions is how large the program of a pattern is at most.
func instructions(tree *syntax.Regexp) int64 {
	count := int64(1)
	if tree.Op == syntax.OpLiteral {
		count += int64(len(tree.Rune))
	}
	for _, sub := range tree.Sub {
		count += 1 + instructions(sub)
	}
	if tree.Op == syntax.OpRepeat {
		count *= int64(max(tree.Min, tree.Max, 1) + 1)
	}
	return min(count, 1<<40)
}

// replaced is how many bytes a text has at most when all that matches has been replaced.
func (p *pattern) replaced(text, other string, references int) int64 {
	known := int64(len(text)) + product(references, len(text))
	if bytes := known + product(len(text)+1, len(other)); bytes <= largeValue {
		return bytes
	}
	count := 0
	p.ReplaceAllStringFunc(text, func(string) string { count++; return "" })
	return known + product(count, len(other))
}

// linearSquare is the work that looking at all of a text at each of its bytes is where nothing is tried.
const linearSquare = 1_000_000

// try finds all matches and counts the characters that are read for it. The time is quadratic for a pattern that reads
// the rest of the text before each match. Such a search costs as much as it reads, and ends with the budget.
func (b *budget) try(name string, p *pattern, text string) error {
	if product(len(text), len(text)) <= linearSquare/p.work {
		return nil
	}
	if p.further == nil {
		further, err := regexp.Compile(`\A(?s:.)(?s:.*?)(?:` + p.String() + `)`)
		if err != nil {
			return excess(name + ": the pattern is too large")
		}
		p.further = further
	}
	paid := product(2, len(text)) // by the call itself
	in := &counted{text: text, left: paid + b.work/(searches*p.work)}
	for in.start <= len(text) {
		end, found := p.next(in)
		if in.left < 0 {
			return excess(name + ": the pattern takes too long to find all matches")
		}
		if !found {
			break
		}
		if end == in.start { // the match is empty
			_, size := utf8.DecodeRuneInString(text[end:])
			end += max(size, 1)
		}
		in.start = end
	}
	return b.spend(product(int(max(in.read-paid, 0)), int(searches*p.work)))
}

// searches is how often a function looks for all matches of a pattern at most.
const searches = 3

// next returns the end of the first match that begins where in starts or later.
func (p *pattern) next(in *counted) (end int, found bool) {
	expression, from := p.Regexp, in.start
	if in.start > 0 { // a match depends on the character before
		_, size := utf8.DecodeLastRuneInString(in.text[:in.start])
		expression, from = p.further, in.start-size
	}
	in.at = from
	match := expression.FindReaderIndex(in)
	if match == nil {
		return 0, false
	}
	return from + match[1], true
}

// counted reads a text and counts its characters. It ends early when none is left.
type counted struct {
	text       string
	start, at  int
	read, left int64
}

func (c *counted) ReadRune() (r rune, size int, err error) {
	if c.at == len(c.text) {
		return 0, 0, io.EOF
	}
	c.read++
	if c.left--; c.left < 0 {
		return 0, 0, io.EOF
	}
	r, size = utf8.DecodeRuneInString(c.text[c.at:])
	c.at += size
	return r, size, nil
}

// matches counts the texts that were found.
func (b *budget) matches(name string, found []string) ([]string, error) {
	if len(found) > maxMatches {
		return nil, excess(fmt.Sprintf("%s: there are more than %d matches", name, maxMatches))
	}
	return found, keepList(b, found)
}
