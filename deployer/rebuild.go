package deployer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// RebuildRecords makes records again that are lost or cannot be read. What is put on record is in the cluster, has our label,
// and is what an imported version would put there; which version that is, the objects tell. Nothing else is written: whatever
// is different stays off the record and is told.
func (d *Deployer) RebuildRecords(ctx context.Context, o RepairOptions) (*schema.Operation, error) {
	if err := o.ExpectsNothing("what is made again of records"); err != nil {
		return nil, err
	}
	broken, err := d.brokenRecords(ctx, o)
	if err != nil {
		return nil, err
	}
	run := d.begin(schema.Operation{Operation: schema.VerbRepair, Solution: o.Solution, Environment: o.Environment, Planned: o.DryRun}, o.Options)
	if o.DryRun || len(broken) == 0 {
		var errs []error
		for _, r := range broken {
			errs = append(errs, d.rebuild(ctx, run, r, false))
		}
		return run.Report(), errors.Join(errs...)
	}
	if err = d.Cluster.Require(ctx, rights.Lock()); err != nil {
		return nil, err
	}
	if err = d.Cluster.Require(ctx, rights.WriteRecords()); err != nil {
		return nil, err
	}
	var locks []string
	for _, r := range broken {
		locks = append(locks, cluster.LockOf(r.key.Namespace))
	}
	err = d.Locked(ctx, func(ctx context.Context) error {
		// What was read without the locks may have been mended by somebody else.
		again, failure := d.brokenRecords(ctx, o)
		if failure != nil {
			return failure
		}
		var errs []error
		for _, r := range again {
			if slices.Contains(locks, cluster.LockOf(r.key.Namespace)) {
				errs = append(errs, d.rebuild(ctx, run, r, true))
			}
		}
		return errors.Join(errs...)
	}, locks...)
	return run.Report(), err
}

// Broken is something that this tool has written down and that is lost, or cannot be read any more.
type Broken struct{ What, Cure string }

// Broken finds what is broken of all that is written down.
func (d *Deployer) Broken(ctx context.Context) ([]Broken, error) {
	records, err := d.brokenRecords(ctx, RepairOptions{})
	if err != nil {
		return nil, err
	}
	var found []Broken
	for _, r := range records {
		one := Broken{What: fmt.Sprintf("record of %s: %s", r.key, r.why), Cure: survey.Rebuilding(r.namespace.Environment, r.key).String()}
		if r.state.Damage != nil && report.CodeOf(r.state.Damage) != report.Corrupt {
			one.Cure = strings.Join(report.Hints(r.state.Damage), "; ")
		}
		found = append(found, one)
	}
	catalog, err := d.Records.CatalogOrDamage(ctx)
	if err != nil {
		return nil, err
	}
	if catalog.Damage != nil {
		found = append(found, Broken{What: catalog.Damage.Error(), Cure: strings.Join(report.Hints(catalog.Damage), "; ")})
	}
	for _, i := range catalog.Imports() {
		if _, err := d.Records.Payload(ctx, i); report.CodeOf(err) == report.Corrupt {
			found = append(found, Broken{What: err.Error(), Cure: strings.Join(report.Hints(err), "; ")})
		} else if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// brokenRecord is a record that is to be made again.
type brokenRecord struct {
	key       engine.Key
	why       string
	state     *engine.State
	lost      *records.Unrecorded // nil where nothing with our label is off the record
	namespace metalk8s.Namespace  // of the environment; without a name for the whole cluster
	owner     *engine.State       // of a component: the record of its Solution
	parts     []string            // of a Solution: its components that are there
}

// brokenRecords finds the records that are lost or cannot be read: components before their Solution, whose record lists them, and
// those of the whole cluster last, as what they serve depends on the others.
func (d *Deployer) brokenRecords(ctx context.Context, o RepairOptions) ([]brokenRecord, error) {
	all, err := d.allRecords(ctx, o)
	if err != nil {
		return nil, err
	}
	group, groupContext := errgroup.WithContext(ctx)
	group.SetLimit(records.Parallel)
	for _, r := range all {
		group.Go(func() (err error) {
			r.why, err = d.whyBroken(groupContext, r)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var found []brokenRecord
	for _, r := range all {
		if r.why != "" {
			found = append(found, *r)
		}
	}
	slices.SortStableFunc(found, func(a, b brokenRecord) int {
		return -cmp.Or(cmp.Compare(min(len(a.key.Namespace), 1), min(len(b.key.Namespace), 1)), cmp.Compare(min(len(a.key.Component), 1), min(len(b.key.Component), 1)))
	})
	return found, nil
}

// allRecords are those that there are, and those that there should be by what is in the cluster, sorted by their keys.
func (d *Deployer) allRecords(ctx context.Context, o RepairOptions) ([]*brokenRecord, error) {
	environments, err := d.Records.Documents.Environments(ctx)
	if err != nil {
		return nil, err
	}
	if o.Environment != "" {
		one, failure := d.Records.Documents.Environment(ctx, o.Environment)
		if failure != nil {
			return nil, failure
		}
		environments = []metalk8s.Environment{*one}
	}
	states := map[engine.Key]*engine.State{}
	lost, err := d.Records.Lost(ctx, engine.Kinds, nil, func() ([]*engine.State, error) {
		all, failure := d.Records.Engine.States(ctx)
		for _, s := range all {
			states[s.Key] = s
		}
		return all, failure
	})
	if err != nil {
		return nil, err
	}
	places := map[string]metalk8s.Namespace{}
	if o.Environment == "" {
		places[""] = metalk8s.Namespace{}
	}
	for _, e := range environments {
		for _, n := range e.Namespaces {
			places[n.Name] = n
		}
	}
	parts := partsThere(states, lost)
	keys := slices.Concat(slices.Collect(maps.Keys(states)), slices.Collect(maps.Keys(lost)), slices.Collect(maps.Keys(parts)))
	slices.SortFunc(keys, engine.CompareKeys)
	var all []*brokenRecord
	for _, key := range slices.Compact(keys) {
		n, inside := places[key.Namespace]
		if !inside && o.Environment == "" && key.Namespace != engine.UnknownNamespace {
			n, inside = metalk8s.Namespace{Name: key.Namespace}, true
		}
		if !inside || !o.Includes(key) {
			continue
		}
		owner := engine.Key{Namespace: key.Namespace, Name: key.Name}
		all = append(all, &brokenRecord{
			key: key, state: cmp.Or(states[key], &engine.State{Key: key}), lost: lost[key], namespace: n,
			owner: cmp.Or(states[owner], &engine.State{Key: owner}), parts: parts[key],
		})
	}
	return all, nil
}

// partsThere are the components that Solutions have, by the records that there are and by what is there and on none.
func partsThere(states map[engine.Key]*engine.State, lost map[engine.Key]*records.Unrecorded) map[engine.Key][]string {
	parts := map[engine.Key][]string{}
	add := func(key engine.Key) {
		owner := engine.Key{Namespace: key.Namespace, Name: key.Name}
		if key != owner && !slices.Contains(parts[owner], key.Component) {
			parts[owner] = append(parts[owner], key.Component)
		}
	}
	for key, s := range states {
		if _, deployed := records.DeployedVersion(s); deployed || s.Damage != nil {
			add(key)
		}
	}
	for key := range lost {
		add(key)
	}
	for _, names := range parts {
		slices.Sort(names)
	}
	return parts
}

// whyBroken tells what is wrong with a record, "" when nothing is.
func (d *Deployer) whyBroken(ctx context.Context, r *brokenRecord) (string, error) {
	_, deployed := records.DeployedVersion(r.state)
	switch {
	case r.state.Damage != nil:
		return "it cannot be read: " + r.state.Damage.Error(), nil
	case !deployed && r.lost != nil:
		return "it is lost, but this is here: " + r.lost.Text(), nil
	case !deployed && len(r.parts) > 0:
		return "it is lost, but components are here: " + strings.Join(r.parts, ", "), nil
	case !deployed || r.state.Current == nil || r.state.Current.Content == "":
		return "", nil
	}
	_, err := d.Records.Engine.Objects(ctx, r.key, r.state.Current)
	if report.CodeOf(err) == report.Corrupt {
		return "what was deployed cannot be read: " + err.Error(), nil
	}
	return "", err
}

// known reports that the record can be read, and only what was rendered for it is lost.
func (r *brokenRecord) known() bool {
	_, deployed := records.DeployedVersion(r.state)
	return deployed
}

// rebuild makes one record again, or only tells what would be on it.
func (d *Deployer) rebuild(ctx context.Context, run *plan.Run, r brokenRecord, write bool) error {
	if r.state.Damage != nil && report.CodeOf(r.state.Damage) != report.Corrupt {
		return r.state.Damage // it is of a newer version of this program
	}
	match, err := d.bestMatch(ctx, r)
	if err != nil {
		return fmt.Errorf("rebuild the record of %s: %w", r.key, err)
	}
	if !r.known() && len(match.Objects) == 0 && len(r.parts) == 0 {
		return r.hopeless(match.Match)
	}
	if write {
		if err := d.Records.Engine.Rebuild(ctx, match.Match); err != nil {
			return fmt.Errorf("rebuild the record of %s: %w", r.key, err)
		}
	}
	record := schema.ObjectRef{APIVersion: "v1", Kind: cluster.SecretKind.Kind, Namespace: cluster.SystemNamespace, Name: engine.RecordName(r.key)}
	part := schema.OperationPart{
		Namespace: r.key.Namespace, Solution: r.key.Name, Component: r.key.Component, Version: match.Release.Version,
		Changes: []schema.Change{{Action: schema.ActionUpdate, Object: record, Note: "the record is rebuilt: " + r.why}},
	}
	if !r.known() {
		for _, object := range match.Objects {
			part.Changes = append(part.Changes, schema.Change{Action: schema.ActionAdopt, Object: object.ObjectRef, Note: "put on record"})
		}
		run.Notice(r.leftOff(match.Match)...)
	}
	run.Notice(match.notices...)
	run.Rebuilt = append(run.Rebuilt, part)
	return nil
}

// leftOff tells what is not on a rebuilt record although the version has it, or our label is on it.
func (r *brokenRecord) leftOff(m *engine.Match) []string {
	var notices []string
	say := func(what string, refs []schema.ObjectRef) {
		var names []string
		for _, ref := range refs {
			names = append(names, ref.String())
		}
		if len(names) > 0 {
			notices = append(notices, fmt.Sprintf("%s, version %s: %s: %s", r.key, m.Release.Version, what, strings.Join(names, ", ")))
		}
	}
	again := report.Run("deploy activate", r.key.Name, m.Release.Version)
	if r.key.Namespace != "" {
		again = report.Run("deploy add", r.namespace.Environment, r.key.Name, m.Release.Version)
	}
	say("not on record, as they are not as the archive has them ('"+again.String()+"' takes them back)", m.Changed)
	say("not there any more ('"+again.String()+"' makes them)", m.Missing)
	say("of the same name, and without our label", m.Foreign)
	if r.lost == nil {
		return notices
	}
	rendered := map[schema.ObjectRef]bool{}
	for _, object := range m.Release.Objects {
		rendered[records.RefOf(object.GroupVersionKind(), object)] = true
	}
	var others []schema.ObjectRef
	for _, f := range r.lost.Ours {
		if ref := f.Deployed().ObjectRef; !rendered[ref] {
			others = append(others, ref)
		}
	}
	say("with our label, and not of this version", others)
	return notices
}

// hopeless is the error for a record of which no imported version has anything.
func (r *brokenRecord) hopeless(m *engine.Match) error {
	e := report.Errorf(report.Refused, "nothing of Solution %s in %s is as version %s has it", r.key.Name, r.key, m.Release.Version)
	if r.key.Namespace == "" {
		return e.WithHint("activate it again: %s", report.Run("deploy activate", r.key.Name))
	}
	return e.WithHint("add it again: %s", report.Run("deploy add", r.namespace.Environment, r.key.Name, "VERSION"))
}

// candidate is a version that a broken record may be about, and what is to be told of it.
type candidate struct {
	*engine.Match
	notices []string
}

// bestMatch is the imported version of which the cluster has most.
func (d *Deployer) bestMatch(ctx context.Context, r brokenRecord) (*candidate, error) {
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	likely, err := d.likelyVersions(ctx, catalog, r)
	if err != nil {
		return nil, err
	}
	var best *candidate
	for _, i := range likely {
		m, err := d.matchVersion(ctx, catalog, i, r)
		if err != nil {
			return nil, err
		}
		if best == nil || len(m.Objects) > len(best.Objects) {
			best = m
		}
		if len(m.Changed)+len(m.Missing)+len(m.Foreign) == 0 && len(m.Objects) > 0 {
			return m, nil
		}
	}
	return best, nil
}

// likelyVersions are the imported versions that may be what is deployed, the likeliest first: the one on record, else the one
// that is asked for, else from the highest down.
func (d *Deployer) likelyVersions(ctx context.Context, catalog *records.Catalog, r brokenRecord) ([]schema.Import, error) {
	versions := catalog.Of(r.key.Name)
	asked := r.namespace.Versions[r.key.Name]
	if r.key.Namespace == "" {
		solutions, err := d.Records.Documents.Solutions(ctx)
		if err != nil {
			return nil, err
		}
		asked = solutions.Active(r.key.Name)
	}
	parts, err := d.partStates(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, s := range append(parts, r.owner) {
		if s.Current != nil {
			asked = cmp.Or(s.Current.Version, asked)
		}
	}
	if r.known() {
		asked = r.state.Current.Version
		versions = slices.DeleteFunc(versions, func(i schema.Import) bool { return i.Version != asked })
	}
	if len(versions) == 0 {
		return nil, report.Errorf(report.NotImported, "no version of Solution %s that it could be is imported", r.key.Name).
			WithHint("import its archive and run the command again, or give the record up: kubectl delete secret -n %s %s", cluster.SystemNamespace, engine.RecordName(r.key))
	}
	slices.Reverse(versions)
	if at := slices.IndexFunc(versions, func(i schema.Import) bool { return i.Version == asked }); at > 0 {
		versions = slices.Concat(versions[at:at+1], versions[:at], versions[at+1:])
	}
	return versions, nil
}

// matchVersion renders a version as it may have been deployed and compares it with what is there.
func (d *Deployer) matchVersion(ctx context.Context, catalog *records.Catalog, i schema.Import, r brokenRecord) (*candidate, error) {
	renderer, err := d.planner().Renderer(ctx, catalog, i)
	if err != nil {
		return nil, err
	}
	if renderer.Settings.Imported, err = d.toldOf(ctx, r.key, renderer.Settings.Imported); err != nil {
		return nil, err
	}
	if r.key.Component != "" {
		return d.matchComponent(ctx, renderer, r)
	}
	p := renderer.Payload
	release := engine.Release{Key: r.key, Version: i.Version, Operation: schema.VerbRepair}
	if release.Settings, err = d.settingsOf(ctx, p, r); err != nil {
		return nil, err
	}
	if r.key.Namespace == "" {
		release.Objects, err = renderer.Activation(ctx, release.Settings)
	} else {
		release.Objects, err = renderer.Environment(ctx, r.namespace, release.Settings)
	}
	if err != nil {
		return nil, err
	}
	if r.key.Namespace == "" {
		// Where it does not go together any more, the definitions are told as changed.
		_, _ = d.Definitions.KeepServed(ctx, catalog, p, release.Objects)
	}
	if err = d.listComponents(ctx, p, r, &release); err != nil {
		return nil, err
	}
	m, err := d.Records.Engine.Match(ctx, release)
	return &candidate{Match: m}, err
}

// settingsOf are those of the record, or what can be told of them from what is there.
func (d *Deployer) settingsOf(ctx context.Context, p *render.Payload, r brokenRecord) (map[string]string, error) {
	if r.known() {
		return r.state.Current.Settings, nil
	}
	settings := map[string]string{}
	if p.Solution.Spec.Operator != nil && p.Solution.Spec.Operator.ClusterWide {
		settings[plan.SettingClusterWide] = "true"
	}
	if r.lost == nil {
		return settings, nil
	}
	for _, f := range r.lost.Ours {
		switch object := f.Object; {
		case r.key.Namespace == "" && object.GetKind() == "ClusterRoleBinding":
			settings[plan.SettingClusterWide] = "true"
		case r.key.Namespace == "" && object.GetKind() == "ValidatingAdmissionPolicyBinding" && object.GetName() == definitions.ProtectionName(r.key):
			settings[definitions.SettingProtect] = "true"
		case object.GetKind() == "Ingress":
			live, err := d.Cluster.Get(ctx, object.GroupVersionKind(), object.GetNamespace(), object.GetName())
			if err != nil {
				return nil, err
			}
			if class, _, _ := unstructured.NestedString(orEmpty(live).Object, "spec", "ingressClassName"); class != "" {
				settings[plan.SettingIngressClass] = class
			}
		case object.GetKind() == cluster.DeploymentKind.Kind && object.GetName() == records.OperatorName(r.key.Name):
			live, err := d.Cluster.Get(ctx, cluster.DeploymentKind, object.GetNamespace(), object.GetName())
			if err != nil {
				return nil, err
			}
			volumes, _, _ := unstructured.NestedSlice(orEmpty(live).Object, "spec", "template", "spec", "volumes")
			if slices.ContainsFunc(volumes, func(v any) bool {
				volume, _ := v.(map[string]any)
				return volume["name"] == "cert"
			}) {
				settings[plan.SettingWebhook] = "true"
			}
		}
	}
	return settings, nil
}

func orEmpty(object *unstructured.Unstructured) *unstructured.Unstructured {
	return cmp.Or(object, &unstructured.Unstructured{Object: map[string]any{}})
}

// toldOf are the versions that an operator was told of: those that were imported when it was deployed.
func (d *Deployer) toldOf(ctx context.Context, key engine.Key, imported []*render.Payload) ([]*render.Payload, error) {
	if key.Namespace == "" {
		return imported, nil
	}
	object, err := d.Cluster.Get(ctx, cluster.ConfigMapKind, key.Namespace, cmp.Or(key.Component, records.OperatorName(key.Name))+"-config")
	if err != nil || object == nil {
		return imported, err
	}
	text, _, _ := unstructured.NestedString(object.Object, "data", "operator.yaml")
	config, err := schema.ParseOperatorConfig("operator.yaml", []byte(text))
	if err != nil {
		return imported, nil //nolint:nilerr // it is told as changed
	}
	return slices.DeleteFunc(slices.Clone(imported), func(p *render.Payload) bool {
		return config.Repositories[p.Solution.Spec.Version] == nil
	}), nil
}
