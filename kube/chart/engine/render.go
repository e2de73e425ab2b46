package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"text/template"
)

// maxRecursion is how deep an include of itself may be, as Helm lets it.
const maxRecursion = 1000

// Input has the input of a rendering.
type Input struct {
	Values       Values // of the chart after [Chart.Enable], complete
	Release      Release
	Capabilities *Capabilities
	Functions    template.FuncMap // these go before those of the engine
}

// Release is .Release in templates.
type Release struct {
	Name, Namespace string
	Revision        int
	IsUpgrade       bool // else it is installed
}

func (r Release) template() map[string]any {
	return map[string]any{
		"Name": r.Name, "Namespace": r.Namespace, "Revision": r.Revision, "IsUpgrade": r.IsUpgrade, "IsInstall": !r.IsUpgrade, "Service": "Helm",
	}
}

// Render returns the texts of all templates that are not partials, by their names, as "web/charts/db/templates/db.yaml". Errors
// begin with the place in a template; [IsExcess] knows those of templates that take too much. It returns soon after the context ends.
func (c *Chart) Render(ctx context.Context, in Input) (texts map[string]string, err error) {
	defer func() {
		if p := recover(); p != nil {
			texts, err = nil, fmt.Errorf("a template is beyond what can be rendered: %v", p)
		}
	}()
	r := &renderer{budget: newBudget(ctx), left: maxText, includes: map[string]int{}}
	templates := map[string]source{}
	c.collect(c.Name, Values{"Values": in.Values, "Release": in.Release.template(), "Capabilities": in.Capabilities}, templates)
	names := slices.SortedFunc(maps.Keys(templates), innermost)

	functions := r.budget.functions()
	maps.Copy(functions, r.budget.bounded(in.Functions, true))
	r.textual = textual(functions)
	root := template.New("gotpl").Option("missingkey=zero").Funcs(functions).Funcs(r.checks())
	r.bind(root)
	for _, name := range names {
		if _, err := r.parseText(root.New(name), string(templates[name].text)); err != nil {
			return nil, malformed{located(name, err)}
		}
	}
	r.plant(root)
	texts = make(map[string]string, len(names))
	for _, name := range names {
		if strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		scope, base := templates[name].scope, templates[name].base
		scope["Template"] = Values{"Name": name, "BasePath": base}
		text, err := r.execute(root, name, scope)
		if err != nil {
			return nil, located(name, err)
		}
		texts[name] = withoutNoValue(text)
	}
	return texts, nil
}

// source is a template and its data.
type source struct {
	text  []byte
	scope map[string]any
	base  string // the directory templates/ of its chart
}

// collect finds the templates of a chart and of its subcharts, and returns the data for those of the chart.
func (c *Chart) collect(place string, outer Values, templates map[string]source) map[string]any {
	subcharts := map[string]any{}
	root := place == c.Name
	scope := map[string]any{
		"Chart": c.template(root), "Files": newFiles(c.others), "Release": outer["Release"], "Capabilities": outer["Capabilities"],
		"Values": Values{}, "Subcharts": subcharts,
	}
	if root {
		scope["Values"] = outer["Values"]
	} else if own, err := outer.Table("Values." + c.Name); err == nil {
		scope["Values"] = own
	}
	for _, sub := range c.Subcharts {
		subcharts[sub.Name] = sub.collect(sub.below(place), scope, templates)
	}
	for _, t := range c.templates {
		if c.Type == "library" && !strings.HasPrefix(path.Base(t.Name), "_") {
			continue // a library has nothing to show
		}
		templates[path.Join(place, t.Name)] = source{t.Data, scope, path.Join(place, "templates")}
	}
	return scope
}

// innermost orders templates so that those of subcharts come first, and definitions of a chart override those of its
// subcharts.
func innermost(a, b string) int {
	return cmp.Or(cmp.Compare(strings.Count(b, "/"), strings.Count(a, "/")), strings.Compare(b, a))
}

// renderer is a rendering under way.
type renderer struct {
	budget   *budget
	left     int             // bytes of text
	includes map[string]int  // how many includes of a template are under way
	calls    int             // of templates
	tokens   int             // of the texts that are parsed
	textual  map[string]bool // functions that return texts
}

// textual are the functions whose results are printed as they are.
func textual(functions template.FuncMap) map[string]bool {
	names := map[string]bool{"include": true, "tpl": true}
	for name, function := range functions {
		if reflect.TypeOf(function).Out(0).Kind() == reflect.String {
			names[name] = true
		}
	}
	return names
}

// bind gives templates the functions that see the other templates.
func (r *renderer) bind(t *template.Template) {
	t.Funcs(template.FuncMap{
		"include": func(name string, data any) (string, error) { return r.include(t, name, data) },
		"tpl":     func(text string, data any) (string, error) { return r.evaluate(t, text, data) },
	})
}

func (r *renderer) include(t *template.Template, name string, data any) (string, error) {
	if r.includes[name] > maxRecursion {
		return "", excess(fmt.Sprintf("%s includes itself more than %d times", name, maxRecursion))
	}
	r.includes[name]++
	defer func() { r.includes[name]-- }()
	return r.inner(t, name, data)
}

// The memory of a copy of all templates: tables of the functions, and of the templates.
const (
	cloneSize    = 40 << 10
	templateSize = 150
)

// evaluate renders a text as a template. Only the text itself sees its definitions.
func (r *renderer) evaluate(t *template.Template, text string, data any) (string, error) {
	if !strings.Contains(text, "{{") { // most are values like others
		return withoutNoValue(text), nil
	}
	size := cloneSize + int64(len(t.Templates()))*templateSize
	if err := r.budget.spend(4 * size); err != nil {
		return "", err
	}
	release, err := r.budget.reserve(size)
	if err != nil {
		return "", err
	}
	defer release()
	if t, err = t.Clone(); err != nil {
		return "", err
	}
	r.bind(t)
	count, err := r.parseText(t.New(t.Name()), text)
	defer func() { r.tokens -= count }()
	if err != nil {
		return "", err
	}
	r.plant(t)
	result, err := r.inner(t, t.Name(), data)
	return withoutNoValue(result), err
}

// inner executes a template whose text goes to another, where it counts.
func (r *renderer) inner(t *template.Template, name string, data any) (string, error) {
	text, err := r.execute(t, name, data)
	r.left += len(text)
	if err != nil {
		return "", err
	}
	return text, r.budget.keepText(text)
}

func (r *renderer) execute(t *template.Template, name string, data any) (string, error) {
	out := output{left: &r.left, budget: r.budget}
	err := t.ExecuteTemplate(&out, name, data)
	return out.text.String(), err
}

// malformed is the error of a template that cannot be parsed.
type malformed struct{ error }

func (m malformed) Unwrap() error { return m.error }

// IsMalformed reports whether a rendering failed because a template cannot be parsed, whatever the values are.
func IsMalformed(err error) bool {
	_, ok := errors.AsType[malformed](err)
	return ok
}

// withoutNoValue removes the text that text/template prints for missing values.
func withoutNoValue(text string) string { return strings.ReplaceAll(text, "<no value>", "") }

// output is a text that uses up the budget.
type output struct {
	text   strings.Builder
	left   *int
	budget *budget
}

func (o *output) Write(p []byte) (int, error) {
	if *o.left -= len(p); *o.left < 0 {
		return 0, excess(fmt.Sprintf("the result is larger than %d MiB", maxText>>20))
	}
	if err := o.budget.spend(callCost / 2); err != nil {
		return 0, err
	}
	return o.text.Write(p)
}

// located adds to an error the place where a template failed. A refusal, of the chart or of the budget, has only the
// outermost place; one about the written text has only the template.
func located(name string, err error) error {
	text := shortened(strings.TrimPrefix(err.Error(), "template: "))
	cause, ok := refused(err)
	if !ok {
		return errors.New(strings.ReplaceAll(text, ": template: ", ": "))
	}
	place, _, _ := strings.Cut(text, ": ")
	if text == shortened(cause.Error()) {
		place = name
	}
	return fmt.Errorf("%s: %w", place, cause)
}

// refused returns the refusal without the places of its calls.
func refused(err error) (cause error, ok bool) {
	if r, is := errors.AsType[refusal](err); is {
		return refusal(shortened(string(r))), true
	}
	e, ok := errors.AsType[excess](err)
	return e, ok
}

// maxMessage bounds the message of a chart, in bytes.
const maxMessage = 16 << 10

func shortened(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + " …"
}
