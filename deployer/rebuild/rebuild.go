// Package rebuild writes records again that are lost or cannot be read.
//
// [Find] lists such records, and [Problems] also finds unreadable imports. [Records] compares the labeled objects of the cluster with the imported versions, and records those that are as
// the best matching version has them. It changes no other object: what differs is reported.
package rebuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Options select the records to rebuild; empty fields select all.
type Options struct {
	plan.Options
	survey.Selection
}

// Records rebuilds broken records under the locks of their namespaces. A failure does not stop the others.
func Records(ctx context.Context, p *plan.Planner, o Options) (*schema.Operation, error) {
	if err := o.ExpectsNothing("what is made again of records"); err != nil {
		return nil, err
	}
	broken, err := Find(ctx, p, o.Selection)
	if err != nil {
		return nil, err
	}
	run := p.Begin(schema.Operation{Operation: schema.VerbRepair, Solution: o.Solution, Environment: o.Environment, Planned: o.DryRun}, o.Options)
	var locks []string
	for _, r := range broken {
		locks = append(locks, cluster.LockOf(r.key.Namespace))
	}
	rebuild := func(ctx context.Context) error {
		var errs []error
		for _, r := range broken {
			if slices.Contains(locks, cluster.LockOf(r.key.Namespace)) {
				errs = append(errs, r.rebuild(ctx, run))
			}
		}
		return errors.Join(errs...)
	}
	if o.DryRun || len(broken) == 0 {
		err = rebuild(ctx)
		return run.Report(), err
	}
	for _, need := range [][]cluster.Permission{rights.Lock(), rights.WriteRecords()} {
		if err = p.Cluster.Require(ctx, need); err != nil {
			return nil, err
		}
	}
	err = p.Locked(ctx, func(ctx context.Context) (err error) {
		// Another process may have repaired them before the locks were taken.
		if broken, err = Find(ctx, p, o.Selection); err != nil {
			return err
		}
		return rebuild(ctx)
	}, locks...)
	return run.Report(), err
}

// Record is a record that is lost or cannot be read.
type Record struct {
	*plan.Planner
	key       record.Key
	why       string
	state     *record.State
	lost      *records.Unrecorded // labeled objects that are not recorded; nil for none
	namespace metalk8s.Namespace  // of the environment; without a name for the whole cluster
	owner     *record.State       // of a component: the record of its Solution
	parts     []string            // of a Solution: its components in the cluster
}

// Problem returns what is wrong with the record.
func (r *Record) Problem() string { return fmt.Sprintf("record of %s: %s", r.key, r.why) }

// IsDamaged reports whether the record exists and cannot be parsed.
func (r *Record) IsDamaged() bool { return r.state.Damage != nil }

// Remedy returns the commands that mend the record, or the hints of a record that a newer version of this program wrote.
func (r *Record) Remedy() string {
	if r.IsDamaged() && report.CodeOf(r.state.Damage) != report.Corrupt {
		return strings.Join(report.Hints(r.state.Damage), "; ")
	}
	return survey.Rebuilding(r.namespace.Environment, r.key).String()
}

// Find returns the broken records of a selection in the order to rebuild them: components before their Solution, whose record lists them, and
// records of the whole cluster last, as the CRDs that they keep serving depend on the others.
func Find(ctx context.Context, p *plan.Planner, o survey.Selection) ([]*Record, error) {
	all, err := list(ctx, p, o)
	if err != nil {
		return nil, err
	}
	group, groupContext := errgroup.WithContext(ctx)
	group.SetLimit(records.Parallel)
	for _, r := range all {
		group.Go(func() (err error) {
			r.why, err = r.whyBroken(groupContext)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	found := slices.DeleteFunc(all, func(r *Record) bool { return r.why == "" })
	slices.SortStableFunc(found, func(a, b *Record) int {
		return -cmp.Or(cmp.Compare(min(len(a.key.Namespace), 1), min(len(b.key.Namespace), 1)), cmp.Compare(min(len(a.key.Component), 1), min(len(b.key.Component), 1)))
	})
	return found, nil
}

// list returns the stored records, and those that labeled objects in the cluster belong to, sorted by key.
func list(ctx context.Context, p *plan.Planner, o survey.Selection) ([]*Record, error) {
	environments, err := p.Records.Documents.Environments(ctx)
	if err != nil {
		return nil, err
	}
	places := map[string]metalk8s.Namespace{}
	if o.Environment == "" {
		places[""] = metalk8s.Namespace{}
	} else {
		one, failure := p.Records.Documents.Environment(ctx, o.Environment)
		if failure != nil {
			return nil, failure
		}
		environments = []metalk8s.Environment{*one}
	}
	for _, e := range environments {
		for _, n := range e.Namespaces {
			places[n.Name] = n
		}
	}
	objects, err := p.Records.Engine.Labelled(ctx, engine.Kinds)
	if err != nil {
		return nil, err
	}
	recorded, err := p.Records.Engine.States(ctx)
	if err != nil {
		return nil, err
	}
	lost, err := p.Records.Lost(ctx, objects, recorded)
	if err != nil {
		return nil, err
	}
	states := map[record.Key]*record.State{}
	for _, s := range recorded {
		states[s.Key] = s
	}
	parts := componentsBySolution(states, lost)
	keys := slices.Concat(slices.Collect(maps.Keys(states)), slices.Collect(maps.Keys(lost)), slices.Collect(maps.Keys(parts)))
	slices.SortFunc(keys, record.CompareKeys)
	var all []*Record
	for _, key := range slices.Compact(keys) {
		n, inside := places[key.Namespace]
		if !inside && o.Environment == "" && key.Namespace != record.UnknownNamespace {
			n, inside = metalk8s.Namespace{Name: key.Namespace}, true
		}
		if !inside || !o.Includes(key) {
			continue
		}
		owner := record.Key{Namespace: key.Namespace, Name: key.Name}
		all = append(all, &Record{
			Planner: p, key: key, state: cmp.Or(states[key], &record.State{Key: key}), lost: lost[key], namespace: n,
			owner: cmp.Or(states[owner], &record.State{Key: owner}), parts: parts[key],
		})
	}
	return all, nil
}

// componentsBySolution returns the names of the components that are recorded, or of which the cluster has unrecorded objects.
func componentsBySolution(states map[record.Key]*record.State, lost map[record.Key]*records.Unrecorded) map[record.Key][]string {
	parts := map[record.Key][]string{}
	add := func(key record.Key) {
		owner := record.Key{Namespace: key.Namespace, Name: key.Name}
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

// whyBroken returns what is wrong with a record; "" for an intact one.
func (r *Record) whyBroken(ctx context.Context) (string, error) {
	known := r.known()
	switch {
	case r.state.Damage != nil:
		return "it cannot be read: " + r.state.Damage.Error(), nil
	case !known && r.lost != nil:
		return "it is lost, but this is here: " + r.lost.Text(), nil
	case !known && len(r.parts) > 0:
		return "it is lost, but components are here: " + strings.Join(r.parts, ", "), nil
	case !known || r.state.Current == nil || r.state.Current.Content == "":
		return "", nil
	}
	_, err := r.Records.Engine.Objects(ctx, r.key, r.state.Current)
	if report.CodeOf(err) == report.Corrupt {
		return "what was deployed cannot be read: " + err.Error(), nil
	}
	return "", err
}

// known reports whether the record can be read, so that only the objects that were rendered for it are lost.
func (r *Record) known() bool {
	_, deployed := records.DeployedVersion(r.state)
	return deployed
}

// rebuild rebuilds one record and reports it in the run. In a dry run it only reports.
func (r *Record) rebuild(ctx context.Context, run *plan.Run) error {
	if r.IsDamaged() && report.CodeOf(r.state.Damage) != report.Corrupt {
		return r.state.Damage // it is of a newer version of this program
	}
	match, err := r.bestMatch(ctx)
	if err != nil {
		return fmt.Errorf("rebuild the record of %s: %w", r.key, err)
	}
	if !r.known() && len(match.Objects) == 0 && len(r.parts) == 0 {
		return r.noMatch(match.Match)
	}
	if !run.DryRun {
		if err := r.Records.Engine.Rebuild(ctx, match.Match); err != nil {
			return fmt.Errorf("rebuild the record of %s: %w", r.key, err)
		}
	}
	record := schema.ObjectRef{APIVersion: "v1", Kind: cluster.SecretKind.Kind, Namespace: cluster.SystemNamespace, Name: r.key.SecretName()}
	part := schema.OperationPart{
		Namespace: r.key.Namespace, Solution: r.key.Name, Component: r.key.Component, Version: match.Release.Version,
		Changes: []schema.Change{{Action: schema.ActionUpdate, Object: record, Note: "the record is rebuilt: " + r.why}},
	}
	if !r.known() {
		for _, object := range match.Objects {
			part.Changes = append(part.Changes, schema.Change{Action: schema.ActionAdopt, Object: object.ObjectRef, Note: "put on record"})
		}
		run.Notice(r.differences(match.Match)...)
	}
	run.Notice(match.notices...)
	run.Rebuilt = append(run.Rebuilt, part)
	return nil
}

// differences lists objects that are not recorded although the version has them, or although they have our label.
func (r *Record) differences(m *engine.Match) (notices []string) {
	add := func(what string, refs []schema.ObjectRef) {
		if len(refs) == 0 {
			return
		}
		names := make([]string, len(refs))
		for i, ref := range refs {
			names[i] = ref.String()
		}
		notices = append(notices, fmt.Sprintf("%s, version %s: %s: %s", r.key, m.Release.Version, what, strings.Join(names, ", ")))
	}
	again := report.Run("deploy activate", r.key.Name, m.Release.Version)
	if r.key.Namespace != "" {
		again = report.Run("deploy add", r.namespace.Environment, r.key.Name, m.Release.Version).In(r.key.Namespace)
	}
	add("not on record, as they are not as the archive has them ('"+again.String()+"' takes them back)", m.Changed)
	add("not there any more ('"+again.String()+"' makes them)", m.Missing)
	add("of the same name, and without our label", m.Foreign)
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
	add("with our label, and not of this version", others)
	return notices
}

// noMatch is the error for a record that has no object in common with any imported version.
func (r *Record) noMatch(m *engine.Match) error {
	e := report.Errorf(report.Refused, "nothing of Solution %s in %s is as version %s has it", r.key.Name, r.key, m.Release.Version)
	if r.key.Namespace == "" {
		return e.WithHint("activate it again: %s", report.Run("deploy activate", r.key.Name))
	}
	return e.WithHint("add it again: %s", report.Run("deploy add", r.namespace.Environment, r.key.Name, "VERSION").In(r.key.Namespace))
}
