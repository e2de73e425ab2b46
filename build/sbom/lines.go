package sbom

import (
	"bufio"
	"io"
	"iter"
	"strings"
)

// maxLine is how much of a line is read; what is longer, such as a list of files, is cut.
const maxLine = 64 << 10

// lines reads text line by line. An error ends the sequence.
func lines(r io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		buffered := bufio.NewReaderSize(r, maxLine)
		for {
			line, cut, err := buffered.ReadLine()
			if err == io.EOF {
				return
			}
			text := string(line)
			for cut && err == nil {
				_, cut, err = buffered.ReadLine()
			}
			if err == io.EOF {
				err = nil
			}
			if !yield(text, err) || err != nil {
				return
			}
		}
	}
}

// stanzas reads paragraphs of fields, "Name: value" with continuation lines that begin with a space, as dpkg, Python and debian/copyright
// have them. It calls done at the end of each paragraph with the first line of the fields that are wanted; of a field that occurs
// several times, the first one.
func stanzas(r io.Reader, wanted []string, done func(fields map[string]string) error) error {
	fields := map[string]string{}
	end := func() error {
		if len(fields) == 0 {
			return nil
		}
		err := done(fields)
		clear(fields)
		return err
	}
	for line, err := range lines(r) {
		if err != nil {
			return err
		}
		if strings.TrimSpace(line) == "" {
			if err := end(); err != nil {
				return err
			}
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || line[0] == ' ' || line[0] == '\t' {
			continue
		}
		for _, want := range wanted {
			if _, known := fields[want]; !known && strings.EqualFold(want, name) {
				fields[want] = strings.TrimSpace(value)
			}
		}
	}
	return end()
}
