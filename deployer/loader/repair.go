package loader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// repairRun is the name of the CronJob's work in place of a run.
const repairRun = "repair"

// Repair repairs the drift of the Solutions in the parameters, or with observe only reports it: this is the work of the
// CronJob. Without drift it writes nothing. Fields that another manager applies are left to it, and fields that are
// changed again and again are left after a few repairs; both are reported with the name of the manager. Objects that
// cannot be repaired do not stop the others. [Launcher.Start] has the same parameters,
// but does not need to have run.
func Repair(ctx context.Context, c deployer.Config, p *schema.LoadParameters) error {
	c.Ended = podEnded(c.Cluster)
	d := deployer.New(c)
	progress, _, err := readProgress(ctx, c.Cluster)
	if err != nil {
		return err
	}
	if progress == nil {
		return report.Errorf(report.NotFound, "nothing was loaded").WithHint("%s", report.Run("deploy loader start"))
	}
	before := progress.Repair
	now := schema.LoadRepair{At: c.Now().UTC().Truncate(time.Second), Changed: []string{}}
	var drifted []schema.LoadedContent
	mendable := false
	var failure error
	for _, at := range contents(p) {
		found, err := d.Diff(ctx, survey.Selection{Environment: at.Environment, Solution: at.Solution}) // who only observes may do no more
		if err != nil {
			failure = errors.Join(failure, fmt.Errorf("environment %s: %w", at.Environment, err))
			continue
		}
		lines, some := changedBy(found)
		now.Changed, mendable = append(now.Changed, lines...), mendable || some
		if !found.Empty() || len(found.Notices) > 0 { // such as of an upgrade that was interrupted
			drifted = append(drifted, at)
		}
	}
	again := before != nil && slices.Equal(before.Changed, now.Changed)
	if p.Repair == schema.RepairObserve || again && before.Times >= schema.MaxLoaderRepairs {
		drifted = nil // it is only reported
	}
	for _, at := range drifted {
		failure = errors.Join(failure, repairOne(ctx, d, at, time.Duration(p.Timeout)*time.Second))
	}
	if len(now.Changed) == 0 && before == nil {
		return failure
	}
	if p.Repair != schema.RepairObserve && mendable {
		if now.Times = 1; again {
			now.Times += before.Times
		}
	}
	if failure == nil && p.Repair == schema.RepairOn && now.GivenUp() {
		failure = report.Errorf(report.Conflict, "it was changed again after each of %d repairs, and is left alone: %s", schema.MaxLoaderRepairs, strings.Join(now.Changed, "; ")).
			WithHint("find out who changes it; a lasting change belongs into the values of the component")
	}
	return errors.Join(failure, recordRepair(ctx, c.Cluster, now))
}

// repairOne repairs one Solution. The error includes the fields that were left to other managers.
func repairOne(ctx context.Context, d *deployer.Deployer, at schema.LoadedContent, timeout time.Duration) error {
	done, err := d.Repair(ctx, deployer.RepairOptions{Options: plan.Options{Timeout: timeout}, Selection: survey.Selection{Environment: at.Environment, Solution: at.Solution}, Yield: true})
	if err != nil {
		return err
	}
	var left, lost []string
	for _, part := range done.Parts {
		for _, change := range part.Changes {
			switch {
			case change.Note == engine.NotRecorded:
				lost = append(lost, change.Object.String()+": "+change.Note)
			case change.Action == schema.ActionKeep && change.Note != "" && change.Object.Kind != cluster.DefinitionKind.Kind:
				left = append(left, change.Note)
			}
		}
	}
	again := report.Run("deploy repair", at.Environment, at.Solution)
	if len(left) > 0 {
		err = report.Errorf(report.Conflict, "left alone: %s", strings.Join(left, "; ")).WithHint("let the other manager give it up, or adopt it: '%s' shows how", again)
	}
	if len(lost) > 0 {
		err = errors.Join(err, report.Errorf(report.Conflict, "left out: %s", strings.Join(lost, "; ")).WithHint("'%s' names the command that restores it", again))
	}
	return err
}

// changedBy describes the changed fields and their managers, a line each. A repair can mend some of them.
func changedBy(o *schema.Operation) (lines []string, mendable bool) {
	const most = 20
	for _, part := range o.Parts {
		for _, change := range part.Changes {
			if slices.Contains([]schema.Action{schema.ActionNone, schema.ActionKeep, schema.ActionSkip}, change.Action) || len(lines) == most {
				continue
			}
			mendable = mendable || !engine.IsLeftOut(change)
			text := change.Object.String()
			if change.Action == schema.ActionCreate {
				text += " is gone"
			}
			var managers []string
			for _, field := range change.Fields {
				if field.Manager != "" && !slices.Contains(managers, field.Manager) {
					managers = append(managers, field.Manager)
				}
			}
			if slices.Sort(managers); len(managers) > 0 {
				text += " was changed by " + strings.Join(managers, ", ")
			}
			lines = append(lines, short(text))
		}
	}
	return lines, mendable
}

// recordRepair writes the result of a repair, which may happen while a run writes too.
func recordRepair(ctx context.Context, c *cluster.Cluster, now schema.LoadRepair) error {
	return rewrite(ctx, c, func(progress *schema.LoadProgress) bool {
		if progress.Repair = nil; len(now.Changed) > 0 {
			progress.Repair = &now
		}
		progress.UpdatedAt = now.At
		return true
	})
}

// Repair repairs the drift of all Solutions in the configuration, once, with the permissions of the launcher.
func (l *Launcher) Repair(ctx context.Context) error {
	p, err := l.resolve(ctx, l.spec())
	if err != nil {
		return err
	}
	p.Repair, p.Run = schema.RepairOn, repairRun
	return Repair(ctx, l.Deployer.Config, p)
}

// keepRepairs makes the cluster have the CronJob that the configuration wants, with an account of its own, or none; and nothing of
// the parts that are to be gone.
func (l *Launcher) keepRepairs(ctx context.Context, p *schema.LoadParameters, gone ...string) error {
	objects, err := l.repairs(ctx, p)
	if err != nil {
		return err
	}
	return l.keep(ctx, repairName, objects, gone...)
}

// repairs are the objects of the CronJob; nil where none is wanted.
func (l *Launcher) repairs(ctx context.Context, p *schema.LoadParameters) ([]*unstructured.Unstructured, error) {
	spec := l.spec()
	if spec.Repair.Mode == schema.RepairOff {
		return nil, nil
	}
	image, err := l.image(ctx, spec.Image)
	if err != nil {
		return nil, err
	}
	parameters := *p
	parameters.Run, parameters.Repair = repairRun, spec.Repair.Mode
	visible, _, err := parametersOf(&parameters)
	if err != nil {
		return nil, err
	}
	delete(visible.Object, "immutable") // the configuration may change
	permissions := rights.Loader(ProgressName)
	for _, e := range parameters.Environments {
		more, failure := l.Deployer.RepairRights(ctx, e.Name, spec.Repair.Mode == schema.RepairOn)
		if failure != nil {
			return nil, failure
		}
		permissions = append(permissions, more...)
	}
	cron, err := newCronJob(spec, image)
	return append(account(repairName, permissions), visible, cron), err
}

// newCronJob returns the CronJob of repairs.
func newCronJob(s schema.LoaderSpec, image string) (*unstructured.Unstructured, error) {
	job, err := jobSpec(s, podSpec(s, image, repairName, repairRun, false), map[string]any{"app.kubernetes.io/name": "solutionctl-loader"})
	if err != nil {
		return nil, err
	}
	job["backoffLimit"] = int64(0)
	return newObject(cronJobKind, repairsName, map[string]any{"spec": map[string]any{
		"schedule": s.Repair.Schedule, "timeZone": s.Repair.TimeZone, "concurrencyPolicy": "Forbid", "startingDeadlineSeconds": int64(300),
		"successfulJobsHistoryLimit": int64(1), "failedJobsHistoryLimit": int64(1), "jobTemplate": map[string]any{"spec": job},
	}}), nil
}
