package deployer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ChangeOptions select the next version of a Solution in an environment.
type ChangeOptions struct {
	plan.Options
	definitions.Losses
	Environment, Solution string
	Direction             records.Direction
	// Version is an imported version. For an upgrade "" stands for the active one, "latest" for the highest release.
	Version string
	// Namespace is one of the environment's; "" stands for all of them.
	Namespace string
	plan.Rendering
	// With are other Solutions of the environment that change in the same run, with their next versions: Solutions that need new versions of each
	// other cannot change one after the other. They keep their settings.
	With []schema.SolutionAt
	// RollBack restores the previous version when the new one does not become ready.
	RollBack bool
	// WaitApps waits until the custom resources of the Solutions are ready, too; only then the change has succeeded.
	WaitApps bool
}

// Change replaces the version of a Solution in namespaces of an environment by a higher or a lower one.
func (d *Deployer) Change(ctx context.Context, o ChangeOptions) (*schema.Operation, error) {
	run := d.begin(schema.Operation{Operation: string(o.Direction), Solution: o.Solution, Environment: o.Environment}, o.Options)
	run.Losses = o.Losses
	done, err := run.InNamespaces(ctx, o.Namespace, func(ctx context.Context) error {
		if err := run.ReadCatalog(ctx); err != nil {
			return err
		}
		if err := o.check(); err != nil {
			return err
		}
		return run.Change(ctx, o.Direction, o.wanted()...)
	})
	if err == nil && o.WaitApps && !o.DryRun {
		err = awaitInstances(ctx, d, done, o.Timeout)
	}
	if err == nil || o.DryRun || ctx.Err() != nil || done == nil {
		return done, err
	}
	if !o.RollBack {
		if report.CodeOf(err) == report.Timeout {
			err = withLastHint(err, "or go back: %s", report.Run("deploy rollback", o.Environment, o.Solution).In(o.Namespace))
		}
		return done, err
	}
	return done, d.takeBack(ctx, &o, run, err)
}

// takeBack rolls back what a run has begun before it failed, and nothing else. Solutions that changed in the same run go back together.
func (d *Deployer) takeBack(ctx context.Context, o *ChangeOptions, run *plan.Run, err error) error {
	var all []string
	for _, w := range o.wanted() {
		back := RollbackOptions{Options: o.Options, Environment: o.Environment, Solution: w.Solution, Namespace: o.Namespace}
		back.ReplaceIfPlanned, back.Expect = true, "" // the digest was that of the change
		back.begun = slices.DeleteFunc(run.Begun(w.Solution), func(namespace string) bool { return slices.Contains(all, namespace) })
		if len(back.begun) == 0 {
			continue
		}
		all = append(all, back.begun...)
		if _, failed := d.Rollback(ctx, back); failed != nil {
			return report.Errorf(report.CodeOf(err), "%w\nand the rollback failed, too: %w", err, failed)
		}
	}
	if len(all) == 0 {
		return err
	}
	// The hint of the failure is about a version that is no longer deployed.
	return report.Errorf(report.CodeOf(err), "%s\neverything is back as it was before", err).
		WithHint("repair the cause, and run the command again")
}

// withLastHint adds an alternative after the hints of an error.
func withLastHint(err error, format string, remedy report.Remedy) error {
	hints := append(report.Hints(err), fmt.Sprintf(format, remedy))
	last := report.WithoutHints(err).WithHint("%s", strings.Join(hints, "\n"))
	last.Remedies = append(report.RemediesOf(err), remedy)
	return last
}

// check refuses options that do not go together.
func (o *ChangeOptions) check() error {
	if o.Direction == records.Down && o.Version == "" {
		return report.Errorf(report.Usage, "a downgrade needs the version to go to")
	}
	if o.RollBack && len(o.Helm) > 0 {
		return report.Errorf(report.Usage, "an adopted Helm release cannot be given back: a rollback would remove it").
			WithHint("leave out --on-failure rollback; the same command continues once the cause of a failure is repaired")
	}
	return nil
}

// wanted lists all Solutions that change.
func (o *ChangeOptions) wanted() []plan.Wanted {
	list := []plan.Wanted{{Solution: o.Solution, Version: o.Version, Rendering: o.Rendering}}
	for _, at := range o.With {
		list = append(list, plan.Wanted{Solution: at.Solution, Version: at.Version, Rendering: plan.Rendering{AcceptHazards: o.AcceptHazards}})
	}
	return list
}
