package loader

import (
	"context"
	"errors"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// timeToStop is for how long at least a launcher is waited for that begins a run, or does one in its own process: it looks for
// somebody who has stopped it every few seconds.
const timeToStop = 30 * time.Second

// Stop ends a run that is under way, wherever it is, and repairs; what was loaded stays. With all of it going well nothing of the
// loader is left but the ConfigMap that tells what was loaded. A launcher that is about to begin a run is waited for, so that it
// does not begin it afterwards; where that takes too long the error has the code Locked.
func (l *Launcher) Stop(ctx context.Context) error {
	if err := l.interrupt(ctx); err != nil { // whoever does the run in their own process has the lock, and looks for this
		return err
	}
	d := l.Deployer
	locks, err := d.Cluster.LockAll(ctx, []string{lockName}, cluster.LockOptions{Identity: d.Identity, Wait: max(d.LockWait, timeToStop), Sink: d.Sink})
	if err != nil {
		return err
	}
	return errors.Join(l.stop(cluster.WithGuard(ctx, locks)), locks.Release(ctx))
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
	const tries = 10 // a run writes twice a second
	for n := 1; ; n++ {
		progress, object, err := readProgress(ctx, l.Deployer.Cluster)
		if err != nil || progress == nil || stopped(progress) || progress.Phase.Ended() && progress.Phase != schema.LoadInterrupted {
			return err
		}
		progress.Phase = schema.LoadInterrupted
		progress.Error = &schema.LoadError{
			Code: report.Interrupted, Message: short(l.Deployer.Identity + " has stopped it"), Hint: report.Run("deploy loader start").String(),
		}
		if _, err = writeProgress(ctx, l.Deployer.Cluster, object, progress); !errors.Is(err, cluster.ErrChanged) || n == tries {
			return err
		}
	}
}

// stopped tells whether somebody has stopped a run: it is over until the next start. One that was interrupted is not, another pod
// may go on with it.
func stopped(p *schema.LoadProgress) bool { return p.Phase == schema.LoadInterrupted && p.Error != nil }
