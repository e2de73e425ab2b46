package deployer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// RepairOptions select the Solutions to repair; empty fields select all.
type RepairOptions struct {
	plan.Options
	survey.Selection
	// Yield leaves fields and objects to the managers that apply or created them again, and restores all others. The report lists what it left alone.
	Yield bool
}

// Repair restores the differences that [Deployer.Diff] finds, and nothing else: changed fields, deleted objects, and wrong versions in the shared
// documents. Fields that another manager applies are a conflict unless o.Force is set, and objects that others created again unless o.Adopt is. It
// deletes nothing, never changes a CustomResourceDefinition, and takes no lock if there are no differences.
func (d *Deployer) Repair(ctx context.Context, o RepairOptions) (*schema.Operation, error) {
	head := schema.Operation{Operation: schema.VerbRepair, Solution: o.Solution, Environment: o.Environment}
	run := d.begin(head, o.Options)
	run.Planned = o.DryRun
	states, namespaces, notices, err := d.Survey.Deployed(ctx, o.Selection)
	if err != nil {
		return nil, err
	}
	run.Notice(notices...)
	if len(states) == 0 && o.Solution != "" {
		return nil, report.Errorf(report.Refused, "Solution %s cannot be repaired: %s", o.Solution, strings.Join(run.Notices, "; ")).
			WithHint("'%s' shows how it is", report.Run("deploy status"))
	}
	plans, unread, err := d.Survey.Drift(ctx, states)
	if err != nil {
		return nil, err
	}
	if err = noticeUnread(run, unread, o.Selection); err != nil {
		return nil, err
	}
	changes, _, err := d.Records.VersionDrift(ctx, states, namespaces)
	if err != nil {
		return nil, err
	}
	changed := map[record.Key]bool{}
	var locks []string
	for _, p := range plans {
		if p.Empty() && p.Resumes == nil && !slices.ContainsFunc(changes, func(c schema.Change) bool { return plan.IsRecordOf(c, p.Release.Namespace) }) {
			continue
		}
		changed[p.Release.Key] = true
		locks = append(locks, cluster.LockOf(p.Release.Namespace))
	}
	if len(changed) == 0 {
		run.Plans = plans
		noticeLeftOut(run, namespaces)
		return run.Settle()
	}
	run = d.begin(head, o.Options)
	return run.Do(ctx, func(ctx context.Context) error {
		if err := noticeUnread(run, unread, o.Selection); err != nil {
			return err
		}
		states, err := o.plan(ctx, run, changed)
		if err != nil {
			return err
		}
		return d.listRestored(ctx, run, states)
	}, locks...)
}

// noticeLeftOut names the commands that restore what a repair leaves out. They judge what the objects can do, and a repair does not.
func noticeLeftOut(run *plan.Run, namespaces map[string]metalk8s.Namespace) {
	for _, p := range run.Plans {
		remedy := fmt.Sprintf("'%s' restores it", report.Run("deploy activate", p.Release.Name, p.Release.Version))
		if n := namespaces[p.Release.Namespace]; n.Environment != "" {
			remedy = fmt.Sprintf("'%s' restores it", report.Run("deploy add", n.Environment, p.Release.Name, p.Release.Version).In(p.Release.Namespace))
		} else if p.Release.Namespace != "" {
			remedy = fmt.Sprintf("namespace %s is part of no environment", p.Release.Namespace)
		}
		for _, change := range p.Changes {
			if engine.IsLeftOut(change) {
				run.Notice(fmt.Sprintf("%s: %s; %s", change.Object, change.Note, remedy))
			}
		}
	}
}

// plan plans to restore changed releases, and returns their states.
func (o *RepairOptions) plan(ctx context.Context, run *plan.Run, changed map[record.Key]bool) (states []*record.State, err error) {
	all, namespaces, notices, err := run.Survey.Deployed(ctx, o.Selection)
	if err != nil {
		return nil, err
	}
	run.Notice(notices...)
	for _, s := range all {
		if changed[s.Key] {
			states = append(states, s)
		}
	}
	if run.Changes, run.After, err = run.Records.VersionDrift(ctx, states, namespaces); err != nil {
		return nil, err
	}
	releases, _, err := run.Records.Engine.Deployed(ctx, states)
	if err != nil {
		return nil, err
	}
	saved, err := o.Save(o.Components...)
	if err != nil {
		return nil, err
	}
	for i := range releases {
		releases[i].Operation, releases[i].SavedOptions = schema.VerbRepair, saved
	}
	if err = run.Restore(ctx, o.Yield, releases...); err != nil {
		return nil, err
	}
	noticeLeftOut(run, namespaces)
	for _, p := range run.Plans {
		for _, change := range p.Changes {
			if change.Action == schema.ActionKeep && change.Object.Kind == cluster.DefinitionKind.Kind {
				run.Notice(fmt.Sprintf("%s was changed, and a repair does not change CRDs: %s",
					change.Object, report.Run("deploy activate", p.Release.Name, p.Release.Version)))
			}
		}
	}
	return states, nil
}
