package scaffold

import (
	"bytes"
	"io/fs"
	"maps"
	"strings"
	"unicode"

	"github.com/compose-spec/compose-go/v2/dotenv"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Bounds of variables.
const (
	maxVariables  = 1 << 20 // bytes of all files of variables, and of all values that are put in place of references to them
	referenceSize = 64      // bytes that a reference counts beside its value
	maxReferences = 500     // in one text: the time grows with their square
)

// bounded is a lookup of variables that has no value once those that it returned have more than maxVariables bytes.
func (c *composer) bounded(lookup func(string) (string, bool)) func(string) (string, bool) {
	return func(key string) (string, bool) {
		value, ok := lookup(key)
		if c.variables -= referenceSize + len(value); c.variables < 0 {
			value = ""
		}
		return value, ok
	}
}

// variable returns a variable of the file .env.
func (c *composer) variable(key string) (string, bool) {
	return c.bounded(func(key string) (string, bool) { value, ok := c.project.Environment[key]; return value, ok })(key)
}

// checkVariables refuses variables that multiply.
func (c *composer) checkVariables() error {
	if c.variables >= 0 {
		return nil
	}
	return report.Errorf(report.Invalid, "%s: the values of variables have more than %d MiB in all, or a text refers to more than %d", c.source.Name, maxVariables>>20, maxReferences).
		WithHint("make the values smaller, or refer to them less often")
}

// checkReferences refuses a text whose references take too long, and the next text once the variables are too large.
func (c *composer) checkReferences(text string) error {
	if strings.Count(text, "${") > maxReferences {
		c.variables = -1
	}
	return c.checkVariables()
}

// environmentFile reads a file of variables beside the compose file. It parses one statement after the other, so that each reference is counted
// before its value is copied: references to earlier variables of the file can double the size with each line.
func (c *composer) environmentFile(name string, outer map[string]string) (map[string]string, error) {
	data, err := fs.ReadFile(c.source.Files, c.beside(name))
	if err != nil {
		return nil, err
	}
	c.variables -= len(data)
	if err = c.checkVariables(); err != nil {
		return nil, err
	}
	values := map[string]string{}
	lookup := c.bounded(func(key string) (string, bool) {
		value, ok := outer[key]
		if !ok {
			value, ok = values[key]
		}
		return value, ok
	})
	text := string(bytes.TrimPrefix(data, []byte("\uFEFF")))
	for line, rest := 0, text; rest != ""; {
		end := endOfStatement(rest)
		if err := c.checkReferences(rest[:end]); err != nil {
			return nil, err
		}
		parsed, err := dotenv.UnmarshalWithLookup(rest[:end], lookup)
		if excess := c.checkVariables(); excess != nil {
			return nil, excess
		}
		if err != nil { // once more, for the number of the line
			if _, placed := dotenv.UnmarshalWithLookup(strings.Repeat("\n", line)+rest[:end], lookup); placed != nil {
				err = placed
			}
			return nil, report.Errorf(report.Invalid, "%s: %w", c.source.shown(c.beside(name)), err).WithHint("correct the file")
		}
		maps.Copy(values, parsed)
		line, rest = line+strings.Count(rest[:end], "\n"), rest[end:]
	}
	return values, nil
}

// endOfStatement returns the end of the first comment or assignment. A value in quotes can have several lines.
func endOfStatement(text string) int {
	endOfLine := func(from int) int {
		if i := strings.IndexByte(text[from:], '\n'); i >= 0 {
			return from + i + 1
		}
		return len(text)
	}
	start := len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
	equals := strings.IndexAny(text[start:], "=:\n")
	if equals < 0 || text[start] == '#' || text[start+equals] == '\n' {
		return endOfLine(start)
	}
	value := text[start+equals+1:]
	value = strings.TrimLeft(value, "\t\v\f\r \u0085\u00a0")
	at := len(text) - len(value)
	if value == "" || value[0] != '"' && value[0] != '\'' {
		return endOfLine(at)
	}
	for i := 1; i < len(value); i++ {
		switch value[i] {
		case '\\':
			i++
		case value[0]:
			return at + i + 1
		}
	}
	return len(text)
}
