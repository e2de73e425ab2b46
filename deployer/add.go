package deployer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/kube/images"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// AddOptions say what to add to an environment.
type AddOptions struct {
	Options
	Environment, Solution string
	// Version is an imported version; "" stands for the active one and "latest" for the highest release.
	Version string
	// Namespace is one of the environment's; "" stands for all of them.
	Namespace string
	Rendering
}

// Rendering is how a Solution is to be deployed in a namespace. What is nil stays as it was there, and is off at first. It is kept until
// the deployment is complete.
type Rendering struct {
	Webhook      *bool   `json:"webhook,omitempty"`      // give the operator a certificate for its webhooks
	ClusterWide  *bool   `json:"clusterWide,omitempty"`  // approve of an operator that asks for its ClusterRoles in every namespace
	IngressClass *string `json:"ingressClass,omitempty"` // of the user interface
	// AcceptHazards are reasons of package kube/rbac, which allow the powers that they are about, and [HazardForeignImages].
	AcceptHazards []string `json:"acceptHazards,omitempty"`
	Allow         []string `json:"allow,omitempty"` // as in [Options], for one Solution
	Parts
}

// Names of settings as they are recorded with a revision.
const (
	settingWebhook      = "webhook"
	settingClusterWide  = "clusterWide"
	settingIngressClass = "ingressClass"
	settingHazards      = "acceptHazards"
)

// merge returns the settings of a revision after those of an earlier one.
func (r Rendering) merge(previous map[string]string) map[string]string {
	settings := map[string]string{}
	set := func(name, value string) {
		if value != "" && value != "false" {
			settings[name] = value
		}
	}
	flag := func(name string, value *bool) {
		switch {
		case value == nil:
			set(name, previous[name])
		case *value:
			set(name, "true")
		}
	}
	flag(settingWebhook, r.Webhook)
	flag(settingClusterWide, r.ClusterWide)
	if r.IngressClass != nil {
		set(settingIngressClass, *r.IngressClass)
	} else {
		set(settingIngressClass, previous[settingIngressClass])
	}
	hazards := slices.Clone(r.AcceptHazards)
	if before := previous[settingHazards]; before != "" {
		hazards = append(hazards, strings.Split(before, ",")...)
	}
	slices.Sort(hazards)
	set(settingHazards, strings.Join(slices.Compact(hazards), ","))
	return settings
}

// Add deploys an imported version of a Solution in the namespaces of an environment.
func (d *Deployer) Add(ctx context.Context, o AddOptions) (*schema.Operation, error) {
	return d.inNamespaces(ctx, o.Options, o.Environment, o.Namespace, func(ctx context.Context, namespaces []metalk8s.Namespace) (*task, error) {
		return d.planAdd(ctx, o, namespaces)
	})
}

func (d *Deployer) planAdd(ctx context.Context, o AddOptions, namespaces []metalk8s.Namespace) (*task, error) {
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	found, notice, err := d.choose(ctx, catalog, o.Solution, o.Version)
	if err != nil {
		return nil, err
	}
	t := &task{Operation: schema.Operation{
		Operation: schema.VerbAdd, Solution: found.Name, Version: found.Version, Environment: o.Environment,
	}}
	if notice != "" {
		t.notice(notice)
	}
	if err = d.checkAbsent(ctx, found, namespaces); err != nil {
		return nil, err
	}
	one := &placement{Import: found, operation: t.Operation.Operation, namespaces: namespaces, Rendering: o.Rendering}
	return t, d.planPlacements(ctx, t, catalog, []*placement{one}, o.Options)
}

// choose returns the version that is named; where none is, that is the active one.
func (d *Deployer) choose(ctx context.Context, catalog *records.Catalog, solution, version string) (found schema.Import, notice string, err error) {
	if version == "" {
		if version, err = d.Records.Active(ctx, solution); err != nil {
			return found, "", err
		}
	}
	return catalog.Find(solution, version)
}

// checkAbsent refuses to add a version where another one is: that is an upgrade or a downgrade.
func (d *Deployer) checkAbsent(ctx context.Context, i schema.Import, namespaces []metalk8s.Namespace) error {
	for _, n := range namespaces {
		state, err := d.Records.Engine.State(ctx, engine.Key{Namespace: n.Name, Name: i.Name})
		if err != nil {
			return err
		}
		if state.Current != nil && state.Current.Version != "" && state.Current.Version != i.Version {
			return report.Errorf(report.Conflict, "version %s of Solution %s is deployed in namespace %s", state.Current.Version, i.Name, n.Name).
				WithHint("%s", records.ChangeTo(n.Environment, state.Current.Version, i))
		}
	}
	return nil
}

// checkImages refuses versions whose images nodes cannot find. An endpoint out of reach from here is only told.
func (d *Deployer) checkImages(ctx context.Context, t *task, imports ...schema.Import) error {
	imports = slices.DeleteFunc(imports, func(i schema.Import) bool { return len(i.Images) == 0 })
	registry, err := d.Records.Registry(ctx)
	if err != nil || len(imports) == 0 || registry != nil && registry.Mode == schema.RegistryMetalK8s {
		return err
	}
	if registry == nil || len(registry.Endpoints) == 0 {
		return report.Errorf(report.Refused, "the cluster has no record of where nodes find images: pods of %s could not start", imports[0].ID()).
			WithHint("on the host where '%s' runs, with its address: %s; then, on each node: %s", report.Run("deploy serve"), records.RegistryRemedy(), report.Run("deploy node config"))
	}
	answers := records.AskRegistry(ctx, registry, imports, records.Briefly)
	var wrong, silent []string
	for _, a := range answers {
		switch {
		case a.IsUntrusted():
			wrong = append(wrong, a.Endpoint+" has a certificate that no recorded authority has signed")
		case a.Err != nil:
			silent = append(silent, fmt.Sprintf("%s: %v", a.Endpoint, a.Err))
		case len(a.Missing) > 0:
			wrong = append(wrong, fmt.Sprintf("%s does not serve %s", a.Endpoint, strings.Join(a.Missing, ", ")))
		}
	}
	switch {
	case len(wrong) == len(answers):
		return report.Errorf(report.Refused, "no node could pull the images: %s", strings.Join(wrong, "; ")).
			WithHint("what is wrong with which endpoint, and what helps: %s", report.Run("deploy doctor"))
	case len(silent) == len(answers):
		t.notice("the registry does not answer from here, and pods wait until nodes reach it: " + strings.Join(silent, "; "))
	}
	return ctx.Err()
}

// placement is a version of a Solution that namespaces are to have.
type placement struct {
	schema.Import
	operation  string
	namespaces []metalk8s.Namespace
	Rendering

	payload  *render.Payload
	settings render.Settings
	together []schema.SolutionAt   // the others that change in the same run
	memories map[engine.Key]memory // of the charts, in the namespace that is planned
	// drawn are the components whose objects are others in each plan, and what else they follow from.
	drawn   map[engine.Key]string
	rotated []string    // Secrets and ConfigMaps of the namespace that is planned whose values are generated again, as [render.Rotations] names them
	taken   []*takeover // from Helm
	// foreign are the images that no archive has, by the component whose chart names them.
	foreign map[string][]images.Use
	lookups map[engine.Key][]schema.Power // powers of what the templates of charts looked up while they were rendered
	said    map[string]Rendering          // options by namespace: those of this run over those of an interrupted one
	noted   []byte                        // what of this run is kept until it is complete
}

// planPlacements plans to have versions in namespaces, whatever is there now. Only what is there when all of them are has to
// meet what they need of each other.
func (d *Deployer) planPlacements(ctx context.Context, t *task, catalog *records.Catalog, list []*placement, o Options) (err error) {
	imports := make([]schema.Import, len(list))
	for i, one := range list {
		imports[i] = one.Import
	}
	if err = d.checkImages(ctx, t, imports...); err != nil {
		return err
	}
	for _, one := range list {
		if err = d.readPlacement(ctx, t, catalog, one); err != nil {
			return err
		}
	}
	err = d.checkDependencies(ctx, catalog, func(h dependencies.Holdings) {
		for _, one := range list {
			dependencies.Put(one.Name, one.Version, one.namespaces...)(h)
		}
		for _, g := range t.gone {
			dependencies.Put(g.Solution, "", g.namespaces...)(h)
		}
	})
	if err != nil {
		return err
	}
	if err = d.giveAll(ctx, list, o); err != nil {
		return err
	}
	var releases, parts []engine.Release
	for _, one := range list {
		one.together = others(list, one)
		own, more, failure := d.releases(ctx, t, one)
		if failure != nil {
			return failure
		}
		releases, parts = append(releases, own...), append(parts, more...)
		t.draws(one)
		d.forget(t, one.taken)
	}
	needOthers(catalog, releases, parts)
	leaving := departures(catalog, t.gone, append(slices.Clip(releases), parts...))
	notices, err := d.Site.Remarks(ctx, append(releases, parts...)...)
	if err != nil {
		return err
	}
	t.notice(notices...)
	all := slices.Concat(releases, parts, leaving)
	if notices, err = d.Site.CheckDashboards(ctx, all...); err != nil {
		return err
	}
	t.notice(notices...)
	t.before = func(ctx context.Context) error { return d.recordPlacements(ctx, list, t.gone) }
	if t.plans, err = d.Records.Engine.PlanAll(ctx, all, o.plan()); err != nil {
		return err
	}
	if err = d.judgePowers(ctx, t, o, judgedIn(list, o)...); err != nil {
		return err
	}
	return noteComponents(t.plans)
}

// readPlacement reads what a version is made of, and refuses one that the cluster cannot have.
func (d *Deployer) readPlacement(ctx context.Context, t *task, catalog *records.Catalog, one *placement) (err error) {
	if one.payload, one.settings, err = d.settings(ctx, catalog, one.Import); err != nil {
		return err
	}
	if err = d.checkKubernetes(ctx, one.payload); err != nil {
		return err
	}
	if spare := one.payload.SpareCharts(); len(spare) > 0 {
		t.notice("no component deploys " + strings.Join(spare, ", "))
	}
	return d.checkActive(ctx, one.payload)
}

// recordPlacements tells MetalK8s which versions there are to be.
func (d *Deployer) recordPlacements(ctx context.Context, list []*placement, gone []departure) error {
	for _, one := range list {
		if err := d.recordVersions(ctx, one.Import, one.namespaces); err != nil {
			return err
		}
	}
	for _, g := range gone {
		if err := d.setVersion(ctx, g.namespaces, g.Solution, ""); err != nil {
			return err
		}
	}
	return nil
}

// others are the versions that change, or are added, together with one.
func others(list []*placement, one *placement) []schema.SolutionAt {
	var together []schema.SolutionAt
	for _, other := range list {
		if other.Name != one.Name && (other.operation == schema.VerbAdd) == (one.operation == schema.VerbAdd) {
			together = append(together, schema.SolutionAt{Solution: other.Name, Version: other.Version})
		}
	}
	return together
}

// releases renders a version for each of its namespaces: its own part, and its components.
func (d *Deployer) releases(ctx context.Context, t *task, one *placement) (own, parts []engine.Release, err error) {
	for _, n := range one.namespaces {
		if n.Terminating {
			return nil, nil, d.Records.Documents.Terminating(ctx, n.Name)
		}
		here := *one
		here.Rendering = one.said[n.Name]
		release, more, notices, err := d.release(ctx, &here, n)
		if err != nil {
			return nil, nil, err
		}
		one.drawn, one.taken, one.foreign, one.lookups = here.drawn, here.taken, here.foreign, here.lookups
		own, parts = append(own, release), append(parts, more...)
		for _, notice := range notices {
			if !slices.Contains(t.Notices, notice) {
				t.notice(notice)
			}
		}
		t.records = append(t.records, records.EntryChange(n.Name, metalk8s.EnvironmentConfigMap, "data."+one.Name, n.Versions[one.Name], one.Version)...)
	}
	return own, parts, nil
}

// recordVersions writes the version into the namespaces' documents. By then our records say that it is deployed: an unimport
// that read them before looks again after it took the version away; whoever comes second gives way.
func (d *Deployer) recordVersions(ctx context.Context, i schema.Import, namespaces []metalk8s.Namespace) error {
	namespaces = slices.DeleteFunc(slices.Clone(namespaces), func(n metalk8s.Namespace) bool { return n.Versions[i.Name] == i.Version })
	if err := d.setVersion(ctx, namespaces, i.Name, i.Version); err != nil {
		return err
	}
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return err
	}
	if _, _, err = catalog.Find(i.Name, i.Version); err == nil {
		return nil
	}
	for _, n := range namespaces {
		err = errors.Join(err, d.Records.Documents.SetVersion(ctx, n.Name, i.Name, n.Versions[i.Name]))
	}
	return err
}

// setVersion writes a version of a Solution, or with "" that it has none, into the document of each namespace.
func (d *Deployer) setVersion(ctx context.Context, namespaces []metalk8s.Namespace, solution, version string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(records.Parallel)
	for _, n := range namespaces {
		group.Go(func() error { return d.Records.Documents.SetVersion(ctx, n.Name, solution, version) })
	}
	return group.Wait()
}

// release renders a version for one namespace: its own part, and its components.
func (d *Deployer) release(ctx context.Context, one *placement, n metalk8s.Namespace) (own engine.Release, parts []engine.Release, notices []string, err error) {
	own = engine.Release{
		Key: engine.Key{Namespace: n.Name, Name: one.Name}, Version: one.Version, Operation: one.operation, Together: one.together,
		Back: one.operation == string(records.Down), Given: one.noted,
	}
	before, err := d.Records.Engine.State(ctx, own.Key)
	if err != nil {
		return own, nil, nil, err
	}
	own.Settings = one.merge(settingsOf(lastRevision(before)))
	if own.Objects, err = d.objectsIn(ctx, one.payload, one.settings, n, own.Settings); err != nil {
		return own, nil, nil, err
	}
	if notices, err = rights.IneffectiveRules(ctx, d.Cluster, one.payload, own.Objects); err != nil {
		return own, nil, nil, err
	}
	parts, more, err := d.components(ctx, one, n, &own, before)
	return own, parts, append(notices, more...), err
}

// objectsIn renders a version for a namespace as the settings of a revision say.
func (d *Deployer) objectsIn(ctx context.Context, p *render.Payload, s render.Settings, n metalk8s.Namespace, said map[string]string) ([]*unstructured.Unstructured, error) {
	s.Namespace, s.Environment = n.Name, n.Environment
	s.Webhook = said[settingWebhook] == "true"
	s.IngressClass = cmp.Or(said[settingIngressClass], s.IngressClass)
	names, err := render.EnvironmentSecrets(p, s)
	if err != nil {
		return nil, err
	}
	if s.Secrets, err = d.secrets(ctx, n.Name, names); err != nil {
		return nil, err
	}
	return render.Environment(p, s)
}

// previousSettings are those of the revision that is there, or on its way.
func (d *Deployer) previousSettings(ctx context.Context, key engine.Key) (map[string]string, error) {
	state, err := d.Records.Engine.State(ctx, key)
	if err != nil {
		return nil, err
	}
	return settingsOf(lastRevision(state)), nil
}

// checkKubernetes refuses a Solution that does not support the version of the cluster.
func (d *Deployer) checkKubernetes(ctx context.Context, p *render.Payload) error {
	wanted := p.Solution.Spec.KubernetesVersion
	if wanted == "" {
		return nil
	}
	supported, err := schema.ParseRange(wanted)
	if err != nil {
		return fmt.Errorf("%s: kubernetesVersion: %w", p.Solution.ID(), err)
	}
	version, err := d.Cluster.Version(ctx)
	if err != nil {
		return err
	}
	fits, err := supported.ContainsKubernetes(version)
	if err != nil || fits {
		return err
	}
	return report.Errorf(report.Refused, "version %s of Solution %s supports Kubernetes %s, and this cluster is %s",
		p.Solution.Spec.Version, p.Solution.Metadata.Name, wanted, version).
		WithHint("choose a version of the Solution that supports the cluster")
}

// checkActive refuses to deploy an operator without the definitions that it works with.
func (d *Deployer) checkActive(ctx context.Context, p *render.Payload) error {
	required, err := render.RequiredCRDs(p)
	if err != nil {
		return err
	}
	missing, err := d.Definitions.Missing(ctx, required)
	if err != nil || len(missing) == 0 {
		return err
	}
	name, version := p.Solution.Metadata.Name, p.Solution.Spec.Version
	active, err := d.Records.Active(ctx, name)
	if err != nil {
		return err
	}
	e := report.Errorf(report.Refused, "version %s of Solution %s is active, which does not serve %s", active, name, definitions.Requirements(missing))
	if active == "" {
		e = report.Errorf(report.Refused, "Solution %s is not active: the cluster does not serve %s", name, definitions.Requirements(missing))
	}
	// It may be that this is refused as well, and then for a reason of its own.
	_, refused := d.Activate(ctx, ActivateOptions{Options: Options{DryRun: true}, Solution: name, Version: version})
	switch report.CodeOf(refused) {
	case report.InUse, report.DataLoss, report.Refused:
		return report.Errorf(report.Refused, "%w; and version %s cannot become active: %w", e, version, refused)
	}
	return e.WithHint("%s", report.Run("deploy activate", name, version))
}
