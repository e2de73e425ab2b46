package chart

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/solutionctl/solutionctl/kube/chart/engine"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Bounds of the description of values.
const (
	maxDescribed    = 20_000  // values
	maxDescribedAll = 8 << 20 // bytes of all paths and texts: a schema can refer to one text from each value
	maxValuePath    = 1000    // bytes
	maxDescription  = 2000    // bytes of a text
	maxChoices      = 200     // of one value; more are not listed, and still checked
	choiceSize      = 64      // bytes that a choice counts beside its text
	maxValueDepth   = 64      // tables in each other
	maxAbsentDepth  = 4       // tables in each other that only a schema has: it can be recursive
	maxDescribedRef = 20      // references that lead to each other
	maxPointer      = 1000    // bytes of a reference
)

// Describe lists the values that can be set, by path, those of enabled subcharts as well: with the defaults of the chart below preset, types
// and limits of values.schema.json, and the comments of values.yaml (plain ones, and those in the forms of helm-docs and of Bitnami). A table
// without a schema that is empty, and a list, are one value.
func (c *Chart) Describe(preset map[string]any) ([]schema.AppField, error) {
	enabled, values, err := c.complete(preset)
	if err != nil {
		return nil, report.Errorf(report.Invalid, "values of chart %s: %w", c.Name, err)
	}
	d := &description{comments: map[string]string{}, unset: map[string]bool{}}
	if err = d.chart(enabled, values, ""); err != nil {
		return nil, report.Errorf(report.Invalid, "values of chart %s: %w", c.Name, err)
	}
	for _, f := range d.fields {
		delete(d.unset, f.Path)
	}
	for path := range d.unset {
		if err = d.add(path, nil, valueRules{}); err != nil {
			return nil, report.Errorf(report.Invalid, "values of chart %s: %w", c.Name, err)
		}
	}
	slices.SortStableFunc(d.fields, func(a, b schema.AppField) int { return strings.Compare(a.Path, b.Path) })
	return d.fields, nil
}

// description is a run of [Chart.Describe].
type description struct {
	fields   []schema.AppField
	comments map[string]string // by path; those of a chart go before those of its subcharts
	unset    map[string]bool   // paths of values that are null in a values.yaml
	size     int               // bytes of the fields
}

// chart adds the values of a chart whose values are below prefix.
func (d *description) chart(c *engine.Chart, values map[string]any, prefix string) error {
	d.addComments(c.Defaults, prefix)
	own := maps.Clone(values)
	for _, sub := range c.Subcharts {
		table, _ := own[sub.Name].(map[string]any)
		delete(own, sub.Name)
		if err := d.chart(sub, table, prefix+joinKeys(sub.Name)+"."); err != nil {
			return err
		}
	}
	if prefix != "" {
		delete(own, "global") // the values of the outermost chart
	}
	rules, err := readRules(c.Schema)
	if err != nil {
		return err
	}
	return d.table(own, rules, prefix, 0)
}

// table adds the values of a table, and those that only its schema has. depth is how many tables are around it.
func (d *description) table(values map[string]any, rules valueRules, prefix string, depth int) error {
	names := slices.Collect(maps.Keys(values))
	for name := range rules.properties() {
		if _, present := values[name]; !present {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		at, inner := prefix+joinKeys(name), rules.property(name)
		table, isTable := values[name].(map[string]any)
		next := depth + 1
		if len(table) == 0 {
			next = max(depth, maxValueDepth-maxAbsentDepth) + 1
		}
		if (len(table) > 0 || (isTable || values[name] == nil) && len(inner.properties()) > 0) && next <= maxValueDepth {
			if err := d.table(table, inner, at+".", next); err != nil {
				return err
			}
			continue
		}
		if err := d.add(at, values[name], inner); err != nil {
			return err
		}
	}
	return nil
}

// add describes one more value, within the bounds.
func (d *description) add(path string, value any, rules valueRules) error {
	switch {
	case len(d.fields) == maxDescribed:
		return fmt.Errorf("there are more than %d", maxDescribed)
	case len(path) > maxValuePath:
		return fmt.Errorf("the path %s has more than %d bytes", report.Cut(path, 50), maxValuePath)
	}
	f := d.field(path, value, rules)
	d.size += len(f.Path) + len(f.Title) + len(f.Default) + len(f.Limits) + len(f.Description) + len(f.Details)
	for _, choice := range f.Choices {
		d.size += choiceSize + len(choice)
	}
	if d.size > maxDescribedAll {
		return fmt.Errorf("their descriptions have more than %d MiB", maxDescribedAll>>20)
	}
	d.fields = append(d.fields, f)
	return nil
}

// field describes one value.
func (d *description) field(path string, value any, rules valueRules) schema.AppField {
	f := schema.AppField{
		Path: path, Title: report.Cut(rules.text("title"), maxDescription), Type: rules.typeOf(), Pattern: rules.text("pattern"), Format: rules.text("format"), Required: rules.required,
	}
	f.Type = cmp.Or(f.Type, TypeOfValue(value))
	f.Secret = f.Format == "password" || rules.node["writeOnly"] == true || f.Type != "boolean" && schema.IsSecretPath(path)
	text := d.comments[path]
	if described := rules.text("description"); described != "" {
		text = described
	}
	f.Describe(report.Cut(text, maxDescription))
	rules.limit(&f)
	if choices, _ := rules.node["enum"].([]any); len(choices) <= maxChoices {
		for _, choice := range choices {
			f.Choices = append(f.Choices, f.Text(choice))
		}
	}
	if value == nil {
		value = rules.node["default"]
	}
	if value != nil {
		f.Default = EncodeValue(value)
	}
	f.Required = f.Required && (value == nil || value == "")
	return f
}

// EncodeValue returns a value as JSON.
func EncodeValue(value any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// TypeOfValue returns the type of a value, as [schema.AppField] has it.
func TypeOfValue(value any) string {
	switch value := value.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		if value == math.Trunc(value) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	default:
		return "any"
	}
}

// addComments reads the comments of a values.yaml.
func (d *description) addComments(data []byte, prefix string) {
	var document yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&document); err != nil || len(document.Content) == 0 {
		return // empty: that it can be read was checked when the chart was loaded
	}
	add := func(path, text string) {
		if _, there := d.comments[path]; !there && text != "" {
			d.comments[path] = text
		}
	}
	for line := range strings.Lines(string(data)) {
		if m := parameterComment.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			add(prefix+m[1], m[2])
		}
	}
	var walk func(node *yaml.Node, prefix string, depth int)
	walk = func(node *yaml.Node, prefix string, depth int) {
		if node.Kind != yaml.MappingNode || depth > maxValueDepth {
			return
		}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			at := prefix + joinKeys(key.Value)
			if len(at) > maxValuePath {
				continue // the value is refused
			}
			add(at, commentText(key.HeadComment))
			add(at, commentText(key.LineComment))
			add(at, commentText(value.LineComment))
			if value.ShortTag() == "!!null" && len(d.unset) < maxDescribed {
				d.unset[at] = true
			}
			walk(value, at+".", depth+1)
		}
	}
	walk(document.Content[0], prefix, 0)
}

// parameterComment matches a description in the form of Bitnami: ## @param PATH [TYPE] TEXT.
var parameterComment = lazyregexp.New(`^#+\s*@param\s+(\S+)\s+(?:\[[^\]]*\]\s*)?(.*)$`)

// commentText returns the text of the last paragraph of a comment, without the marks of tools. That of helm-docs begins after "--".
func commentText(comment string) string {
	var lines []string
	for line := range strings.Lines(comment) {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "#"))
		text, marked := strings.CutPrefix(line, "-- ")
		switch {
		case marked:
			lines = []string{text}
		case line == "":
			lines = nil
		case !strings.HasPrefix(line, "@"):
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

// valueRules are a part of a values.schema.json: what it requires of one value.
type valueRules struct {
	document *schemaDocument
	node     map[string]any
	required bool
}

// schemaDocument is a values.schema.json, with what was found in it: many values can refer to one place.
type schemaDocument struct {
	root    any
	targets map[string]map[string]any // by pointer
	needed  map[*any]map[string]bool  // lists of required values, by their start
}

// readRules reads a schema. It was not compiled before, and so it is bounded here.
func readRules(data []byte) (valueRules, error) {
	if len(data) == 0 {
		return valueRules{}, nil
	}
	if len(data) > maxSchemaSize {
		return valueRules{}, fmt.Errorf("values.schema.json has more than %d MiB", maxSchemaSize>>20)
	}
	var document any
	if err := json.Unmarshal(data, &document); err != nil {
		return valueRules{}, fmt.Errorf("values.schema.json: %w", err)
	}
	if err := newSchemaBudget().document(document, "", 0, 0); err != nil {
		return valueRules{}, fmt.Errorf("values.schema.json: %w", err)
	}
	rules := valueRules{document: &schemaDocument{root: document, targets: map[string]map[string]any{}, needed: map[*any]map[string]bool{}}}
	return rules.at(document), nil
}

// at returns the rules in a value of the schema, behind references within it.
func (r valueRules) at(value any) valueRules {
	node, _ := value.(map[string]any)
	for range maxDescribedRef {
		reference, _ := node["$ref"].(string)
		pointer, local := strings.CutPrefix(reference, "#")
		if !local {
			break
		}
		node = r.document.target(pointer)
	}
	return valueRules{document: r.document, node: node}
}

var pointerEscapes = strings.NewReplacer("~1", "/", "~0", "~")

// target returns the table that a pointer leads to, nil for none.
func (d *schemaDocument) target(pointer string) map[string]any {
	table, known := d.targets[pointer]
	if known || len(pointer) > maxPointer {
		return table
	}
	table, _ = d.root.(map[string]any)
	for step := range strings.SplitSeq(pointer, "/") {
		if step != "" {
			table, _ = table[pointerEscapes.Replace(step)].(map[string]any)
		}
	}
	d.targets[pointer] = table
	return table
}

// needs reports whether a list of required values has one.
func (d *schemaDocument) needs(list []any, name string) bool {
	if len(list) == 0 {
		return false
	}
	names, known := d.needed[&list[0]]
	if !known {
		names = map[string]bool{}
		for _, one := range list {
			if text, ok := one.(string); ok {
				names[text] = true
			}
		}
		d.needed[&list[0]] = names
	}
	return names[name]
}

func (r valueRules) properties() map[string]any {
	properties, _ := r.node["properties"].(map[string]any)
	return properties
}

// property returns the rules for a value of a table.
func (r valueRules) property(name string) valueRules {
	inner := r.at(r.properties()[name])
	list, _ := r.node["required"].([]any)
	inner.required = r.document.needs(list, name)
	return inner
}

func (r valueRules) text(key string) string {
	text, _ := r.node[key].(string)
	return text
}

func (r valueRules) number(key string) *float64 {
	if n, ok := r.node[key].(float64); ok {
		return &n
	}
	return nil
}

// size returns a number of characters or items.
func (r valueRules) size(key string) *int64 {
	if n := r.number(key); n != nil && *n >= 0 && *n <= math.MaxInt32 {
		return new(int64(*n))
	}
	return nil
}

// limit adds the limits of a value to its field.
func (r valueRules) limit(f *schema.AppField) {
	f.Min, f.Max = r.number("minimum"), r.number("maximum")
	f.MinLength, f.MaxLength = cmp.Or(r.size("minLength"), r.size("minItems")), cmp.Or(r.size("maxLength"), r.size("maxItems"))
	f.SetLimits()
}

// typeOf returns the type in words, "" where the schema has none.
func (r valueRules) typeOf() string {
	var types []string
	switch t := r.node["type"].(type) {
	case string:
		types = append(types, t)
	case []any:
		for _, one := range t {
			if name, ok := one.(string); ok && name != "null" {
				types = append(types, name)
			}
		}
	}
	text := strings.Join(types, " or ")
	if items := r.at(r.node["items"]); text == "array" && items.text("type") != "" {
		return "list of " + items.text("type")
	}
	return text
}
