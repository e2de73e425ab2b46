// Package form has the fields of a custom resource, from the schema of its CRD, so that users can fill them in without
// knowing Kubernetes.
//
// [New] reads one version of a CRD. [Form.Fields] lists the fields, with type, default, choices and limits; [Form.Set]
// puts a value into a spec, parsed by the type in the schema; [Form.Check] validates the result with the code that the
// API server runs. The package makes no requests.
package form

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/solutionctl/solutionctl/kube/crd"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// maxDepth bounds the depth of listed fields; deeper values are filled in as a whole.
const maxDepth = 8

// Form is the spec of a custom resource in one version.
type Form struct {
	Kind, Version string

	spec    *apiextensionsv1.JSONSchemaProps
	checker *crd.Checker
}

// New returns the form of one version of a definition.
func New(d *crd.Definition, version string) (*Form, error) {
	checker, err := crd.NewChecker(d)
	if err != nil {
		return nil, err
	}
	f := &Form{Kind: d.Spec.Names.Kind, Version: version, checker: checker, spec: &apiextensionsv1.JSONSchemaProps{}}
	for _, v := range d.Spec.Versions {
		if v.Name == version && v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			if spec, ok := v.Schema.OpenAPIV3Schema.Properties["spec"]; ok {
				f.spec = &spec
			}
			return f, nil
		}
	}
	return nil, report.Errorf(report.NotFound, "%s has no version %s", d.Name, version)
}

// Fields lists the fields to fill in: required ones first, then by name. Lists and maps are one field.
func (f *Form) Fields() []schema.AppField {
	fields := list(f.spec, "", 0)
	slices.SortStableFunc(fields, func(a, b schema.AppField) int {
		if a.Required != b.Required {
			if a.Required {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Path, b.Path)
	})
	return fields
}

func list(s *apiextensionsv1.JSONSchemaProps, prefix string, depth int) []schema.AppField {
	var fields []schema.AppField
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		path := prefix + strings.ReplaceAll(name, ".", `\.`)
		required := slices.Contains(s.Required, name)
		if len(property.Properties) > 0 && depth < maxDepth {
			inner := list(&property, path+".", depth+1)
			for i := range inner {
				inner[i].Required = inner[i].Required && required
			}
			fields = append(fields, inner...)
			continue
		}
		fields = append(fields, field(path, &property, required))
	}
	return fields
}

func field(path string, s *apiextensionsv1.JSONSchemaProps, required bool) schema.AppField {
	f := schema.AppField{
		Path: path, Title: s.Title, Type: typeOf(s),
		MinLength: cmp.Or(s.MinLength, s.MinItems), MaxLength: cmp.Or(s.MaxLength, s.MaxItems), Pattern: s.Pattern, Format: s.Format,
		Secret: isSecret(path, s),
	}
	f.Describe(s.Description)
	f.Min, f.Max = bound(s, s.Minimum, s.ExclusiveMinimum, 1), bound(s, s.Maximum, s.ExclusiveMaximum, -1)
	f.SetLimits()
	if inner := itemOf(s); inner != nil {
		item := field("", inner, false)
		if len(inner.Properties) > 0 {
			item.Fields = list(inner, "", 0)
		}
		f.Items = &item
		f.Secret = f.Secret || item.Secret || slices.ContainsFunc(item.Fields, func(one schema.AppField) bool { return one.Secret })
	}
	if s.Default != nil {
		f.Default = string(s.Default.Raw)
	}
	f.Required = required && f.Default == ""
	for _, choice := range s.Enum {
		f.Choices = append(f.Choices, plain(choice.Raw))
	}
	return f
}

// bound is a limit that is included: of whole numbers, that is the next one.
func bound(s *apiextensionsv1.JSONSchemaProps, limit *float64, excluded bool, next float64) *float64 {
	if limit == nil || !excluded || s.Type != "integer" {
		return limit
	}
	included := *limit + next
	return &included
}

// itemOf is the schema of the items of a list or the values of a map, nil for anything else.
func itemOf(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	switch {
	case s.Type == "array" && s.Items != nil:
		return s.Items.Schema
	case s.Type == "object" && s.AdditionalProperties != nil:
		return s.AdditionalProperties.Schema
	default:
		return nil
	}
}

// plain is a JSON value as a person types it.
func plain(raw []byte) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

func typeOf(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.XIntOrString:
		return "integer or string"
	case s.Type == "array" && s.Items != nil && s.Items.Schema != nil:
		return "list of " + typeOf(s.Items.Schema)
	case s.Type == "object" && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(s.AdditionalProperties.Schema)
	case s.Type == "":
		return "any"
	default:
		return s.Type
	}
}

// Set puts a value into a spec: "storage.size=10Gi", also "spec.storage.size=10Gi". A path with a trailing minus sign
// removes the value: "storage.size-", "ports[0]-". Lists and maps are YAML or JSON; "ports[0].name=web" sets a field of an item.
func (f *Form) Set(spec map[string]any, assignment string) error {
	if path, unset := removal(assignment); unset {
		setting, _, err := f.place(path + "=")
		if err == nil {
			remove(spec, setting.Path)
		}
		return err
	}
	setting, s, err := f.place(assignment)
	if err != nil {
		return err
	}
	value, err := read(setting.Path, s, setting.Value)
	if err != nil {
		return report.Errorf(report.Usage, "%s: %w", strings.Join(setting.Path, "."), err)
	}
	return f.put(spec, setting.Path, value)
}

// SetAll is [Form.Set] for the assignments of a command. Indices count the items before the command: items are removed last, the highest ones first.
func (f *Form) SetAll(spec map[string]any, assignments []string) error {
	var items [][]string // paths of items to remove
	for _, assignment := range assignments {
		if path, unset := removal(assignment); unset {
			setting, _, err := f.place(path + "=")
			if err != nil {
				return err
			}
			if _, isItem := valueAt(spec, setting.Path[:len(setting.Path)-1]).([]any); isItem {
				items = append(items, setting.Path)
				continue
			}
		}
		if err := f.Set(spec, assignment); err != nil {
			return err
		}
	}
	slices.SortFunc(items, func(a, b []string) int { return slices.CompareFunc(b, a, compareSteps) })
	for _, path := range slices.CompactFunc(items, slices.Equal) {
		remove(spec, path)
	}
	return nil
}

// valueAt returns the value at a path in another one; nil when there is none.
func valueAt(value any, path []string) any {
	for _, step := range path {
		switch around := value.(type) {
		case map[string]any:
			value = around[step]
		case []any:
			at, err := strconv.Atoi(step)
			if err != nil || at < 0 || at >= len(around) {
				return nil
			}
			value = around[at]
		default:
			return nil
		}
	}
	return value
}

// removal returns the path of an assignment that removes a value.
func removal(assignment string) (path string, ok bool) {
	path, ok = strings.CutSuffix(assignment, "-")
	return path, ok && !strings.Contains(assignment, "=")
}

// isIndex reports whether a step of a path can be the index of an item.
func isIndex(step string) bool {
	_, err := strconv.ParseUint(step, 10, 16)
	return err == nil
}

// compareSteps compares keys, and indices as numbers.
func compareSteps(a, b string) int {
	if isIndex(a) && isIndex(b) {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	}
	return cmp.Compare(a, b)
}

// Put puts a value into a spec by the path of its field, as [Form.Fields] has it; nil removes the value. A text, such
// as the input of a form, is parsed by the type in the schema.
func (f *Form) Put(spec map[string]any, path string, value any) error {
	setting, s, err := f.place(path + "=")
	if err != nil {
		return err
	}
	if value == nil {
		remove(spec, setting.Path)
		return nil
	}
	if text, ok := value.(string); ok {
		value, err = read(setting.Path, s, text)
	} else {
		value, err = plainValue(value)
	}
	if err != nil {
		return report.Errorf(report.Usage, "%s: %w", strings.Join(setting.Path, "."), err)
	}
	return f.put(spec, setting.Path, value)
}

// plainValue is a value as objects of a cluster have it, whatever its Go types are.
func plainValue(value any) (any, error) {
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, &value)
	}
	return integers(value), err
}

// place finds the schema of the field that an assignment names.
func (f *Form) place(assignment string) (schema.Setting, *apiextensionsv1.JSONSchemaProps, error) {
	setting, err := schema.ParseSetting("--set", strings.TrimPrefix(assignment, "spec."))
	if err != nil {
		return setting, nil, err
	}
	s := f.spec
	for _, step := range setting.Path {
		next := inside(s, step)
		if next == nil {
			return setting, nil, f.unknown(setting.Path)
		}
		s = next
	}
	return setting, s, nil
}

// inside returns the schema of a property, an item or a value, nil when there is none.
func inside(s *apiextensionsv1.JSONSchemaProps, step string) *apiextensionsv1.JSONSchemaProps {
	if property, ok := s.Properties[step]; ok {
		return &property
	}
	if isIndex(step) && s.Items != nil {
		return s.Items.Schema
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		return s.AdditionalProperties.Schema
	}
	if s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields {
		return &apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: s.XPreserveUnknownFields}
	}
	return nil
}

func (f *Form) unknown(path []string) error {
	name := strings.Join(path, ".")
	var names []string
	best := ""
	for _, field := range f.Fields() {
		names = append(names, field.Path)
		if report.EditDistance(name, field.Path) <= 2 {
			best = field.Path
		}
	}
	e := report.Errorf(report.Usage, "a %s has no field %s", f.Kind, name)
	if best != "" {
		return e.WithHint("did you mean %s?", best)
	}
	return e.WithHint("it has %s", strings.Join(names, ", "))
}

// read reads a value by the type that is wanted.
func read(path []string, s *apiextensionsv1.JSONSchemaProps, text string) (any, error) {
	f := schema.AppField{Type: typeOf(s), Secret: isSecret(strings.Join(path, "."), s)}
	value, err := f.Parse(text)
	return integers(value), err
}

func isSecret(path string, s *apiextensionsv1.JSONSchemaProps) bool {
	return s.Format == "password" || s.Type != "boolean" && schema.IsSecretPath(path)
}

// integers turns whole numbers into integers, as objects of a cluster have them.
func integers(value any) any {
	switch value := value.(type) {
	case float64:
		if n := int64(value); float64(n) == value {
			return n
		}
	case []any:
		for i := range value {
			value[i] = integers(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = integers(value[key])
		}
	}
	return value
}

// put puts a value into a spec, and makes the objects and lists on the way to it.
func (f *Form) put(spec map[string]any, path []string, value any) error {
	_, err := putInto(f.spec, spec, path, 0, value)
	return err
}

// putInto puts a value into one of this schema, at what follows a number of steps of the path, and returns the changed one.
func putInto(s *apiextensionsv1.JSONSchemaProps, into any, path []string, done int, value any) (any, error) {
	if done == len(path) {
		return value, nil
	}
	step := path[done]
	if into == nil {
		into = map[string]any{}
		if s.Type == "array" || s.Type == "" && isIndex(step) { // without a type, the key is all that is known
			into = []any{}
		}
	}
	next := orAny(inside(s, step))
	switch into := into.(type) {
	case map[string]any:
		changed, err := putInto(next, into[step], path, done+1, value)
		if err == nil {
			into[step] = changed
		}
		return into, err
	case []any:
		at, err := strconv.Atoi(step)
		if err != nil || at < 0 || at > len(into) {
			return nil, report.Errorf(report.Usage, "%s is not an index of a list with %d items; the highest one, which appends, is %d", step, len(into), len(into))
		}
		var item any
		if at < len(into) {
			item = into[at]
		}
		changed, err := putInto(next, item, path, done+1, value)
		return slices.Concat(into[:at], []any{changed}, into[min(at+1, len(into)):]), err
	default:
		return nil, report.Errorf(report.Usage, "%s is a value and has no field %s", strings.Join(path[:done], "."), step)
	}
}

// remove takes a field or an item away, and returns the rest. One that is not there is no error.
func remove(from any, path []string) any {
	switch from := from.(type) {
	case map[string]any:
		if len(path) == 1 {
			delete(from, path[0])
		} else if next, ok := from[path[0]]; ok {
			from[path[0]] = remove(next, path[1:])
		}
	case []any:
		at, err := strconv.Atoi(path[0])
		switch {
		case err != nil || at < 0 || at >= len(from):
		case len(path) == 1:
			return slices.Delete(from, at, at+1)
		default:
			from[at] = remove(from[at], path[1:])
		}
	}
	return from
}

// Check validates a change of a custom resource as the API server will: unknown fields, and invalid values. Faults that
// the object before, nil for a new one, had as well are ignored, and so are rules that compare with it (CEL transition
// rules).
func (f *Form) Check(ctx context.Context, before, object map[string]any) error {
	problems, err := f.problems(ctx, object, "")
	if err != nil || len(problems) == 0 {
		return err
	}
	var old []string
	if before != nil {
		if old, err = f.problems(ctx, before, ""); err != nil {
			return err
		}
	}
	problems = slices.DeleteFunc(problems, func(problem string) bool { return slices.Contains(old, problem) })
	if len(problems) == 0 {
		return nil
	}
	return report.Errorf(report.Invalid, "%s is not accepted:\n  %s", f.Kind, strings.Join(problems, "\n  "))
}

// Try judges the value that an assignment gives to a field, while others are still unknown.
func (f *Form) Try(ctx context.Context, assignment string) error {
	setting, _, err := f.place(assignment)
	if err != nil {
		return err
	}
	spec := map[string]any{}
	if err = f.Set(spec, assignment); err != nil {
		return err
	}
	problems, err := f.problems(ctx, map[string]any{"spec": spec}, "spec."+strings.Join(setting.Path, "."))
	if err != nil || len(problems) == 0 {
		return err
	}
	return f.HideSecrets(report.Errorf(report.Invalid, "%s", strings.Join(problems, "\n")), spec)
}

// problems validates the value at a path and returns its errors; the empty path is the whole object.
func (f *Form) problems(ctx context.Context, object map[string]any, path string) ([]string, error) {
	invalid, lost, err := f.checker.Check(ctx, f.Version, object)
	if err != nil {
		return nil, err
	}
	concerned := func(place string) bool {
		rest, found := strings.CutPrefix(place, path)
		return found && (path == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
	}
	var problems []string
	for _, field := range lost {
		if concerned(field.Path) {
			problems = append(problems, field.Path+": unknown field")
		}
	}
	for _, problem := range invalid {
		if concerned(problem.Path) {
			problems = append(problems, problem.String())
		}
	}
	return problems, nil
}
