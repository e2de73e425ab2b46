package console

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// minimumLastColumn is the width below which the last column does not shrink; the table is wider than the terminal then.
const minimumLastColumn = 20

// Table is a list of rows under a heading.
type Table struct {
	Columns []string
	Rows    [][]string
}

// Add appends one row; cells that are missing at its end are empty.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Print writes the table in aligned columns. On a terminal the last column is wrapped to the width of the screen; in a
// file or pipe every row is one line, so that line-based tools can work on it.
func (t *Table) Print(s *Stream) error {
	widths := t.widths()
	last := len(t.Columns) - 1
	room, left := 0, 0
	for _, w := range widths[:last] {
		left += w + 2
	}
	if s.Width > 0 {
		room = max(s.Width-left, minimumLastColumn)
	}
	var b strings.Builder
	writeRow(&b, t.Columns, widths, room, func(cell string) string { return s.Paint(Bold, cell) })
	for _, row := range t.Rows {
		writeRow(&b, row, widths, room, func(cell string) string { return cell })
	}
	_, err := s.Write([]byte(b.String()))
	return err
}

// widths returns the width of the widest cell of each column.
func (t *Table) widths() []int {
	widths := make([]int, len(t.Columns))
	for i, name := range t.Columns {
		widths[i] = runewidth.StringWidth(name)
	}
	for _, row := range t.Rows {
		for i, cell := range row {
			widths[i] = max(widths[i], runewidth.StringWidth(Line(cell)))
		}
	}
	return widths
}

// writeRow writes the cells of one row, the last one wrapped to room columns unless room is 0.
func writeRow(b *strings.Builder, cells []string, widths []int, room int, paint func(string) string) {
	last := len(widths) - 1
	indent := 0
	var line strings.Builder
	for i, width := range widths[:last] {
		cell := ""
		if i < len(cells) {
			cell = Line(cells[i])
		}
		line.WriteString(paint(cell))
		line.WriteString(strings.Repeat(" ", width-runewidth.StringWidth(cell)+2))
		indent += width + 2
	}
	parts := []string{""}
	if last < len(cells) {
		parts = wrap(Line(cells[last]), room)
	}
	for i, part := range parts {
		if i > 0 {
			line.WriteString(strings.Repeat(" ", indent))
		}
		line.WriteString(paint(part))
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
		line.Reset()
	}
}

// wrap breaks text at spaces into lines of at most width columns; a word that is longer is cut. Width 0 means no limit.
func wrap(text string, width int) []string {
	if width <= 0 || runewidth.StringWidth(text) <= width {
		return []string{text}
	}
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		for {
			joined := strings.TrimPrefix(line+" "+word, " ")
			if runewidth.StringWidth(joined) <= width {
				line = joined
				break
			}
			if line != "" {
				lines = append(lines, line)
				line = ""
				continue
			}
			head := runewidth.Truncate(word, width, "")
			lines = append(lines, head)
			word = word[len(head):]
		}
	}
	return append(lines, line)
}
