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
	"github.com/solutionctl/solutionctl/deployer/host"
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
	versions func(s *live.Snapshot, o *order) []string
	// look reads the data that an accepted box needs; nil where no box needs any.
	look func(ctx context.Context, d *deployer.Deployer, o *order) error
	// confirmation returns what the user has to confirm; nil where the plan is sufficient.
	confirmation func(o *order) report.Confirmation
	run          func(ctx context.Context, d *deployer.Deployer, o *order) (*schema.Operation, error)
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
		name: "activate", accepts: slices.Concat(acceptDefinitions, acceptRights, acceptParts), parts: true, versions: imported, run: activate,
	},
	"/solutions/{solution}/plan/deactivate": {
		name: "deactivate", accepts: acceptObjects, data: []plan.DataPolicy{plan.RefuseData, plan.KeepData, plan.DeleteData},
		confirmation: func(o *order) report.Confirmation { return o.deactivation().Confirmation() }, run: deactivate,
	},
	"/environments/{environment}/plan/add":       {name: "add", accepts: slices.Concat(acceptReplacing, acceptRights, acceptParts), versions: imported, parts: true, run: add},
	"/environments/{environment}/plan/upgrade":   {name: "upgrade", accepts: slices.Concat(acceptDefinitions, acceptRights, acceptParts), versions: higher, parts: true, run: upgrade},
	"/environments/{environment}/plan/downgrade": {name: "downgrade", accepts: slices.Concat(acceptDefinitions, acceptRights, acceptParts), versions: lower, parts: true, run: downgrade},
	"/environments/{environment}/plan/rollback":  {name: "rollback", accepts: acceptDefinitions, run: rollback},
	"/environments/{environment}/plan/repair":    {name: "repair", accepts: acceptReplacing, run: repair},
	"/environments/{environment}/plan/remove": {
		name: "remove", accepts: acceptObjects, data: []plan.DataPolicy{plan.RefuseData, plan.KeepData, plan.DeleteData},
		confirmation: func(o *order) report.Confirmation { return o.removal().Confirmation() }, run: remove,
	},
	"/environments/{environment}/plan/delete": {
		name: "delete", accepts: []string{"delete-others", forceFinalizers}, data: []plan.DataPolicy{plan.RefuseData, plan.DeleteData}, look: lookAround,
		confirmation: func(o *order) report.Confirmation { return o.deletion().Confirmation() }, run: deleteEnvironment,
	},
}

// adoptHelm adopts the objects of a release of Helm: COMPONENT=NAMESPACE/RELEASE.
const adoptHelm = "adopt-helm"

// forceFinalizers is an option that nothing asks for before it is too late: it is offered where there are any.
const forceFinalizers = "force-finalizers"

// command is the verb on the command line.
func (v verb) command() string {
	if v.name == "delete" {
		return "deploy env delete"
	}
	return "deploy " + v.name
}

// order is a user's request for a verb: the parameters of its page.
type order struct {
	plan.Options
	verb          string
	environment   string
	namespace     string
	solution      string
	version       string
	revision      int64
	data          plan.DataPolicy
	choice        components.Choice // of components
	before        components.Choice // without the boxes of the page
	accepted      url.Values        // by option, its value; "true" for an option without one
	others        []schema.ObjectRef
	held, release []environments.Held
	export        definitions.Export
	configuration string
}

// policies are the words for the policies on data.
var policies = map[plan.DataPolicy]string{plan.RefuseData: "", plan.KeepData: "keep", plan.DeleteData: "delete"}

// orderOf reads the parameters of a page.
func (v verb) orderOf(r *web.Visit) (*order, error) {
	o := &order{
		verb: v.name, environment: r.PathValue("environment"), namespace: r.FormValue("namespace"), version: r.FormValue("version"),
		Options: plan.Options{Timeout: records.DefaultTimeout}, accepted: url.Values{},
	}
	for _, option := range v.accepts {
		for _, value := range r.Form[option] {
			o.accept(report.Option{Name: option, Value: value})
		}
	}
	if o.solution = r.PathValue("solution"); o.solution == "" {
		o.solution = r.FormValue("solution")
	}
	var err error
	if v.parts {
		if o.choice, o.before, err = readChoice(r.Form); err != nil {
			return nil, err
		}
	}
	if text := r.FormValue("revision"); text != "" {
		if o.revision, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, report.Errorf(report.Usage, "revision %q is not a number", text)
		}
	}
	word := r.FormValue("data")
	at := slices.IndexFunc(v.data, func(p plan.DataPolicy) bool { return policies[p] == word })
	switch {
	case at >= 0:
		o.data = v.data[at]
	case word != "":
		return nil, report.Errorf(report.Usage, "%q is not what can become of data here", word)
	}
	return o, nil
}

// parameters returns the parameters of the page, without those in its path and accepted options.
func (o *order) parameters(r *web.Visit) url.Values {
	p := url.Values{}
	for name, value := range map[string]string{"namespace": o.namespace, "version": o.version, "data": policies[o.data]} {
		if value != "" {
			p.Set(name, value)
		}
	}
	if r.PathValue("solution") == "" && o.solution != "" {
		p.Set("solution", o.solution)
	}
	profiles, names := o.choice.Texts()
	for name, values := range map[string][]string{choiceProfile: profiles, choiceComponent: names} {
		if len(values) > 0 {
			p[name] = values
		}
	}
	if o.revision != 0 {
		p.Set("revision", strconv.FormatInt(o.revision, 10))
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
	o.Adopt, o.Force, o.Replace, o.Allow = o.accepted.Has("adopt"), o.accepted.Has("force-conflicts"), o.accepted["replace"], o.accepted["allow"]
	return true
}

// accepting is the same order that accepts nothing yet.
func (o *order) accepting() *order {
	other := *o
	other.accepted, other.Adopt, other.Force, other.Replace, other.Allow = url.Values{}, false, false, nil, nil
	return &other
}

func (o *order) clusterWide() *bool {
	if o.accepted.Has("cluster-wide") {
		return new(true)
	}
	return nil
}

// subject is the object of a verb: the name that the user has to type before it is deleted.
func (o *order) subject() string {
	if o.environment != "" {
		return o.environment
	}
	return o.solution
}

// chosen returns the selected components, with their accepted options.
func (o *order) chosen() (plan.Parts, error) {
	parts := plan.Parts{Choice: o.choice, Helm: map[string]plan.HelmRelease{}, Restart: o.accepted.Has("accept-restart"), Rotate: o.accepted["rotate"]}
	for _, text := range o.accepted[adoptHelm] {
		component, release, err := plan.ParseHelmRelease(text)
		if err != nil {
			return parts, err
		}
		parts.Helm[component] = release
	}
	return parts, nil
}

func (o *order) losses() definitions.Losses {
	return definitions.Losses{AcceptDataLoss: o.accepted["accept-data-loss"], AcceptInvalid: o.accepted["accept-invalid"], Export: o.export}
}

func activate(ctx context.Context, d *deployer.Deployer, o *order) (*schema.Operation, error) {
	parts, err := o.chosen()
	if err != nil {
		return nil, err
	}
	return host.Active{Verbs: d, Configuration: o.configuration}.Activate(ctx, deployer.ActivateOptions{
		Options: o.Options, Solution: o.solution, Version: o.version, ClusterWide: o.clusterWide(), Parts: parts,
		AcceptHazards: o.accepted["accept-hazard"], Losses: o.losses(),
	})
}

func deactivate(ctx context.Context, d *deployer.Deployer, o *order) (*schema.Operation, error) {
	return host.Active{Verbs: d, Configuration: o.configuration}.Deactivate(ctx, o.deactivation())
}

func (o *order) deactivation() deployer.DeactivateOptions {
	return deployer.DeactivateOptions{Options: o.Options, Solution: o.solution, Data: o.data, Export: o.export}
}

func (o *order) rendering() (plan.Rendering, error) {
	parts, err := o.chosen()
	return plan.Rendering{ClusterWide: o.clusterWide(), AcceptHazards: o.accepted["accept-hazard"], Parts: parts}, err
}

func add(ctx context.Context, d *deployer.Deployer, o *order) (*schema.Operation, error) {
	rendering, err := o.rendering()
	if err != nil {
		return nil, err
	}
	return d.Add(ctx, deployer.AddOptions{
		Options: o.Options, Environment: o.environment, Solution: o.solution, Version: o.version, Namespace: o.namespace, Rendering: rendering,
	})
}

func upgrade(ctx context.Context, d *deployer.Deployer, o *order) (*schema.Operation, error) {
	return change(ctx, d, o, records.Up)
}

func downgrade(ctx context.Context, d *deployer.Deployer, o *order) (*schema.Operation, error) {
	return change(ctx, d, o, records.Down)
}

func change(ctx context.Context, d *deployer.Deployer, o *order, direction records.Direction) (*schema.Operation, error) {
	rendering, err := o.rendering()
	if err != nil {
		return nil, err
	}
	return d.Change(ctx, deployer.ChangeOptions{
		Options: o.Options, Environment: o.environment, Solution: o.solution, Direction: direction, Version: o.version, Namespace: o.namespace,
		Rendering: rendering, Losses: o.losses(),
	})
}

func rollback(ctx context.Context, d *deployer.Deployer, o *order) (*schema.Operation, error) {
	return d.Rollback(ctx, deployer.RollbackOptions{
		Options: o.Options, Environment: o.environment, Solution: o.solution, Namespace: o.namespace, Revision: o.revision, Losses: o.losses(),
	})
}

func repair(ctx context.Context, d *deployer.Deployer, o *order) (*schema.Operation, error) {
	return d.Repair(ctx, deployer.RepairOptions{Options: o.Options, Selection: survey.Selection{Environment: o.environment, Solution: o.solution}})
}

func remove(ctx context.Context, d *deployer.Deployer, o *order) (*schema.Operation, error) {
	return d.Remove(ctx, o.removal())
}

func (o *order) removal() deployer.RemoveOptions {
	return deployer.RemoveOptions{
		Options: o.Options, Environment: o.environment, Solution: o.solution, Namespace: o.namespace, Data: o.data, Export: o.export,
	}
}

func deleteEnvironment(ctx context.Context, d *deployer.Deployer, o *order) (*schema.Operation, error) {
	return d.DeleteEnvironment(ctx, o.deletion())
}

func (o *order) deletion() environments.DeleteOptions {
	return environments.DeleteOptions{
		Options: o.Options, Environment: o.environment, Namespace: o.namespace, Data: o.data, Export: o.export, Others: o.others, Release: o.release,
	}
}

// lookAround finds objects in an environment that are not part of a Solution, and those that finalizers hold.
func lookAround(ctx context.Context, d *deployer.Deployer, o *order) (err error) {
	if o.held, err = d.Held(ctx, environments.HeldOptions{Environment: o.environment, Namespace: o.namespace}); err != nil {
		return err
	}
	o.others, o.release = nil, nil
	if o.accepted.Has(forceFinalizers) {
		o.release = o.held
	}
	if o.accepted.Has("delete-others") {
		o.others, err = d.Survey.Others(ctx, survey.OthersOptions{Environment: o.environment, Namespace: o.namespace})
	}
	return err
}

// imported are the versions of a Solution, the highest first.
func imported(s *live.Snapshot, o *order) []string {
	var list []schema.Version
	for _, one := range s.Status.Solutions {
		if one.Name != o.solution {
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

func higher(s *live.Snapshot, o *order) []string { return beside(s, o, 1) }

func lower(s *live.Snapshot, o *order) []string { return beside(s, o, -1) }

// beside are the imported versions that are higher, or lower, than every one that is deployed.
func beside(s *live.Snapshot, o *order, sign int) []string {
	there := deployedVersions(s, o)
	return slices.DeleteFunc(imported(s, o), func(text string) bool {
		v, err := schema.ParseVersion(text)
		return err != nil || slices.ContainsFunc(there, func(d schema.Version) bool { return v.Compare(d)*sign <= 0 })
	})
}

// deployedVersions are the versions of a Solution in an environment, or in one namespace of it.
func deployedVersions(s *live.Snapshot, o *order) []schema.Version {
	var list []schema.Version
	for _, e := range s.Status.Environments {
		for _, n := range e.Namespaces {
			for _, d := range n.Deployments {
				v, err := schema.ParseVersion(d.Version)
				if err == nil && e.Name == o.environment && d.Solution == o.solution && (o.namespace == "" || n.Name == o.namespace) {
					list = append(list, v)
				}
			}
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
