package console

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// maxLog is how much of the end of a log is shown.
const maxLog = 64 << 10

// instance returns the options for the path of a page.
func instance(v *web.Visit) apps.Options {
	environment := v.PathValue("environment")
	return apps.Options{
		Environment: environment, Namespace: cmp.Or(v.PathValue("namespace"), v.Opened.Namespace(environment)), Kind: v.PathValue("kind"), Name: v.PathValue("name"),
		Timeout: records.DefaultTimeout,
	}
}

func appURL(o apps.Options, more ...string) string {
	return page.URL(append([]string{"environments", o.Environment, "apps", o.Namespace, o.Kind, o.Name}, more...)...)
}

func appTrail(v *web.Visit, o apps.Options) {
	v.Frame.Section = page.SectionEnvironments
	v.Frame.Trail = []page.Link{
		{Label: page.Text("environments.title"), URL: "/environments"}, {Label: o.Environment, URL: page.URL("environments", o.Environment)},
	}
	if o.Kind != "" || o.Name != "" || strings.HasSuffix(v.URL.Path, "/new") {
		v.Frame.Trail = append(v.Frame.Trail, page.Link{Label: page.Text("apps.table"), URL: page.URL("environments", o.Environment, "apps")})
	}
}

// apps lists the instances of an environment.
func (c *Console) apps(v *web.Visit) (*web.Answer, error) {
	o := instance(v)
	appTrail(v, o)
	d := v.Deployer(nil)
	list, err := d.Apps.List(v.Context(), o)
	if err != nil {
		return nil, err
	}
	kinds, err := d.Apps.Kinds(v.Context(), o)
	if err != nil {
		return nil, err
	}
	content := &page.Apps{Environment: o.Environment, Listing: page.NewListing(v.FormValue), List: list}
	for _, k := range kinds {
		content.Create = append(content.Create, createApp(v, o.Environment, k))
	}
	return &web.Answer{Document: list, Content: content}, nil
}

// createApp offers to create an application of a kind.
func createApp(v *web.Visit, environment string, k *apps.Kind) page.Action {
	return offerOn(v, page.Action{
		Label: page.Text("action.createApp", k.Kind), URL: page.Query(page.URL("environments", environment, "apps", "new"), "kind", k.Kind), Weight: page.WeightPrimary,
	}, k.Description().APIVersion, k.Kind, k.Namespaces()[0], "create")
}

// app shows an instance with everything that belongs to it.
func (c *Console) app(v *web.Visit) (*web.Answer, error) {
	o := instance(v)
	appTrail(v, o)
	d := v.Deployer(nil)
	one, err := d.Apps.Get(v.Context(), o)
	if err != nil {
		return nil, err
	}
	content := &page.App{App: one}
	one.Events, err = d.Apps.Events(v.Context(), one, c.Now())
	if report.CodeOf(err) == report.Forbidden {
		unseen := page.ProblemOf(err).Unseen(err.Error())
		content.EventsUnseen, err = &unseen, nil
	}
	if err != nil {
		return nil, err
	}
	shown, err := yaml.Marshal(map[string]any{
		"apiVersion": one.APIVersion, "kind": one.Kind, "metadata": map[string]any{"name": one.Name, "namespace": one.Namespace}, "spec": one.Shown,
	})
	if err != nil {
		return nil, err
	}
	content.YAML = string(shown)
	for _, object := range one.Objects {
		if object.Kind == cluster.PodKind.Kind {
			if err = c.logLinks(v, content, o, object.Name); err != nil {
				v.Frame.Notices = append(v.Frame.Notices, page.Notice{Tone: page.ToneWarn, Text: err.Error()})
			}
		}
	}
	kind, err := d.Apps.Kind(v.Context(), apps.Options{Environment: o.Environment, Namespace: o.Namespace, Kind: o.Kind})
	if err != nil {
		return nil, err
	}
	if kind.Scales() {
		content.Scale = &page.Form{
			Action: page.Action{Label: page.Text("action.scale"), URL: appURL(o, "scale"), Post: true},
			Inputs: []page.Input{{Name: "replicas", Label: page.Text("field.replicas"), Value: (&schema.AppField{Type: "integer"}).Text(lookup(one.Values, "replicas")), Required: true}},
		}
	}
	content.Actions = []page.Action{
		offerOn(v, page.Action{Label: page.Text("action.configure"), URL: appURL(o, "edit"), Weight: page.WeightPrimary}, one.APIVersion, one.Kind, one.Namespace, "update"),
		offerOn(v, page.Action{Label: page.Text("action.delete"), URL: appURL(o, "delete"), Weight: page.WeightDanger}, one.APIVersion, one.Kind, one.Namespace, "delete"),
	}
	if content.Scale != nil {
		content.Scale.Action = offerOn(v, content.Scale.Action, one.APIVersion, one.Kind, one.Namespace, "patch")
	}
	return &web.Answer{Document: one, Content: content}, nil
}

// logLinks adds links to the logs of a pod of the instance, and the requested log. A pod that is not part of the
// instance is ignored, even if it is in the address.
func (c *Console) logLinks(v *web.Visit, content *page.App, o apps.Options, pod string) error {
	object, err := v.Cluster.Get(v.Context(), cluster.PodKind, content.App.Namespace, pod)
	if err != nil || object == nil {
		return err
	}
	first, _, _ := unstructured.NestedSlice(object.Object, "spec", "initContainers")
	containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "containers")
	for _, one := range append(first, containers...) {
		fields, _ := one.(map[string]any)
		name, _ := fields["name"].(string)
		content.Logs = append(content.Logs, page.Link{Label: pod + " " + name, URL: page.Query(appURL(o), "pod", pod, "container", name)})
		if v.FormValue("pod") != pod || v.FormValue("container") != name {
			continue
		}
		log, err := v.Cluster.Logs(v.Context(), content.App.Namespace, pod, name, maxLog)
		if err != nil {
			return err
		}
		content.Log = &page.Log{Pod: pod, Container: name, Text: strings.ToValidUTF8(string(log), "�"), Cut: len(log) >= maxLog}
	}
	return nil
}

// appOperation describes an operation on an instance.
func appOperation(verb string, o apps.Options) *schema.Operation {
	return &schema.Operation{
		Operation: verb, Solution: o.Name, Environment: o.Environment, Parts: []schema.OperationPart{}, Notices: []string{},
	}
}

// changedApp is the result of an operation on an instance: the instance that it has changed.
func changedApp(verb string, a *schema.App) *schema.Operation {
	action := schema.ActionUpdate
	if verb == "create-app" {
		action = schema.ActionCreate
	}
	done := appOperation(verb, apps.Options{Environment: a.Environment, Name: a.Name})
	done.Parts = []schema.OperationPart{{Namespace: a.Namespace, Solution: a.Solution, Changes: []schema.Change{{
		Action: action, Object: schema.ObjectRef{APIVersion: a.APIVersion, Kind: a.Kind, Namespace: a.Namespace, Name: a.Name},
	}}}}
	return done
}

// scaleApp changes how many replicas an instance has.
func (c *Console) scaleApp(v *web.Visit) (*web.Answer, error) {
	o := instance(v)
	replicas, err := strconv.ParseInt(strings.TrimSpace(v.PostFormValue("replicas")), 10, 32)
	if err != nil || replicas < 0 {
		return nil, report.Errorf(report.Usage, "the number of replicas must be 0 or more, not %q", v.PostFormValue("replicas"))
	}
	return c.server.Begin(v, appOperation("scale", o), func(ctx context.Context, sink report.Sink) (*schema.Operation, error) {
		changed, err := v.Deployer(sink).Apps.Scale(ctx, apps.ScaleOptions{Options: o, Replicas: replicas})
		if err != nil {
			return nil, err
		}
		return changedApp("scale", changed), nil
	})
}

// askDeleteApp asks before an instance goes.
func (c *Console) askDeleteApp(v *web.Visit) (*web.Answer, error) {
	o := instance(v)
	appTrail(v, o)
	one, err := v.Deployer(nil).Apps.Get(v.Context(), o)
	if err != nil {
		return nil, err
	}
	ask := apps.ConfirmDeletion(one)
	content := &page.Confirmation{
		Heading:  appOperation("delete-app", o).Heading(),
		Warnings: []page.Notice{{Tone: page.ToneBad, Text: report.Capitalized(ask.Question) + "."}},
		Form: page.Form{
			Action: page.Action{Label: page.Text("action.delete"), URL: appURL(o, "delete"), Post: true, Fields: []page.Hidden{{Name: "uid", Value: one.UID}}, Weight: page.WeightDanger, Confirm: ask.Name},
			Cancel: page.Link{URL: appURL(o)},
		},
	}
	return &web.Answer{Document: one, Content: content}, nil
}

// deleteApp deletes an instance whose name was typed.
func (c *Console) deleteApp(v *web.Visit) (*web.Answer, error) {
	o := instance(v)
	if v.PostFormValue("confirm") != o.Name {
		return nil, report.Errorf(report.Cancelled, "not confirmed: the name that was typed is not %s", o.Name)
	}
	o.UID = v.PostFormValue("uid")
	return c.server.Begin(v, appOperation("delete-app", o), func(ctx context.Context, sink report.Sink) (*schema.Operation, error) {
		return nil, v.Deployer(sink).Apps.Delete(ctx, o)
	})
}

// lookup finds a value by its path, such as "storage.size"; nil where there is none.
func lookup(values map[string]any, path string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(values, chart.SplitPath(path)...)
	return value
}
