package page

import (
	"slices"
	"strconv"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
)

// part is the shown form of a part of an operation: changes first, the rest folded away.
type part struct {
	ID string
	schema.OperationPart
	Tally       []schema.Tally
	Shown, Same []schema.Change
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
		if len(p.Shown) > 0 || p.Resumes {
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
				if c.Action != action {
					continue
				}
				if action == schema.ActionNone || action == schema.ActionKeep || action == schema.ActionSkip {
					shown.Same = append(shown.Same, c)
				} else {
					shown.Shown = append(shown.Shown, c)
				}
			}
		}
		parts = append(parts, shown)
	}
	return parts
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

func excerpt(f schema.FieldChange) values {
	from, to := f.Excerpt()
	return values{plain(from), plain(to)}
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
