package page

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// FieldValue is the input in a field of a form.
type FieldValue struct {
	Value string // "" for a secret
	// Kept is true for a secret that is set, or was typed: an empty field keeps it.
	Kept bool
	// Changed is true for a value that was typed, or dropped, and is not deployed yet.
	Changed bool
	// Problem is the error about the value, one sentence.
	Problem string
}

// SpecName is the name of the control of a field of an instance.
func SpecName(path string) string { return "spec." + path }

// ValueName is the name of the control of a value of a chart.
func ValueName(component, path string) string { return "value:" + component + ":" + path }

// ValuesReset is the name of the boxes that drop a secret which the site has set. Their values are names of controls.
const ValuesReset = "reset"

// unitOf is the name of the control with the unit of a quantity.
func unitOf(name string) string { return "unit:" + name }

// Typed returns what a form has for a field, and whether the form has the field. Spaces around it are removed, except from secrets.
func Typed(f *schema.AppField, form url.Values, name string) (text string, sent bool) {
	if form.Has(rowsName(name)) && hasRows(f) {
		return typedRows(f, form, name), true
	}
	text = strings.ReplaceAll(form.Get(name), "\r\n", "\n")
	if !f.Secret {
		text = strings.TrimSpace(text)
	}
	if plainNumber.MatchString(text) {
		text += form.Get(unitOf(name))
	}
	return text, form.Has(name)
}

// AsSent returns what [Typed] returns for a field that shows this text and was not changed by the user.
func AsSent(text string) string { return strings.TrimSpace(visible(text)) }

// Emptied reports whether a user has emptied a field that shows this text: one of spaces only. Browsers send line breaks of some controls as nothing.
func Emptied(form url.Values, name, text string) bool {
	return form.Has(name) && form.Get(name) == "" && strings.Trim(visible(text), "\n") != ""
}

// visible returns a text as a control shows it: invisible characters are escapes, and line breaks those of [Typed].
func visible(text string) string { return report.Clean(strings.ReplaceAll(text, "\r\n", "\n")) }

// control is a field as it is shown.
type control struct {
	schema.AppField
	FieldValue
	ID, Name string
	Label    string
	Place    string // the path; "" where it is the label
	Preset   string // the default as a user types it; "" for none, and for a secret
	// Kind is select, number, text, area, quantity or rows.
	Kind    string
	Choices []Choice
	Units   []Choice  // of a quantity
	Locked  bool      // it is shown, and cannot be changed
	Reset   bool      // a secret can be dropped
	Lines   bool      // one item per line
	Rows    []itemRow // of a list of objects
	InRow   bool      // of such a list: an empty row has no value, not even a required one
	More    Hidden    // the button for one more row
}

// Controls are the controls of all fields, required ones first.
func (c *AppEdit) Controls() []control {
	var all []control
	for i, f := range c.Form.Fields {
		var v FieldValue
		if i < len(c.Values) {
			v = c.Values[i]
		}
		shown := controlOf(f, v, SpecName(f.Path))
		shown.More = Hidden{Name: "show", Value: "rows"}
		all = append(all, shown)
	}
	return all
}

// Basic are the controls that most people need: those without a default, and those that were filled in.
func (c *AppEdit) Basic() []control { return c.pick(true) }

// Advanced are the others.
func (c *AppEdit) Advanced() []control { return c.pick(false) }

func (c *AppEdit) pick(basic bool) []control {
	var some []control
	for _, f := range c.Controls() {
		if (f.Required || f.Value != "" || f.Kept || f.Problem != "" || len(c.Form.Fields) <= 8) == basic {
			some = append(some, f)
		}
	}
	return some
}

func controlOf(f schema.AppField, v FieldValue, name string) control {
	v.Value = visible(v.Value)
	c := control{AppField: f, FieldValue: v, Name: name, ID: ident(name), Label: labelOf(&f), Kind: "text", Lines: f.HasLines()}
	if !strings.EqualFold(c.Label, f.Path) {
		c.Place = f.Path
	}
	var preset any
	if !f.Secret && json.Unmarshal([]byte(f.Default), &preset) == nil {
		c.Preset = report.Cut(f.Text(preset), maxPreset)
	}
	choices := f.Choices
	if f.Type == "boolean" {
		choices = []string{"true", "false"}
	}
	scalar := f.Type == "string" || f.Type == "integer or string" || f.Type == "any" && !strings.ContainsAny(v.Value, "\n[{")
	switch {
	case hasRows(&f):
		c.Kind = "area"
		c.rows()
	case len(choices) > 0:
		c.Kind, c.Choices = "select", c.choose(choices)
	case f.Type == "integer" || f.Type == "number":
		c.Kind = "number"
	case !scalar || strings.Contains(v.Value, "\n") || strings.Contains(c.Preset, "\n") || privateKey.MatchString(f.Path): // browsers take line breaks out of an input
		c.Kind = "area"
	case !f.Secret && scalar:
		c.measure()
	}
	return c
}

// privateKey matches the path of a key in PEM, which has lines.
var privateKey = lazyregexp.New(`(?i)private[-_]?key$`)

// maxPreset bounds a default that is shown, in bytes.
const maxPreset = 300

// choose returns choices of which the first keeps the default.
func (c *control) choose(choices []string) []Choice {
	first := Choice{Label: Text("appedit.choose"), Selected: c.Value == ""}
	if c.Preset != "" {
		first.Label = Text("appedit.default", c.Preset)
	}
	list := []Choice{first}
	if c.Value != "" && !slices.Contains(choices, c.Value) { // it is refused, but must not become another one
		choices = append([]string{c.Value}, choices...)
	}
	for _, choice := range choices {
		list = append(list, Choice{Value: choice, Label: choice, Selected: choice == c.Value})
	}
	return list
}

var (
	plainNumber = lazyregexp.New(`^[0-9]+(\.[0-9]+)?$`)
	sizePattern = lazyregexp.New(`^([0-9]+(?:\.[0-9]+)?)(Ki|Mi|Gi|Ti|Pi)$`)
	sizeUnits   = []string{"Mi", "Gi", "Ti"}
	cpuPattern  = lazyregexp.New(`^([0-9]+(?:\.[0-9]+)?)(m?)$`)
	cpuUnits    = []string{"", "m"}
)

// measure makes a text that is a quantity a number with a unit: a size in bytes by the default, or by a pattern that takes sizes and no other
// texts; processors by the name of the field.
func (c *control) measure() {
	keys := chart.SplitPath(c.Path)
	switch pattern, err := regexp.Compile(c.Pattern); {
	case err != nil:
	case strings.EqualFold(keys[len(keys)-1], "cpu"):
		c.split(cpuPattern, slices.DeleteFunc(slices.Clone(cpuUnits), func(unit string) bool { return !pattern.MatchString("1" + unit) }))
	case sizePattern.MatchString(c.Preset):
		c.split(sizePattern, sizeUnits)
	case c.Pattern != "" && !pattern.MatchString("zz") && !pattern.MatchString("1"):
		c.split(sizePattern, slices.DeleteFunc(slices.Clone(sizeUnits), func(unit string) bool { return !pattern.MatchString("1" + unit) }))
	}
}

// split makes the control a number with one of these units. A value or a default that is not one keeps it a text.
func (c *control) split(pattern *lazyregexp.Regexp, units []string) {
	shown := c.Value
	if shown == "" {
		shown = c.Preset
	}
	parts := pattern.FindStringSubmatch(shown)
	if shown != "" && parts == nil || len(units) == 0 {
		return
	}
	selected := units[0]
	if parts != nil {
		selected = parts[2]
	}
	if !slices.Contains(units, selected) {
		units = append([]string{selected}, units...)
	}
	if c.Kind = "quantity"; c.Value != "" {
		c.Value = parts[1]
	}
	for _, one := range units {
		c.Units = append(c.Units, Choice{Value: one, Label: unitLabel(pattern, one), Selected: one == selected})
	}
}

// unitLabel returns a unit as people read it.
func unitLabel(pattern *lazyregexp.Regexp, unit string) string {
	switch {
	case pattern != cpuPattern:
		return unit
	case unit == "":
		return Text("unit.cpu")
	default:
		return Text("unit.millicpu")
	}
}

// labelOf returns the title of a field, or the last name in its path in words: "adminPassword" is "Admin password".
func labelOf(f *schema.AppField) string {
	if f.Title != "" {
		return f.Title
	}
	keys := chart.SplitPath(f.Path)
	return inWords(keys[len(keys)-1])
}

// abbreviations are written in capitals wherever they are a word of a name.
var abbreviations = lazyregexp.New(`(?i)\b(tls|url|id|api|cpu|dns|http|https|ip|tcp|udp|ui|sso|ldap|oidc|ca)\b`)

// inWords returns a name of a program as words: those of known abbreviations in capitals. Other abbreviations and the names of other
// programs stay as they are.
func inWords(name string) string {
	return report.Capitalized(abbreviations.ReplaceAllStringFunc(split(name), strings.ToUpper))
}

// split returns the words of a name.
func split(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		upper := unicode.IsUpper(r)
		begins := i > 0 && upper && (unicode.IsLower(runes[i-1]) || unicode.IsDigit(runes[i-1]) || unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		switch {
		case r == '-' || r == '_':
			b.WriteRune(' ')
		case begins && (i+1 == len(runes) || !unicode.IsUpper(runes[i+1])):
			b.WriteRune(' ')
			b.WriteRune(unicode.ToLower(r))
		case begins:
			b.WriteRune(' ')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Sentence returns an error about a value as a sentence beside its field.
func Sentence(message string) string {
	message = report.Capitalized(strings.TrimSpace(message))
	if message == "" || strings.ContainsRune(".!?", rune(message[len(message)-1])) {
		return message
	}
	return message + "."
}
