package loader

import (
	"context"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// timeToStop is for how long at least a launcher is waited for that begins a run, or does one in its own process: it looks for
// somebody who has stopped it every few seconds.
const timeToStop = 30 * time.Second

// StopOptions say what becomes of what was loaded.
type StopOptions struct {
	Prune  bool // remove what is not in the configuration any more
	DryRun bool // stop nothing, and only plan what would be removed
}

// Confirmation is what to ask before what a plan names is removed.
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

// Stop ends a run that is under way, wherever it is, and repairs. With all of it going well nothing of the loader is left but the
// ConfigMap that tells what was loaded. A launcher that is about to begin a run is waited for, so that it does not begin it
// afterwards; where that takes too long the error has the code Locked. What was loaded stays, but what o.Prune removes: the plan of
// that comes back. Where it cannot be removed, nothing is stopped either.
func (l *Launcher) Stop(ctx context.Context, o StopOptions) (*schema.LoaderPlan, error) {
	plan := newPlan()
	if o.Prune {
		if err := l.leave(ctx, &plan, true); err != nil || o.DryRun {
			return &plan, err
		}
	}
	if err := l.interrupt(ctx); err != nil { // whoever does the run in their own process has the lock, and looks for this
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

// leave removes what is not in the configuration any more, or plans it.
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

// stop removes what a run and repairs need, under the lock.
func (l *Launcher) stop(ctx context.Context) error {
	if err := l.interrupt(ctx); err != nil { // first, so that whoever follows the run knows that nothing has failed
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

// interrupt writes of a run that is under way that somebody has stopped it.
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

// stopped tells whether somebody has stopped a run: it is over until the next start. One that was interrupted is not, another pod
// may go on with it.
func stopped(p *schema.LoadProgress) bool { return p.Phase == schema.LoadInterrupted && p.Error != nil }
