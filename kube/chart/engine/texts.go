package engine

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"text/template"

	"github.com/Masterminds/goutils"
)

// textFunctions are the functions whose results may be much larger than their arguments. They compute the size first.
func (b *budget) textFunctions() template.FuncMap {
	return template.FuncMap{
		"repeat": b.repeat, "replace": b.replace, "join": b.join,
		"indent":   func(spaces int, text string) (string, error) { return b.indent("indent", "", spaces, text) },
		"nindent":  func(spaces int, text string) (string, error) { return b.indent("nindent", "\n", spaces, text) },
		"wrap":     func(width int, text string) (string, error) { return b.wrap("wrap", width, "\n", text, false) },
		"wrapWith": func(width int, end, text string) (string, error) { return b.wrap("wrapWith", width, end, text, true) },
		"printf":   b.printf,
		"print":    func(values ...any) (string, error) { return b.print("print", fmt.Sprint, values) },
		"println":  func(values ...any) (string, error) { return b.print("println", fmt.Sprintln, values) },
	}
}

// make makes a text whose size is known, or at least not more.
func (b *budget) make(name string, bytes int64, text func() string) (string, error) {
	if err := b.result(name, bytes); err != nil {
		return "", err
	}
	if err := b.spend(callCost + bytes/2); err != nil {
		return "", err
	}
	made := text()
	return made, b.keepText(made)
}

// product multiplies sizes, and is the largest number where the result is beyond.
func product(a, b int) int64 {
	if a > 0 && b > math.MaxInt32*1024/a {
		return math.MaxInt32 * 1024
	}
	return int64(a) * int64(b)
}

func (b *budget) repeat(count int, text string) (string, error) {
	return b.make("repeat", product(max(count, 0), len(text)), func() string { return strings.Repeat(text, count) })
}

func (b *budget) replace(old, other, text string) (string, error) {
	bytes := int64(len(text))
	if len(other) > len(old) {
		bytes += product(strings.Count(text, old), len(other)-len(old))
	}
	return b.make("replace", bytes, func() string { return strings.ReplaceAll(text, old, other) })
}

func (b *budget) indent(name, before string, spaces int, text string) (string, error) {
	lines := 1 + strings.Count(text, "\n")
	bytes := int64(len(before)+len(text)) + product(max(spaces, 0), lines)
	return b.make(name, bytes, func() string {
		pad := strings.Repeat(" ", spaces)
		var indented strings.Builder
		indented.Grow(int(bytes))
		indented.WriteString(before)
		for line := range strings.SplitAfterSeq(text, "\n") {
			indented.WriteString(pad)
			indented.WriteString(line)
		}
		return indented.String()
	})
}

func (b *budget) join(separator string, list any) (string, error) {
	s, err := b.look("join", list)
	if err != nil {
		return "", err
	}
	texts := texts(list)
	release, err := b.reserve(int64(len(texts))*16 + s.printed())
	if err != nil {
		return "", err
	}
	defer release()
	bytes := product(max(len(texts)-1, 0), len(separator))
	for _, text := range texts {
		bytes += int64(len(text))
	}
	return b.make("join", bytes, func() string { return strings.Join(texts, separator) })
}

func (b *budget) wrap(name string, width int, end, text string, words bool) (string, error) {
	lines := strings.Count(text, " ") + 1
	if words {
		lines += len(text) / max(width, 1)
	}
	return b.make(name, int64(len(text))+product(min(lines, len(text)), max(len(end), 1)), func() string {
		return goutils.WrapCustom(text, width, end, words)
	})
}

func (b *budget) print(name string, sprint func(...any) string, values []any) (string, error) {
	s, err := b.look(name, values...)
	if err != nil {
		return "", err
	}
	return b.make(name, s.printed(), func() string { return sprint(values...) })
}

// printf knows the size of plain directives exactly, and guesses that of others.
func (b *budget) printf(format string, values ...any) (string, error) {
	s, err := b.look("printf", values...)
	if err != nil {
		return "", err
	}
	return b.make("printf", formatted(format, values, s), func() string { return fmt.Sprintf(format, values...) })
}

// maxWidth is the largest width or precision that package fmt accepts.
const maxWidth = 1_000_000

// formatted is how many bytes a format results in at most.
func formatted(format string, values []any, s size) int64 {
	bytes := int64(len(format))
	growth, again := int64(1), int64(1)
	for rest := format; ; {
		_, after, ok := strings.Cut(rest, "%")
		if !ok {
			break
		}
		rest = strings.TrimLeft(after, "#+- 0123456789.*[]")
		directive := after[:len(after)-len(rest)]
		bytes += widths(directive, values)
		if strings.Contains(directive, "[") { // names its value, as others may
			again++
		}
		if strings.Contains(directive, "#") || rest != "" && strings.IndexByte("svdt%", rest[0]) < 0 {
			growth = 6
		}
	}
	return bytes + product(int(s.printed()*growth), int(again))
}

// starred is the width or precision that package fmt takes from a value: it accepts all types of integers.
func starred(value any) (width int, ok bool) {
	switch v := reflect.ValueOf(value); {
	case v.CanInt() && v.Int() <= maxWidth && v.Int() >= -maxWidth:
		return int(v.Int()), true
	case v.CanUint() && v.Uint() <= maxWidth:
		return int(v.Uint()), true
	}
	return 0, false
}

// widths adds up the widths of a directive.
func widths(directive string, values []any) (bytes int64) {
	for _, number := range strings.FieldsFunc(directive, func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.Atoi(number); err == nil && n <= maxWidth {
			bytes += int64(n)
		}
	}
	if stars := strings.Count(directive, "*"); stars > 0 {
		widest := 0
		for _, value := range values {
			if n, ok := starred(value); ok {
				widest = max(widest, n, -n)
			}
		}
		bytes += product(stars, widest)
	}
	return bytes
}
