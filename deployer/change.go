package deployer

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
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
			err = withLastHint(err, "or go back: %s", report.Run("deploy rollback", o.Environment, o.Solution))
		}
		return done, err
	}
	back := RollbackOptions{Options: o.Options, Environment: o.Environment, Solution: o.Solution, Namespace: o.Namespace}
	back.ReplaceIfPlanned, back.Expect = true, "" // the digest was that of the change
	if _, failed := d.Rollback(ctx, back); failed != nil {
		return done, report.Errorf(report.CodeOf(err), "%w\nand the rollback failed, too: %w", err, failed)
	}
	// The hint of the failure is about a version that is no longer deployed.
	return done, report.Errorf(report.CodeOf(err), "%s\neverything is back as it was before", err).
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

// AddOptions select the version to add to an environment.
type AddOptions struct {
	plan.Options
	Environment, Solution string
	// Version is an imported version; "" stands for the active one and "latest" for the highest release.
	Version string
	// Namespace is one of the environment's; "" stands for all of them.
	Namespace string
	plan.Rendering
}

// Add deploys an imported version of a Solution in the namespaces of an environment.
func (d *Deployer) Add(ctx context.Context, o AddOptions) (*schema.Operation, error) {
	run := d.begin(schema.Operation{Operation: schema.VerbAdd, Environment: o.Environment}, o.Options)
	return run.InNamespaces(ctx, o.Namespace, func(ctx context.Context) error {
		if err := run.ReadCatalog(ctx); err != nil {
			return err
		}
		found, err := run.Choose(ctx, o.Solution, o.Version)
		if err != nil {
			return err
		}
		run.Solution, run.Version = found.Name, found.Version
		if err = run.CheckAbsent(ctx, found); err != nil {
			return err
		}
		return run.Place(ctx, []*plan.Placement{{Import: found, Verb: schema.VerbAdd, Namespaces: run.Namespaces, Rendering: o.Rendering}})
	})
}

// RemoveOptions select the Solution to remove from an environment.
type RemoveOptions struct {
	plan.Options
	Environment, Solution string
	Namespace             string // one of the environment's; "" stands for all of them
	Data                  plan.DataPolicy
	Export                definitions.Export // where custom resources go before they are deleted
	Going                 []string           // other Solutions that leave the environment before this one: what they need is not kept for them
}

// Remove deletes a Solution from namespaces of an environment. It refuses while unrecorded objects of the Solution exist, unless o.Adopt deletes
// them, too.
func (d *Deployer) Remove(ctx context.Context, o RemoveOptions) (*schema.Operation, error) {
	run := d.begin(schema.Operation{Operation: schema.VerbRemove, Solution: o.Solution, Environment: o.Environment}, o.Options)
	run.Export = o.Export
	return run.InNamespaces(ctx, o.Namespace, func(ctx context.Context) error { return run.Remove(ctx, o.Data, o.Going...) })
}

// RollbackOptions select the Solution to roll back.
type RollbackOptions struct {
	plan.Options
	definitions.Losses
	Environment, Solution string
	Namespace             string // one of the environment's; "" stands for all of them
	Revision              int64  // of the history; 0 stands for the one before
}

// Rollback restores the objects of an earlier revision as they were rendered then: of the revision before an interrupted operation, else of the one
// before the last. Solutions that changed in the same run are rolled back together, unless a revision is named. CRDs belong to the whole cluster and do
// not change; it first checks that they serve the earlier version. After a completed rollback it changes nothing, unless a revision is named.
func (d *Deployer) Rollback(ctx context.Context, o RollbackOptions) (*schema.Operation, error) {
	run := d.begin(schema.Operation{Operation: schema.VerbRollback, Solution: o.Solution, Environment: o.Environment}, o.Options)
	run.Losses = o.Losses
	return run.InNamespaces(ctx, o.Namespace, func(ctx context.Context) error {
		if err := run.ReadCatalog(ctx); err != nil {
			return err
		}
		return run.RollBack(ctx, o.Revision)
	})
}

// awaitInstances waits until the custom resources of the changed Solutions are ready in the namespaces of an operation.
func awaitInstances(ctx context.Context, d *Deployer, done *schema.Operation, timeout time.Duration) error {
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return err
	}
	var objects []schema.ObjectRef
	for _, part := range done.Parts {
		if part.Namespace == "" {
			continue
		}
		found, _, err := catalog.Find(cmp.Or(part.Solution, done.Solution), cmp.Or(part.Version, done.Version))
		if err != nil {
			return err
		}
		p, err := d.Records.Payload(ctx, found)
		if err != nil {
			return err
		}
		own, err := render.Definitions(p)
		if err != nil {
			return err
		}
		var names []string
		for _, definition := range own {
			names = append(names, definition.GetName())
		}
		live, err := d.Definitions.Existing(ctx, names...)
		if err != nil {
			return err
		}
		list, err := d.Definitions.Instances(ctx, live, part.Namespace)
		if err != nil {
			return err
		}
		for _, one := range list {
			objects = append(objects, records.RefOf(one.Kind, one.Object))
		}
	}
	if len(objects) == 0 {
		return nil
	}
	if err := d.Records.Engine.Await(ctx, objects, cmp.Or(timeout, records.DefaultTimeout)); err != nil {
		return fmt.Errorf("the Solution is deployed, but not all of its custom resources are ready: %w", err)
	}
	return nil
}
