package loader

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/kube/pods"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// State has the objects of the loader in a cluster.
type State struct {
	Progress *schema.LoadProgress         // nil where it never ran, or with Damage
	Damage   error                        // why Progress cannot be read
	Runs     []*unstructured.Unstructured // Jobs of runs, the newest last
	CronJob  *unstructured.Unstructured   // of repairs; nil where there is none
	Repairs  []*unstructured.Unstructured // Jobs that the CronJob has made, the newest last

	account, repairAccount bool
	atWork                 bool // a launcher
}

// repairsName is that of the CronJob.
const repairsName = "loader-repair"

// ReadState reads the objects of the loader in a cluster. now is the time on the clock of the cluster.
func ReadState(ctx context.Context, c *cluster.Cluster, now time.Time) (*State, error) {
	s := &State{}
	var err error
	if s.Progress, _, err = readProgress(ctx, c); report.CodeOf(err) == report.Corrupt {
		s.Damage, err = err, nil
	}
	if err != nil {
		return nil, err
	}
	if s.CronJob, err = c.Get(ctx, cronJobKind, cluster.SystemNamespace, repairsName); err != nil {
		return nil, err
	}
	for job, err := range c.List(ctx, jobKind, cluster.SystemNamespace, metav1.ListOptions{}) {
		switch {
		case err != nil:
			return nil, err
		case job.GetLabels()[LabelRun] != "":
			s.Runs = append(s.Runs, job)
		case slices.ContainsFunc(job.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.Kind == "CronJob" && o.Name == repairsName }):
			s.Repairs = append(s.Repairs, job)
		}
	}
	for _, jobs := range [][]*unstructured.Unstructured{s.Runs, s.Repairs} {
		slices.SortStableFunc(jobs, byCreation)
	}
	for name, is := range map[string]*bool{accountName: &s.account, repairName: &s.repairAccount} {
		object, failure := c.Get(ctx, cluster.ServiceAccountKind, cluster.SystemNamespace, name)
		if failure != nil {
			return nil, failure
		}
		*is = object != nil
	}
	s.atWork, err = launcherAtWork(ctx, c, now)
	return s, err
}

// byCreation orders objects by age, the oldest first.
func byCreation(a, b *unstructured.Unstructured) int {
	return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
}

// launcherAtWork reports whether a launcher is about to start a run, or runs one in its own process.
func launcherAtWork(ctx context.Context, c *cluster.Cluster, now time.Time) (bool, error) {
	held, err := c.Locks(ctx)
	return slices.ContainsFunc(held, func(lock cluster.Held) bool { return lock.Name == lockName && lock.Promised.After(now.Add(-grace)) }), err
}

// grace is by how much clocks may differ.
const grace = time.Minute

// IsUnused reports whether the loader never ran here.
func (s *State) IsUnused() bool {
	return s.Progress == nil && s.Damage == nil && len(s.Runs) == 0 && s.CronJob == nil && !s.account && !s.repairAccount
}

// Finding is a fact about the loader that may need an action. It quotes no object and no output of a program.
type Finding struct {
	About   string // the subject: "run", "repairs", "account", "image"
	Problem bool   // else it is a warning
	What    string
	Cure    string // the next command
}

// Examine checks the objects of the loader in a cluster. now is the time on the clock of the cluster. An error concerns the image only.
func (s *State) Examine(ctx context.Context, d *deployer.Deployer, now time.Time) ([]Finding, error) {
	found := append(s.run(), s.repairs(now)...)
	if s.account && !s.atWork && s.active() == nil {
		found = append(found, Finding{
			"account", false, "the account of a run that has ended is still there: its launcher was killed, or did not wait", report.Run("deploy loader start").String(),
		})
	}
	images := map[string]bool{}
	for _, object := range []*unstructured.Unstructured{s.active(), s.CronJob} {
		image := ImageOf(object)
		if image == "" || images[image] {
			continue
		}
		images[image] = true
		err := served(ctx, d, image)
		if report.CodeOf(err) == report.NotImported {
			found, err = append(found, Finding{
				"image", true, fmt.Sprintf("no imported version brings %s, with which %s %s works", image, object.GetKind(), object.GetName()),
				fmt.Sprintf("%s, then %s", report.Run("deploy import", "solutionctl-VERSION.iso"), report.Run("deploy loader start")),
			}), nil
		}
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// active is the Job of a run that has not ended, nil where there is none.
func (s *State) active() *unstructured.Unstructured {
	for _, job := range slices.Backward(s.Runs) {
		if health.JobEnded(job) == "" {
			return job
		}
	}
	return nil
}

// ImageOf is the image of a Job or a CronJob of the loader, "" for nil.
func ImageOf(object *unstructured.Unstructured) string {
	if object == nil {
		return ""
	}
	containers := pods.Containers(object.Object)
	if len(containers) == 0 {
		return ""
	}
	image, _ := containers[0]["image"].(string)
	return image
}

// run judges the last run.
func (s *State) run() []Finding {
	start, status := report.Run("deploy loader start").String(), report.Run("deploy loader status").String()
	if s.Damage != nil {
		return []Finding{{"run", true, "the progress of the loader cannot be read: ConfigMap " + cluster.SystemNamespace + "/" + ProgressName + " is damaged", start}}
	}
	p := s.Progress
	if p == nil {
		return nil
	}
	name := "run " + p.Run + " of the loader "
	switch {
	case p.Phase == schema.LoadReady:
		return nil
	case p.Phase == schema.LoadFailed:
		code := report.Failure
		if p.Error != nil {
			code = p.Error.Code
		}
		return []Finding{{"run", true, fmt.Sprintf("%sfailed (%s): %d of %d parts are ready", name, code, p.Ready, len(p.Parts)), fmt.Sprintf("'%s' shows why; then %s", status, start)}}
	case stopped(p):
		return []Finding{{"run", false, name + "was stopped before it was done", start}}
	}
	job := s.active()
	switch {
	case s.atWork:
		return nil
	case job == nil && p.Phase == schema.LoadInterrupted:
		return []Finding{{"run", false, name + "was interrupted, and no process continues it", start}}
	case job == nil && len(s.Runs) > 0 && s.Runs[len(s.Runs)-1].GetLabels()[LabelRun] == p.Run:
		return []Finding{{"run", true, name + "has ended without a word: its pod was killed", fmt.Sprintf("'%s' shows what it has written; then %s", report.Run("deploy loader logs"), start)}}
	case job == nil:
		return []Finding{{"run", true, name + "is not done, and its Job is gone", start}}
	case isSuspended(job):
		return []Finding{{"run", true, name + "was never begun: its launcher was killed", start}}
	case p.Phase == schema.LoadPending:
		return []Finding{{"run", false, name + "has not begun yet: its pod has to start, with image " + ImageOf(job), fmt.Sprintf("'%s' shows why it does not", status)}}
	}
	return nil
}

// repairs checks the CronJob and its last runs.
func (s *State) repairs(now time.Time) []Finding {
	var found []Finding
	start := report.Run("deploy loader start").String()
	if p := s.Progress; p != nil && p.Repair.GivenUp() {
		found = append(found, Finding{
			"repairs", true, fmt.Sprintf("%s changed again after each of %d repairs, or applied by another manager: they leave it alone", report.Count(len(p.Repair.Changed), "object"), schema.MaxLoaderRepairs),
			fmt.Sprintf("'%s' names who changes it", report.Run("deploy loader status")),
		})
	}
	if s.CronJob == nil {
		if s.repairAccount {
			found = append(found, Finding{"repairs", true, "the CronJob of repairs is gone: drift is not repaired", start})
		}
		return found
	}
	if !s.repairAccount {
		found = append(found, Finding{"repairs", true, "the account of repairs is gone: drift is not repaired", start})
	}
	cron := "cronjob --namespace " + cluster.SystemNamespace + " " + repairsName
	if isSuspended(s.CronJob) {
		found = append(found, Finding{"repairs", false, "CronJob " + repairsName + " is suspended: drift is not repaired", `kubectl patch ` + cron + ` --patch '{"spec":{"suspend":false}}'`})
	}
	text, _, _ := unstructured.NestedString(s.CronJob.Object, "status", "lastScheduleTime")
	last, err := time.Parse(time.RFC3339, text)
	schedule, _, _ := unstructured.NestedString(s.CronJob.Object, "spec", "schedule")
	switch created := s.CronJob.GetCreationTimestamp().Time; {
	case err == nil && last.After(now.Add(grace)):
		found = append(found, Finding{
			"repairs", true, fmt.Sprintf("CronJob %s has run last at %s, when the clock was wrong, and does not run again before that", repairsName, last.UTC().Format(time.RFC3339)),
			"kubectl delete " + cron + ", then " + start,
		})
	case err != nil && now.Sub(created) > atLeast(schedule):
		found = append(found, Finding{
			"repairs", false, fmt.Sprintf("CronJob %s (%s) has not run since it was made, at %s", repairsName, schedule, created.UTC().Format(time.RFC3339)), "kubectl describe " + cron,
		})
	}
	if n := len(s.Repairs); n > 0 && health.JobEnded(s.Repairs[n-1]) == "Failed" {
		found = append(found, Finding{"repairs", true, "the last repair failed", "kubectl logs --namespace " + cluster.SystemNamespace + " job/" + s.Repairs[n-1].GetName()})
	}
	return found
}

// atLeast is after how long something with a schedule has run for certain: one that names no day runs daily, at least.
func atLeast(schedule string) time.Duration {
	const day = 24 * time.Hour
	fields := strings.Fields(schedule)
	const every = 5 // fields
	if len(fields) == every && strings.Join(fields[2:], "") == "***" || schedule == "@hourly" || schedule == "@daily" {
		return day + time.Hour
	}
	return 366 * day
}
