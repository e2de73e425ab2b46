package loader

import (
	"context"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// timeToStop is the least wait for a launcher that is about to start a run, or runs one in its own process: it checks
// every few seconds whether it was stopped.
const timeToStop = 30 * time.Second

// StopOptions select what happens to the loaded Solutions.
type StopOptions struct {
	Prune  bool // remove the Solutions that left the configuration
	DryRun bool // stop nothing, and only plan the removals
}

// Confirmation returns the question before the removals of a plan.
func (o StopOptions) Confirmation(plan *schema.LoaderPlan) report.Confirmation {
	if o.DryRun || len(plan.Remove) == 0 {
		return report.Confirmation{}
	}
	list := report.ConfirmationList{Title: "What the configuration no longer lists will be removed"}
	for _, at := range plan.Unlisted {
		list.Items = append(list.Items, "Solution "+at.Solution+" in environment "+at.Environment)
	}
	return report.Confirmation{Question: "remove it", Lists: []report.ConfirmationList{list}}
}

// Stop ends a run in progress, wherever it runs, and repairs. After that only the ConfigMap with the loaded Solutions
// is left of the loader. It waits for a launcher that is about to start a run, so that it does not start it afterwards;
// where that takes too long, the error has the code Locked. Loaded Solutions stay, except those that o.Prune removes,
// which the returned plan lists. If they cannot be removed, nothing is stopped either.
func (l *Launcher) Stop(ctx context.Context, o StopOptions) (*schema.LoaderPlan, error) {
	plan := newPlan()
	if o.Prune {
		if err := l.leave(ctx, &plan, true); err != nil || o.DryRun {
			return &plan, err
		}
	}
	if err := l.interrupt(ctx); err != nil { // a launcher that runs in its own process has the lock, and checks for this
		return nil, err
	}
	config := l.Deployer.Config
	config.LockWait = max(config.LockWait, timeToStop) // for those of a pod that was killed, too
	l = &Launcher{Deployer: deployer.New(config), Configuration: l.Configuration}
	return &plan, l.Deployer.Locked(ctx, func(ctx context.Context) error {
		err := l.stop(ctx)
		if err == nil && o.Prune {
			err = l.leave(ctx, &plan, false)
		}
		if err == nil {
			cluster.DiscardLocks(ctx)
		}
		return err
	}, lockName)
}

// leave removes the Solutions that left the configuration, or plans it.
func (l *Launcher) leave(ctx context.Context, plan *schema.LoaderPlan, dry bool) error {
	parameters, err := l.resolve(ctx, l.spec())
	if err != nil {
		return err
	}
	progress, _, err := readProgress(ctx, l.Deployer.Cluster)
	if err != nil {
		return err
	}
	plan.Unlisted = unlisted(progress, parameters)
	plan.Remove, err = l.prune(ctx, progress, parameters, dry)
	return err
}

// stop removes the objects of runs and repairs, under the lock.
func (l *Launcher) stop(ctx context.Context) error {
	if err := l.interrupt(ctx); err != nil { // first, so that followers of the run know that it has not failed
		return err
	}
	jobs, err := l.jobs(ctx)
	if err != nil {
		return err
	}
	for _, job := range jobs {
		if err = l.remove(ctx, job); err != nil {
			return err
		}
	}
	for _, name := range []string{accountName, repairName} {
		if err = l.drop(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// interrupt records that a user has stopped the run in progress.
func (l *Launcher) interrupt(ctx context.Context) error {
	return rewrite(ctx, l.Deployer.Cluster, func(progress *schema.LoadProgress) bool {
		if stopped(progress) || progress.Phase.Ended() && progress.Phase != schema.LoadInterrupted {
			return false
		}
		progress.Phase = schema.LoadInterrupted
		progress.Error = &schema.LoadError{
			Code: report.Interrupted, Message: short(l.Deployer.Identity + " has stopped it"), Hint: report.Run("deploy loader start").String(),
		}
		return true
	})
}

// stopped reports whether a user has stopped a run: it is over until the next start. A run that was only interrupted is
// not, since another pod can continue it.
func stopped(p *schema.LoadProgress) bool { return p.Phase == schema.LoadInterrupted && p.Error != nil }
