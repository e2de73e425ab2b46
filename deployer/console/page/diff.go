package page

import (
	"slices"
	"strconv"
	"strings"

	"github.com/solutionctl/solutionctl/kube/powers"
	"github.com/solutionctl/solutionctl/schema"
)

// part is the shown form of a part of an operation: changes first, the rest folded away.
type part struct {
	ID string
	schema.OperationPart
	Tally  []schema.Tally
	Shown  []schema.Change
	Labels []schema.Change // objects that get other labels only
	Same   []schema.Change
}

// IsGrave reports whether objects are deleted by it.
func (p part) IsGrave() bool { return p.Count(schema.ActionDelete, schema.ActionReplace) > 0 }

// maxParts is the number of parts up to which each is shown with all its changes.
const maxParts = 8

// digested is an operation of many parts: a summary, and each part to open.
type digested struct {
	Tally   []schema.Tally
	Changed []part
	Same    []part // nothing of them changes
}

// digestOf returns nil for an operation that can be shown as it is.
func digestOf(o *schema.Operation) *digested {
	if len(o.Parts) <= maxParts {
		return nil
	}
	d, all := &digested{}, &schema.OperationPart{}
	for _, p := range partsOf(o) {
		all.Changes = append(all.Changes, p.Changes...)
		if len(p.Shown)+len(p.Labels) > 0 || p.Resumes {
			d.Changed = append(d.Changed, p)
		} else {
			d.Same = append(d.Same, p)
		}
	}
	d.Tally = o.Tally(all)
	return d
}

// graveness is the order of changes: losses first.
var graveness = []schema.Action{
	schema.ActionDelete, schema.ActionReplace, schema.ActionUpdate, schema.ActionAdopt, schema.ActionCreate,
	schema.ActionKeep, schema.ActionSkip, schema.ActionNone,
}

func partsOf(o *schema.Operation) []part {
	var parts []part
	for i, p := range o.Parts {
		shown := part{ID: "part-" + strconv.Itoa(i+1), OperationPart: p, Tally: o.Tally(&p)}
		for _, action := range graveness {
			for _, c := range p.Changes {
				switch {
				case c.Action != action:
				case action == schema.ActionNone, action == schema.ActionKeep, action == schema.ActionSkip:
					shown.Same = append(shown.Same, c)
				case o.Operation != "diff" && c.OnlyLabels():
					shown.Labels = append(shown.Labels, c)
				default:
					shown.Shown = append(shown.Shown, c)
				}
			}
		}
		parts = append(parts, shown)
	}
	return parts
}

// listedPowers describes what the objects of an operation can do to the cluster, a line for each.
type listedPowers struct{ Unapproved, Approved []string }

// powersOf returns nil for an operation without powers.
func powersOf(o *schema.Operation) *listedPowers {
	if len(o.Powers) == 0 {
		return nil
	}
	var approved []schema.Power
	for _, p := range o.Powers {
		if p.Approved {
			approved = append(approved, p.Power)
		}
	}
	return &listedPowers{powers.Summarize(o.Unapproved()), powers.Summarize(approved)}
}

// segments of the path of a field, each with the dot that follows it: spec., template., containers[name=web]., image
func segments(path string) []string {
	var found []string
	start, inside := 0, false
	for i := range len(path) {
		switch path[i] {
		case '[':
			inside = true
		case ']':
			inside = false
		case '.':
			if !inside {
				found = append(found, path[start:i+1])
				start = i + 1
			}
		}
	}
	return append(found, path[start:])
}

func parents(path string) []string { s := segments(path); return s[:len(s)-1] }
func leaf(path string) string      { s := segments(path); return s[len(s)-1] }

// values are the old and the new value of a changed field, shortened for display.
type values struct{ From, To string }

// fieldRow is a changed field with its values.
type fieldRow struct {
	schema.FieldChange
	Values values
}

// brief has the changed fields of an object for a reader: without routine, and with descriptions of certificates and records. Raw has them
// as they are, nil where that is the same.
type brief struct {
	Rows, Raw []fieldRow
	More      int // that are not among the rows
}

// maxRows is how many fields of an object are shown without Raw.
const maxRows = 60

// briefOf returns nil for a change without fields.
func briefOf(c schema.Change) *brief {
	if len(c.Fields) == 0 {
		return nil
	}
	b := &brief{}
	for _, f := range c.Fields {
		b.Raw = append(b.Raw, rowOf(f, schema.FieldChange.Excerpt))
	}
	for _, f := range c.Brief() {
		b.Rows = append(b.Rows, rowOf(f, schema.FieldChange.Brief))
	}
	if slices.EqualFunc(b.Raw, b.Rows, func(x, y fieldRow) bool { return x.Path == y.Path && x.Values == y.Values }) {
		b.Raw = nil
	} else if b.More = len(b.Rows) - maxRows; b.More > 0 {
		b.Rows = b.Rows[:maxRows]
	}
	b.More = max(b.More, 0)
	return b
}

func rowOf(f schema.FieldChange, shorten func(schema.FieldChange) (from, to string)) fieldRow {
	from, to := shorten(f)
	return fieldRow{f, values{plain(from), plain(to)}}
}

// plain is a JSON string without its quotes where they carry no meaning: 5 and "5" are different values, shop and
// "shop" are not.
func plain(value string) string {
	text, err := strconv.Unquote(value)
	if err != nil || text == "" || strings.TrimSpace(text) != text || strings.ContainsAny(text, "\"\\\n\t") {
		return value
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil || slices.Contains([]string{"true", "false", "null"}, text) {
		return value
	}
	return text
}
