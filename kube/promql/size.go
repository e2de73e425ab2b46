package promql

import (
	"fmt"
	"regexp/syntax"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/strutil"
)

// Bounds of an expression, many times those of the longest rules: the parser's time for deep nesting is quadratic, and
// a pattern of a few bytes may compile to many megabytes.
const (
	maxLength       = 64 << 10 // bytes
	maxItems        = 2000     // names, operators, brackets, strings
	maxInstructions = 100_000  // of the programs that all patterns are compiled to
	rangesInOne     = 8        // ranges of a class of characters that take as much as an instruction
)

// checkSize refuses text that would cost the parser too much.
func checkSize(text string) error {
	long := &Error{1, 1, fmt.Sprintf("the expression has more than %d bytes or %d words", maxLength, maxItems)}
	if len(text) > maxLength {
		return long
	}
	lexer, left := parser.Lex(text), maxInstructions
	var before parser.ItemType
	for range maxItems {
		item := next(lexer)
		switch {
		case item.Typ == parser.EOF || item.Typ == parser.ERROR:
			return nil
		case item.Typ == parser.STRING && (before == parser.EQL_REGEX || before == parser.NEQ_REGEX):
			if left -= patternSize(item.Val); left < 0 {
				return errorAt(text, int(item.Pos), "the regular expressions are too large: they repeat too much")
			}
		}
		before = item.Typ
	}
	return long
}

// patternSize estimates how many instructions a quoted pattern is compiled to. The parser reports invalid patterns.
func patternSize(quoted string) int {
	text, err := strutil.Unquote(quoted)
	if err != nil {
		return 0
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0
	}
	return instructions(tree)
}

func instructions(tree *syntax.Regexp) int {
	count := 1
	switch tree.Op {
	case syntax.OpLiteral:
		count += len(tree.Rune)
	case syntax.OpCharClass:
		count += len(tree.Rune) / rangesInOne
	}
	for _, sub := range tree.Sub {
		count += instructions(sub)
	}
	if tree.Op == syntax.OpRepeat {
		count *= max(tree.Min, tree.Max, 1)
	}
	return min(count, maxInstructions+1)
}
