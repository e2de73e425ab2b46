package loader

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
)

const (
	// bootWait is the time for existing objects to become ready before a start creates missing ones.
	bootWait = time.Minute
	// repairWait is for how long it waits for a repair that is at work, and for the locks of one that was killed.
	repairWait = time.Minute
)

// prepareSettled prepares a run once the cluster has come to rest. After a boot nothing is ready, kinds are not served yet, and a repair
// may have been killed by the reboot: none of that is work for a Job.
func (l *Launcher) prepareSettled(ctx context.Context, o preparation) (*prepared, error) {
	if err := l.finishRepairs(ctx); err != nil {
		return nil, err
	}
	p, err := l.prepare(ctx, o)
	if err != nil || p.Run == "" || !p.wasReady() {
		return p, err
	}
	waited, err := l.awaitKept(ctx, p)
	if err != nil || !waited {
		return p, err
	}
	return l.prepare(ctx, o)
}

// wasReady reports whether the last run has loaded the same configuration as a whole.
func (p *prepared) wasReady() bool {
	return p.progress != nil && p.progress.Digest == p.digest && p.progress.Phase == schema.LoadReady
}

// finishRepairs completes the records of interrupted repairs, in the environments of the configuration. They need no
// Job: the objects are restored here, except fields that another manager applies. A repair that cannot be finished this
// way is planned like all else.
func (l *Launcher) finishRepairs(ctx context.Context) error {
	begun, err := l.begunRepairs(ctx)
	if err != nil {
		return err
	}
	config := l.Deployer.Config
	config.LockWait, config.Ended = max(config.LockWait, repairWait), podEnded(config.Cluster)
	d := deployer.New(config)
	for _, at := range begun {
		_, _ = d.Repair(ctx, deployer.RepairOptions{Options: plan.Options{NoWait: true}, Selection: survey.Selection{Environment: at.Environment, Solution: at.Solution}, Yield: true})
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// begunRepairs returns the Solutions of the configuration of which nothing but repairs was interrupted.
func (l *Launcher) begunRepairs(ctx context.Context) ([]schema.LoadedContent, error) {
	begun, err := l.Deployer.Resume(ctx, deployer.ResumeOptions{Options: plan.Options{DryRun: true}})
	if begun == nil {
		return nil, err
	}
	return slices.DeleteFunc(interruptedRepairs(begun.Operations), func(at schema.LoadedContent) bool {
		return !slices.ContainsFunc(l.Configuration.Spec.Environments, func(e schema.EnvironmentContents) bool { return e.Name == at.Environment })
	}), nil
}

// leaveRepairs removes from a plan the interrupted repairs, which a start finishes first without a Job. If the
// configuration has changed since, the same Solutions have other changes, and all of them stay in the plan.
func (l *Launcher) leaveRepairs(ctx context.Context, p *prepared) error {
	begun, err := l.begunRepairs(ctx)
	if err != nil {
		return err
	}
	for _, at := range begun {
		p.Notices = append(p.Notices, fmt.Sprintf("an interrupted repair of Solution %s in environment %s is finished first, without a Job", at.Solution, at.Environment))
	}
	if len(begun) == 0 || !p.wasReady() {
		return nil
	}
	for _, o := range p.Environments {
		o.Parts = slices.DeleteFunc(o.Parts, func(part schema.OperationPart) bool {
			return slices.Contains(begun, schema.LoadedContent{Environment: o.Environment, Solution: part.Solution})
		})
	}
	if !slices.ContainsFunc(p.Environments, func(o *schema.Operation) bool { return !o.Empty() }) {
		p.Run, p.Image, p.Rights = "", "", ""
	}
	return nil
}

// interruptedRepairs selects the Solutions of which nothing but repairs was interrupted.
func interruptedRepairs(operations []schema.ResumedOperation) []schema.LoadedContent {
	var repairs, others []schema.LoadedContent
	for _, one := range operations {
		at := schema.LoadedContent{Environment: one.Environment, Solution: one.Solution}
		switch {
		case one.Operation != schema.VerbRepair:
			others = append(others, at)
		case !slices.Contains(repairs, at):
			repairs = append(repairs, at)
		}
	}
	return slices.DeleteFunc(repairs, func(at schema.LoadedContent) bool { return slices.Contains(others, at) })
}

// awaitKept waits until the parts that a plan leaves as they are have become ready, and reports whether it had to.
func (l *Launcher) awaitKept(ctx context.Context, p *prepared) (waited bool, err error) {
	deadline := l.Deployer.Now().Add(min(bootWait, time.Duration(p.parameters.Timeout)*time.Second))
	for ; ; waited = true {
		seen, err := look(ctx, l.Deployer, p.parameters.Environments)
		if err != nil {
			return waited, err
		}
		unready := slices.ContainsFunc(p.parts, func(part schema.LoadPart) bool { return part.Kept && !part.Optional && !seen[partName(&part)].ready })
		if !unready || l.Deployer.Now().After(deadline) {
			return waited, nil
		}
		if err = cluster.Sleep(ctx, time.Second); err != nil {
			return waited, err
		}
	}
}
