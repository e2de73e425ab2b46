package console

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// maxStored bounds a value in a message, in bytes.
const maxStored = 200

// newApp asks for the values of an instance that is to be made.
func (c *Console) newApp(v *web.Visit) (*web.Answer, error) {
	o := instance(v)
	o.Kind = v.FormValue("kind")
	return (&appForm{Console: c, v: v, o: o}).open()
}

// editApp asks for the values of an instance.
func (c *Console) editApp(v *web.Visit) (*web.Answer, error) {
	o := instance(v)
	one, err := v.Deployer(nil).Apps.Get(v.Context(), o)
	if err != nil {
		return nil, err
	}
	return (&appForm{Console: c, v: v, o: o, exists: one}).open()
}

// appForm is the form of an instance. The request has the values filled in so far.
type appForm struct {
	*Console
	v      *web.Visit
	o      apps.Options
	exists *schema.App // nil: a new one

	kind   *apps.Kind
	fields []schema.AppField
	draft  string // the name of the secrets that were typed
	lost   bool   // they are not kept any more
}

// read reads the fields of the form, and adds the secrets that were typed before to those of the request: pages never have them. A field whose
// value has a secret somewhere is one, too.
func (f *appForm) read() (err error) {
	f.kind, err = f.v.Deployer(nil).Apps.Kind(f.v.Context(), apps.Options{Environment: f.o.Environment, Namespace: f.o.Namespace, Kind: f.o.Kind})
	if err != nil {
		return err
	}
	if err = f.v.ParseForm(); err != nil {
		return report.As(report.Usage, err)
	}
	f.fields = f.kind.Fields()
	for i := range f.fields {
		field := &f.fields[i]
		field.Secret = field.Secret || f.exists != nil && f.stored(field) != storedText(field, f.exists.Shown)
	}
	form := f.v.PostForm
	if f.draft = form.Get(valuesDraft); f.draft == "" {
		return nil
	}
	edits, found := f.v.Drafts.Find(f.draft, f.v.Frame.Now)
	for _, e := range edits {
		if name := page.SpecName(e.Path); e.Component == "" && form.Get(name) == "" {
			form.Set(name, e.Text)
		}
	}
	if f.lost = !found; f.lost {
		f.v.Frame.Notices = append(f.v.Frame.Notices, page.Notice{Tone: page.ToneWarn, Text: page.Text("values.lost")})
	}
	return nil
}

// stored returns the value of a field that the instance has, as a form has it.
func (f *appForm) stored(field *schema.AppField) string {
	if f.exists == nil {
		return ""
	}
	return storedText(field, f.exists.Values)
}

func storedText(field *schema.AppField, values map[string]any) string {
	return field.Text(lookup(values, field.Path))
}

// seenName is the name of the field with the digest of a value that the form shows: it changes only values that its user has changed.
func seenName(path string) string { return valuesSeen + ":" + path }

// digestOf returns a short digest of a text.
func digestOf(text string) string { return fmt.Sprintf("%.8x", sha256.Sum256([]byte(text))) }

// typed returns what the user has typed into a field, and whether it is to change the instance.
func (f *appForm) typed(field *schema.AppField) (value string, changed bool) {
	value, sent := page.Typed(field, f.v.PostForm, page.SpecName(field.Path))
	if field.Secret {
		return value, value != "" && value != f.stored(field)
	}
	return value, sent && f.v.PostForm.Get(seenName(field.Path)) != digestOf(value) && value != page.AsSent(f.stored(field))
}

// changes returns the changes that the form asks for by path, and the fields with a problem: refused values, and those that another user has
// changed since the form was shown.
func (f *appForm) changes() (set []string, problems map[string]error, failure error) {
	problems = map[string]error{}
	var refused []error
	for i := range f.fields {
		field := &f.fields[i]
		value, changed := f.typed(field)
		if !changed {
			continue
		}
		stored, one := f.stored(field), field.Path+"-"
		if seen := seenName(field.Path); f.v.PostForm.Has(seen) && f.v.PostForm.Get(seen) != digestOf(page.AsSent(stored)) && !field.Secret {
			problems[field.Path] = errors.New(page.Text("appedit.changed", cmp.Or(report.Cut(stored, maxStored), page.Text("appedit.empty"))))
		}
		if value != "" {
			one = field.Path + "=" + value
			if err := f.kind.Try(f.v.Context(), one); err != nil {
				problems[field.Path] = err
				refused = append(refused, err)
			}
		}
		set = append(set, one)
	}
	if failure = errors.Join(refused...); failure == nil && len(problems) > 0 {
		failure = report.Errorf(report.Conflict, "%s %s was changed since this form was opened: check the values below", f.o.Kind, f.o.Name)
	}
	return set, problems, failure
}

// open is the page with the form as it is shown first.
func (f *appForm) open() (*web.Answer, error) {
	if err := f.read(); err != nil {
		return nil, err
	}
	return f.show(nil, nil)
}

// show is the page with the form; problems are by the path of their field.
func (f *appForm) show(problems map[string]error, failure error) (*web.Answer, error) {
	v, o := f.v, f.o
	appTrail(v, o)
	content := &page.AppEdit{Environment: o.Environment, Form: *f.kind.Description(), Name: v.FormValue("name")}
	content.Form.Fields = f.fields
	list := page.URL("environments", o.Environment, "apps")
	content.Action = page.Action{Label: page.Text("action.create"), URL: list, Post: true, Fields: []page.Hidden{{Name: "kind", Value: o.Kind}}, Weight: page.WeightPrimary}
	content.Cancel = page.Link{URL: list}
	if f.exists != nil {
		content.Name, content.NameGiven = o.Name, true
		content.Action = page.Action{Label: page.Text("action.save"), URL: appURL(o, "edit"), Post: true, Weight: page.WeightPrimary}
		content.Cancel = page.Link{URL: appURL(o)}
	} else if names := f.kind.Namespaces(); len(names) > 1 {
		choice := choose("namespace", page.Text("column.namespace"), v.FormValue("namespace"), names)
		content.Namespace = &choice
	}
	f.fill(content, problems)
	a := &web.Answer{Document: content.Form, Content: content}
	if failure != nil {
		a.Status, a.Document = web.StatusOf(failure), web.FailureOf(failure)
		v.Frame.Problem = page.ProblemOf(failure)
	}
	if v.PostFormValue("show") == "yaml" {
		return a, f.showYAML(content)
	}
	return a, nil
}

// fill fills the fields of the page. Secrets that were typed are kept in memory for the next time that the form is sent.
func (f *appForm) fill(content *page.AppEdit, problems map[string]error) {
	var secrets []plan.ValueEdit
	for i := range f.fields {
		field := &f.fields[i]
		value := page.FieldValue{Value: f.stored(field)}
		kept := value.Value != ""
		if f.exists != nil && !field.Secret {
			content.Action.Fields = append(content.Action.Fields, page.Hidden{Name: seenName(field.Path), Value: digestOf(page.AsSent(value.Value))})
		}
		if typed, changed := f.typed(field); changed {
			value.Value = typed
			if field.Secret {
				secrets = append(secrets, plan.ValueEdit{Path: field.Path, Text: typed})
			}
		}
		if field.Secret {
			value.Value, value.Kept = "", kept || value.Value != ""
		}
		if err := problems[field.Path]; err != nil {
			value.Problem = page.Sentence(strings.TrimPrefix(err.Error(), field.Path+": "))
		}
		content.Values = append(content.Values, value)
	}
	if secrets != nil {
		draft := f.v.Drafts.Replace(f.draft, secrets, f.v.Frame.Now)
		content.Action.Fields = append(content.Action.Fields, page.Hidden{Name: valuesDraft, Value: draft})
	}
}

// showYAML shows the object that would be sent, without its secrets.
func (f *appForm) showYAML(content *page.AppEdit) error {
	spec := map[string]any{}
	for i := range f.fields {
		value, changed := f.typed(&f.fields[i])
		if !changed && !f.fields[i].Secret { // nothing hides it where its neighbours have changed
			value = f.stored(&f.fields[i])
		}
		if value != "" {
			_ = f.kind.Set(spec, f.fields[i].Path+"="+value) // its error is shown at its field
		}
	}
	shown, err := yaml.Marshal(map[string]any{
		"apiVersion": content.Form.APIVersion, "kind": content.Form.Kind, "metadata": map[string]any{"name": content.Name}, "spec": f.kind.Shown(spec),
	})
	content.YAML = string(shown)
	return err
}

// createApp creates an instance from a form.
func (c *Console) createApp(v *web.Visit) (*web.Answer, error) {
	o := instance(v)
	o.Kind, o.Namespace, o.Name = v.PostFormValue("kind"), cmp.Or(v.PostFormValue("namespace"), o.Namespace), strings.TrimSpace(v.PostFormValue("name"))
	return (&appForm{Console: c, v: v, o: o}).change("create-app", func(ctx context.Context, a *apps.Apps, set []string) (*schema.App, error) {
		return a.Create(ctx, apps.CreateOptions{Options: o, Set: set})
	})
}

// saveApp changes an instance by a form.
func (c *Console) saveApp(v *web.Visit) (*web.Answer, error) {
	o := instance(v)
	one, err := v.Deployer(nil).Apps.Get(v.Context(), o)
	if err != nil {
		return nil, err
	}
	return (&appForm{Console: c, v: v, o: o, exists: one}).change("configure", func(ctx context.Context, a *apps.Apps, set []string) (*schema.App, error) {
		return a.Set(ctx, apps.SetOptions{Options: o, Set: set})
	})
}

// change validates a form field by field, sends it, and follows the operation.
func (f *appForm) change(verb string, send func(context.Context, *apps.Apps, []string) (*schema.App, error)) (*web.Answer, error) {
	v, o := f.v, f.o
	if err := f.read(); err != nil {
		return nil, err
	}
	set, problems, failure := f.changes()
	if failure != nil || f.lost || v.PostFormValue("show") != "" {
		return f.show(problems, failure)
	}
	if f.exists == nil { // a conflict about existence is reported before anything is sent
		if _, object, err := v.Deployer(nil).Apps.New(v.Context(), o); err != nil {
			return f.show(nil, err)
		} else if err := f.kind.Judge(v.Context(), object, set); err != nil {
			return f.show(nil, err)
		}
	}
	return f.server.Begin(v, appOperation(verb, o), func(ctx context.Context, sink report.Sink) (*schema.Operation, error) {
		changed, err := send(ctx, v.Deployer(sink).Apps, set)
		if err != nil {
			return nil, err
		}
		v.Drafts.Forget(f.draft)
		return changedApp(verb, changed), nil
	})
}
