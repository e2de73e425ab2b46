package manual

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

// width is that of a line of text: mandoc finds lines of more than 80 bytes hard to edit.
const width = 78

// writer writes mdoc. All that it is given is text: what would be a request, an escape or a macro is escaped.
type writer struct{ bytes.Buffer }

// macro writes a macro whose arguments are text.
func (w *writer) macro(name string, arguments ...string) {
	w.WriteString("." + name)
	for _, argument := range arguments {
		w.WriteString(" " + quote(argument))
	}
	w.WriteByte('\n')
}

// macros writes a line of macros, such as "It Fl x Ar y": an argument that is the name of a macro, or a delimiter, is one.
func (w *writer) macros(words ...string) {
	w.WriteString("." + words[0])
	for _, word := range words[1:] {
		if callable[word] || word == "," {
			w.WriteString(" " + word)
		} else {
			w.WriteString(" " + quote(word))
		}
	}
	w.WriteByte('\n')
}

// list begins a list of terms with what they mean; each term is a macro It.
func (w *writer) list() { w.WriteString(".Bl -tag -width Ds\n") }

func (w *writer) endList() { w.WriteString(".El\n") }

// callable are the macros that pages use inside a line.
var callable = map[string]bool{"Fl": true, "Ar": true, "Xr": true}

// escapes are characters with a meaning in roff, or without one in ASCII.
var escapes = strings.NewReplacer(`\`, `\e`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "'", `\(aq`, `"`, `\(dq`, "\t", "        ")

func escape(text string) string {
	var b strings.Builder
	for _, r := range escapes.Replace(text) {
		if r < 0x80 {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		}
	}
	return b.String()
}

// macroWord is text that mdoc could take for a macro: two or three letters, and punctuation at either end of an argument.
var macroWord = lazyregexp.New(`^([A-Z%][a-z0-9A-Z]{1,2}|[.,:;()\[\]?!|]+)$`)

// quote makes one argument of a text.
func quote(text string) string {
	escaped := escape(text)
	switch {
	case macroWord.MatchString(text):
		return `\&` + escaped
	case text == "" || strings.Contains(text, " "):
		return `"` + escaped + `"`
	}
	return escaped
}

// text writes paragraphs. Parts that are indented keep their lines, and a list begins each of its points on a line of its own.
func (w *writer) text(text string) {
	for i, block := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		var words, verbatim []string
		flush := func() {
			w.fill(words)
			w.literal(verbatim)
			words, verbatim = nil, nil
		}
		lines := strings.Split(block, "\n")
		if i > 0 && !strings.HasPrefix(lines[0], "  ") {
			w.macro("Pp")
		}
		for _, line := range lines {
			switch indented := strings.HasPrefix(line, "  "); {
			case indented && words != nil, !indented && verbatim != nil:
				flush()
			}
			if strings.HasPrefix(line, "  ") {
				verbatim = append(verbatim, line)
			} else {
				words = append(words, strings.Fields(line)...)
			}
		}
		flush()
	}
}

// fill writes words as lines of text, and begins a line with each sentence, as mdoc wants it.
func (w *writer) fill(words []string) {
	line := ""
	flush := func() {
		if line == "" {
			return
		}
		if strings.ContainsAny(line[:1], ".'") {
			line = `\&` + line
		}
		w.WriteString(line + "\n")
		line = ""
	}
	for _, word := range words {
		escaped := escape(word)
		if line != "" && len(line)+1+len(escaped) > width {
			flush()
		}
		if line != "" {
			line += " "
		}
		line += escaped
		if endsSentence(word) {
			flush()
		}
	}
	flush()
}

func endsSentence(word string) bool { return strings.HasSuffix(strings.TrimRight(word, `)"']`), ".") }

// literal writes lines as they are, indented by what the page indents.
func (w *writer) literal(lines []string) {
	if len(lines) == 0 {
		return
	}
	w.WriteString(".Bd -literal -offset indent\n")
	for _, line := range lines {
		line = escape(strings.TrimRight(strings.TrimPrefix(line, "  "), " "))
		if strings.HasPrefix(line, ".") {
			line = `\&` + line
		}
		w.WriteString(line + "\n")
	}
	w.WriteString(".Ed\n")
}
