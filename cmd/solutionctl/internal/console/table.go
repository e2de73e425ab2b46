package console

import (
	"fmt"
	"strings"

	"github.com/mattn/go-runewidth"
)

// minimumColumn is the width below which no column shrinks; the table is wider than the terminal then.
const minimumColumn = 12

// Table is a list of rows under a heading.
type Table struct {
	Columns []string
	Rows    [][]string
}

// Add appends one row; cells that are missing at its end are empty.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Print writes the table in aligned columns. On a terminal the widest cells are wrapped to the width of the screen; in a
// file or pipe every row is one line, so that line-based tools can work on it.
func (t *Table) Print(s *Stream) {
	widths := t.widths()
	if s.Width > 0 {
		shrink(widths, s.Width-2*(len(widths)-1))
	}
	var b strings.Builder
	writeRow(&b, t.Columns, widths, func(cell string) string { return s.Paint(Bold, cell) })
	for _, row := range t.Rows {
		writeRow(&b, row, widths, func(cell string) string { return cell })
	}
	fmt.Fprint(s, b.String())
}

// Fits reports whether no cell has to be wrapped on the terminal of a stream; a file or pipe is none.
func (t *Table) Fits(s *Stream) bool {
	widths := t.widths()
	total := 2 * (len(widths) - 1)
	for _, width := range widths {
		total += width
	}
	return total <= s.Width
}

// shrink takes from the widest columns, the last one of several first, until all fit into room.
func shrink(widths []int, room int) {
	total := 0
	for _, width := range widths {
		total += width
	}
	for ; total > room; total-- {
		widest := 0
		for i, width := range widths {
			if width >= widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= minimumColumn {
			return
		}
		widths[widest]--
	}
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

// writeRow writes the cells of one row, each wrapped to the width of its column.
func writeRow(b *strings.Builder, cells []string, widths []int, paint func(string) string) {
	columns, lines := make([][]string, len(widths)), 1
	for i, width := range widths {
		if i < len(cells) {
			columns[i] = wrap(Line(cells[i]), width)
			lines = max(lines, len(columns[i]))
		}
	}
	for n := range lines {
		var line strings.Builder
		blank := 0
		for i, width := range widths {
			part := ""
			if n < len(columns[i]) {
				part = columns[i][n]
			}
			if part != "" {
				line.WriteString(strings.Repeat(" ", blank) + paint(part))
				blank = 0
			}
			blank += width - runewidth.StringWidth(part) + 2
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
}

// wrap breaks text at spaces into lines of at most width columns. A word that is longer is cut, where it can be behind a mark that
// joins the parts of a name.
func wrap(text string, width int) []string {
	if runewidth.StringWidth(text) <= width {
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
			if end := strings.LastIndexAny(head, "/-.:,=") + 1; end > width/2 {
				head = head[:end]
			}
			lines = append(lines, head)
			word = word[len(head):]
		}
	}
	return append(lines, line)
}
