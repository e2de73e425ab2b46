package console

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/console/live"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// verb is a verb of package deployer as a page: GET shows its plan, POST carries out the plan that was shown.
type verb struct {
	name string
	// data has the possible policies for data, if the verb can delete some: the user has to select one.
	data []plan.DataPolicy
	// accepts are the options of the command that accept a refusal: each is a box, and a parameter.
	accepts []string
	// parts reports that it can deploy a selection of components.
	parts bool
	// versions returns the versions to select from; nil where there is no choice.
	versions func(s *live.Snapshot, r *deployer.Request) []string
	// look reads the data that an accepted box needs; nil where no box needs any.
	look func(ctx context.Context, d *deployer.Deployer, o *order) error
}

// Options that accept a refusal, by subject.
var (
	acceptObjects     = []string{"adopt", "force-conflicts"}
	acceptReplacing   = slices.Concat(acceptObjects, []string{"replace"})
	acceptDefinitions = slices.Concat(acceptReplacing, []string{"accept-data-loss", "accept-invalid"})
	acceptRights      = []string{"allow", "cluster-wide", "accept-hazard"}
	acceptParts       = []string{adoptHelm, "accept-restart", "rotate"} // for components that Helm has installed
)

// verbs are by the pattern of their path.
var verbs = map[string]verb{
	"/solutions/{solution}/plan/activate": {
		name: schema.VerbActivate, accepts: slices.Concat(acceptDefinitions, acceptRights, acceptParts), parts: true, versions: imported,
	},
	"/solutions/{solution}/plan/deactivate": {
		name: schema.VerbDeactivate, accepts: acceptObjects, data: []plan.DataPolicy{plan.RefuseData, plan.KeepData, plan.DeleteData},
	},
	"/environments/{environment}/plan/add":       {name: schema.VerbAdd, accepts: slices.Concat(acceptReplacing, acceptRights, acceptParts), versions: imported, parts: true},
	"/environments/{environment}/plan/upgrade":   {name: schema.VerbUpgrade, accepts: slices.Concat(acceptDefinitions, acceptRights, acceptParts), versions: higher, parts: true},
	"/environments/{environment}/plan/downgrade": {name: schema.VerbDowngrade, accepts: slices.Concat(acceptDefinitions, acceptRights, acceptParts), versions: lower, parts: true},
	"/environments/{environment}/plan/rollback":  {name: schema.VerbRollback, accepts: slices.Concat(acceptDefinitions, []string{"allow"})},
	"/environments/{environment}/plan/repair":    {name: schema.VerbRepair, accepts: acceptReplacing},
	"/environments/{environment}/plan/remove": {
		name: schema.VerbRemove, accepts: acceptObjects, data: []plan.DataPolicy{plan.RefuseData, plan.KeepData, plan.DeleteData},
	},
	"/environments/{environment}/plan/delete": {
		name: schema.VerbDelete, accepts: []string{"delete-others", forceFinalizers}, data: []plan.DataPolicy{plan.RefuseData, plan.DeleteData}, look: lookAround,
	},
}

// adoptHelm adopts the objects of a release of Helm: COMPONENT=NAMESPACE/RELEASE.
const adoptHelm = "adopt-helm"

// forceFinalizers is an option that nothing asks for before it is too late: it is offered where there are any.
const forceFinalizers = "force-finalizers"

// command is the verb on the command line.
func (v verb) command() string {
	if v.name == schema.VerbDelete {
		return "deploy env delete"
	}
	return "deploy " + v.name
}

// order is a user's request for a verb: the parameters of its page.
type order struct {
	deployer.Request
	of       verb
	before   components.Choice // without the boxes of the page
	accepted url.Values        // by option, its value; "true" for an option without one
	held     []environments.Held

	draft string // the name of values that were typed
	edits []plan.ValueEdit
	lost  bool // the draft is not kept any more
}

// policies are the words for the policies on data.
var policies = map[plan.DataPolicy]string{plan.RefuseData: "", plan.KeepData: "keep", plan.DeleteData: "delete"}

// orderOf reads the parameters of a page.
func (v verb) orderOf(r *web.Visit) (*order, error) {
	o := &order{of: v, accepted: url.Values{}, Request: deployer.Request{
		Verb: v.name, Environment: r.PathValue("environment"), Namespace: r.FormValue("namespace"), Version: r.FormValue("version"),
		Options: plan.Options{Timeout: records.DefaultTimeout},
	}}
	for _, option := range v.accepts {
		for _, value := range r.Form[option] {
			o.accept(report.Option{Name: option, Value: value})
		}
	}
	if o.Solution = r.PathValue("solution"); o.Solution == "" {
		o.Solution = r.FormValue("solution")
	}
	var err error
	if v.parts {
		if o.Rendering.Choice, o.before, err = readChoice(r.Form); err != nil {
			return nil, err
		}
		o.readDraft(r)
	}
	if text := r.FormValue("revision"); text != "" {
		if o.Revision, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, report.Errorf(report.Usage, "revision %q is not a number", text)
		}
	}
	word := r.FormValue("data")
	at := slices.IndexFunc(v.data, func(p plan.DataPolicy) bool { return policies[p] == word })
	switch {
	case at >= 0:
		o.Data = v.data[at]
	case word != "":
		return nil, report.Errorf(report.Usage, "%q is not a choice for the data", word)
	}
	return o, nil
}

// parameters returns the parameters of the page, without those in its path and accepted options.
func (o *order) parameters(r *web.Visit) url.Values {
	p := url.Values{}
	for name, value := range map[string]string{"namespace": o.Namespace, "version": o.Version, "data": policies[o.Data], valuesDraft: o.draft} {
		if value != "" {
			p.Set(name, value)
		}
	}
	if r.PathValue("solution") == "" && o.Solution != "" {
		p.Set("solution", o.Solution)
	}
	profiles, names := o.Rendering.Choice.Texts()
	for name, values := range map[string][]string{choiceProfile: profiles, choiceComponent: names} {
		if len(values) > 0 {
			p[name] = values
		}
	}
	if o.Revision != 0 {
		p.Set("revision", strconv.FormatInt(o.Revision, 10))
	}
	return p
}

// kept are the parameters of the page, with accepted options.
func (o *order) kept(r *web.Visit) url.Values {
	p := o.parameters(r)
	maps.Copy(p, o.accepted)
	return p
}

func (o *order) accepts(option report.Option) bool {
	return slices.Contains(o.accepted[option.Name], cmp.Or(option.Value, "true"))
}

// accept adds an option to the order, and reports whether it is new.
func (o *order) accept(option report.Option) bool {
	if o.accepts(option) {
		return false
	}
	o.accepted.Add(option.Name, cmp.Or(option.Value, "true"))
	return true
}

// accepting is the same order that accepts nothing yet.
func (o *order) accepting() *order {
	other := *o
	other.accepted = url.Values{}
	return &other
}

// subject is the object of a verb: the name that the user has to type before it is deleted.
func (o *order) subject() string {
	if o.Environment != "" {
		return o.Environment
	}
	return o.Solution
}

// perform carries out the request with its accepted options.
func (o *order) perform(ctx context.Context, d *deployer.Deployer) (*schema.Operation, error) {
	r := o.Request
	r.Adopt, r.Force, r.Replace, r.Allow = o.accepted.Has("adopt"), o.accepted.Has("force-conflicts"), o.accepted["replace"], o.accepted["allow"]
	r.Losses.AcceptDataLoss, r.Losses.AcceptInvalid = o.accepted["accept-data-loss"], o.accepted["accept-invalid"]
	r.Rendering.AcceptHazards = o.accepted["accept-hazard"]
	if o.accepted.Has("cluster-wide") {
		r.Rendering.ClusterWide = new(true)
	}
	r.Rendering.Restart, r.Rendering.Rotate, r.Rendering.Helm = o.accepted.Has("accept-restart"), o.accepted["rotate"], map[string]plan.HelmRelease{}
	for _, text := range o.accepted[adoptHelm] {
		component, release, err := plan.ParseHelmRelease(text)
		if err != nil {
			return nil, err
		}
		r.Rendering.Helm[component] = release
	}
	if len(o.edits) > 0 {
		var err error
		if r.Rendering.Values, err = o.siteValues(ctx, d); err != nil {
			return nil, err
		}
	}
	return d.Perform(ctx, r)
}

// lookAround finds objects in an environment that are not part of a Solution, and those that finalizers hold.
func lookAround(ctx context.Context, d *deployer.Deployer, o *order) (err error) {
	if o.held, err = d.Held(ctx, environments.HeldOptions{Environment: o.Environment, Namespace: o.Namespace}); err != nil {
		return err
	}
	o.Others, o.Release = nil, nil
	if o.accepted.Has(forceFinalizers) {
		o.Release = o.held
	}
	if o.accepted.Has("delete-others") {
		o.Others, err = d.Survey.Others(ctx, survey.OthersOptions{Environment: o.Environment, Namespace: o.Namespace})
	}
	return err
}

// imported are the versions of a Solution, the highest first.
func imported(s *live.Snapshot, r *deployer.Request) []string {
	var list []schema.Version
	for _, one := range s.Status.Solutions {
		if one.Name != r.Solution {
			continue
		}
		for _, v := range one.Versions {
			if parsed, err := schema.ParseVersion(v.Version); err == nil {
				list = append(list, parsed)
			}
		}
	}
	slices.SortFunc(list, func(a, b schema.Version) int { return b.Compare(a) })
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = v.String()
	}
	return texts
}

func higher(s *live.Snapshot, r *deployer.Request) []string { return beside(s, r, 1) }

func lower(s *live.Snapshot, r *deployer.Request) []string { return beside(s, r, -1) }

// beside are the imported versions that are higher, or lower, than every one that is deployed.
func beside(s *live.Snapshot, r *deployer.Request, sign int) []string {
	there := deployedVersions(s, r)
	return slices.DeleteFunc(imported(s, r), func(text string) bool {
		v, err := schema.ParseVersion(text)
		return err != nil || slices.ContainsFunc(there, func(d schema.Version) bool { return v.Compare(d)*sign <= 0 })
	})
}

// deployedVersions are the versions of a Solution in an environment, or in one namespace of it.
func deployedVersions(s *live.Snapshot, r *deployer.Request) []schema.Version {
	var list []schema.Version
	for d := range s.Status.Deployments() {
		v, err := schema.ParseVersion(d.Version)
		if err == nil && d.Environment == r.Environment && d.Solution == r.Solution && (r.Namespace == "" || d.Namespace == r.Namespace) {
			list = append(list, v)
		}
	}
	return list
}

// exportTo writes data that is about to go to a new file that only this program's user can read.
func (c *Console) exportTo(op *live.Operation, name string) definitions.Export {
	if c.Exports == "" {
		return nil
	}
	return func(write func(io.Writer) error) error {
		path := filepath.Join(c.Exports, name+"-"+c.Now().UTC().Format("20060102T150405Z")+".json")
		f, err := durable.Create(path)
		if err != nil {
			return err
		}
		if err := write(f); err != nil {
			return errors.Join(err, f.Discard())
		}
		if err := f.PublishNew(0o600); err != nil {
			return err
		}
		op.SetExport(path)
		op.Emit(report.Event{Step: "export", Name: path, State: report.Done})
		return nil
	}
}
