package page

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/schema"
)

// A list of objects is shown as rows, with a control for each field of an item, and an empty row for one more. Rows without any value, and
// ticked ones, are left out. So a form needs no script, and the button for one more row only shows the form again.

// maxItems bounds the rows of a list; longer ones are text.
const maxItems = 50

// itemRow is an item of a list as it is shown.
type itemRow struct {
	Label    string
	Controls []control
	Drop     string // the value of the box that removes it; "" for the empty row
}

// Names of controls of rows.
func rowsName(name string) string                  { return "rows:" + name }
func dropName(name string) string                  { return "drop:" + name }
func cellName(name string, n int, p string) string { return fmt.Sprintf("%s#%d.%s", name, n, p) }

// hasRows reports whether a field can be shown as rows: no secret is shown, not even in a list.
func hasRows(f *schema.AppField) bool {
	return !f.Secret && strings.HasPrefix(f.Type, "list of ") && f.Items != nil && len(f.Items.Fields) > 0 &&
		!slices.ContainsFunc(f.Items.Fields, func(one schema.AppField) bool { return one.Secret || hasRows(&one) })
}

// rows shows the list in the text of the control as rows. A list that rows cannot express stays a text.
func (c *control) rows() {
	cells, ok := cellsOf(&c.AppField, c.Value)
	if !ok {
		return
	}
	c.Kind = "rows"
	for n := range len(cells) + 1 {
		r := itemRow{Label: Text("rows.new", c.Label)}
		var values map[string]string
		if n < len(cells) {
			r.Label, r.Drop, values = Text("rows.row", c.Label, n+1), strconv.Itoa(n), cells[n]
		}
		for _, f := range c.Items.Fields {
			cell := controlOf(f, FieldValue{Value: values[f.Path]}, cellName(c.Name, n, f.Path))
			cell.InRow = true
			r.Controls = append(r.Controls, cell)
		}
		c.Rows = append(c.Rows, r)
	}
}

// cellsOf returns the texts of the fields of each item, by path; false for a list that they do not express.
func cellsOf(f *schema.AppField, text string) (cells []map[string]string, ok bool) {
	if text == "" {
		return nil, true
	}
	value, err := f.Parse(text)
	list, isList := value.([]any)
	if err != nil || !isList || len(list) > maxItems {
		return nil, false
	}
	for _, item := range list {
		texts := map[string]string{}
		for _, field := range f.Items.Fields {
			cell := field.Text(valueAt(item, chart.SplitPath(field.Path)))
			if AsSent(cell) != cell {
				return nil, false
			}
			texts[field.Path] = cell
		}
		cells = append(cells, texts)
	}
	return cells, len(list) == 0 || listOf(f, cells) == f.Text(value)
}

// listOf returns the list with these items as a text; "" for none. A text that a field cannot have is refused where the whole list is judged.
func listOf(f *schema.AppField, cells []map[string]string) string {
	var list []any
	for _, texts := range cells {
		item := map[string]any{}
		for _, field := range f.Items.Fields {
			text := texts[field.Path]
			if text == "" {
				continue
			}
			value, err := field.Parse(text)
			if err != nil {
				value = text
			}
			put(item, chart.SplitPath(field.Path), value)
		}
		if len(item) > 0 {
			list = append(list, item)
		}
	}
	if list == nil {
		return ""
	}
	return f.Text(list)
}

// typedRows returns the list that the rows of a form make.
func typedRows(f *schema.AppField, form url.Values, name string) string {
	number, _ := strconv.Atoi(form.Get(rowsName(name))) // an invalid number counts as 0
	var cells []map[string]string
	for n := range min(number, maxItems+1) {
		if slices.Contains(form[dropName(name)], strconv.Itoa(n)) {
			continue
		}
		texts := map[string]string{}
		for _, field := range f.Items.Fields {
			texts[field.Path], _ = Typed(&field, form, cellName(name, n, field.Path))
		}
		cells = append(cells, texts)
	}
	text := listOf(f, cells)
	if before := form.Get(name); text == "" && before == "[]" {
		return before // it was an empty list, and not a missing one
	}
	return text
}

func valueAt(value any, path []string) any {
	for _, key := range path {
		object, is := value.(map[string]any)
		if !is {
			return nil
		}
		value = object[key]
	}
	return value
}

func put(object map[string]any, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		inner, is := object[key].(map[string]any)
		if !is {
			inner = map[string]any{}
			object[key] = inner
		}
		object = inner
	}
	object[path[len(path)-1]] = value
}
