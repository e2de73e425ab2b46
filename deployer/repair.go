package deployer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// RepairOptions say what to repair; empty fields stand for everything.
type RepairOptions struct {
	Options
	survey.Selection
	// Yield leaves to others what they apply, or have made again, and brings back all else. What was left is kept, with a note.
	Yield bool
}

// Repair brings back what [Deployer.Diff] finds, and nothing else: fields that were applied and that somebody has changed,
// objects that are gone, and versions in the shared documents that are not those that are deployed. Fields that another manager applies
// are a conflict, unless o.Force is set, and objects that somebody else has made in their place, unless o.Adopt is. It removes nothing
// and never touches a CustomResourceDefinition. Where nothing was changed no lock is taken.
func (d *Deployer) Repair(ctx context.Context, o RepairOptions) (*schema.Operation, error) {
	t := &task{Operation: schema.Operation{Operation: schema.VerbRepair, Solution: o.Solution, Environment: o.Environment, Planned: o.DryRun}}
	states, namespaces, notices, err := d.Survey.Deployed(ctx, o.Selection)
	if err != nil {
		return nil, err
	}
	t.notice(notices...)
	if len(states) == 0 && o.Solution != "" {
		return nil, report.Errorf(report.Refused, "Solution %s cannot be repaired: %s", o.Solution, strings.Join(t.Notices, "; ")).
			WithHint("'%s' shows how it is", report.Run("deploy status"))
	}
	plans, unread, err := d.Survey.Drift(ctx, states)
	if err != nil {
		return nil, err
	}
	if err = t.unread(unread, o.Selection); err != nil {
		return nil, err
	}
	changes, _, err := d.Records.VersionDrift(ctx, states, namespaces)
	if err != nil {
		return nil, err
	}
	changed := map[engine.Key]bool{}
	var locks []string
	for _, p := range plans {
		if p.Empty() && p.Resumes == nil && !slices.ContainsFunc(changes, func(c schema.Change) bool { return recordOf(c, p.Release.Namespace) }) {
			continue
		}
		changed[p.Release.Key] = true
		locks = append(locks, lockOf(p.Release.Namespace))
	}
	if len(changed) == 0 {
		t.plans = plans
		return t.settle(o.Options)
	}
	return d.perform(ctx, o.Options, locks, func(ctx context.Context) (*task, error) {
		t := &task{Operation: schema.Operation{Operation: schema.VerbRepair, Solution: o.Solution, Environment: o.Environment}}
		if failure := t.unread(unread, o.Selection); failure != nil {
			return nil, failure
		}
		return t, d.planRepair(ctx, t, changed, o)
	})
}

// planRepair plans to bring back what was changed of some releases.
func (d *Deployer) planRepair(ctx context.Context, t *task, changed map[engine.Key]bool, o RepairOptions) error {
	all, namespaces, notices, err := d.Survey.Deployed(ctx, o.Selection)
	if err != nil {
		return err
	}
	t.notice(notices...)
	var states []*engine.State
	for _, s := range all {
		if changed[s.Key] {
			states = append(states, s)
		}
	}
	if t.records, t.after, err = d.Records.VersionDrift(ctx, states, namespaces); err != nil {
		return err
	}
	releases, _, err := d.Records.Engine.Deployed(ctx, states)
	if err != nil {
		return err
	}
	noted := toldOptions(o.Options)
	noted.Components = o.Components
	given, err := noted.encode()
	if err != nil {
		return err
	}
	for i := range releases {
		releases[i].Operation, releases[i].Given = schema.VerbRepair, given
	}
	options := o.plan()
	options.Restore, options.Yield = true, o.Yield
	if t.plans, err = d.Records.Engine.PlanAll(ctx, releases, options); err != nil {
		return err
	}
	for _, p := range t.plans {
		for _, change := range p.Changes {
			if change.Action == schema.ActionKeep && change.Object.Kind == cluster.DefinitionKind.Kind {
				t.notice(fmt.Sprintf("%s was changed, and a repair does not touch definitions: %s",
					change.Object, report.Run("deploy activate", p.Release.Name, p.Release.Version)))
			}
		}
	}
	return nil
}
