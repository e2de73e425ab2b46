package bundle

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/loader"
	"github.com/solutionctl/solutionctl/schema"
)

// loader copies the state of the loader in the cluster.
func (c *collector) loader() {
	state, err := loader.ReadState(c.ctx, c.Deployer.Cluster, c.Now)
	if err != nil {
		c.missing("the loader: %v", err)
		return
	}
	if state.IsUnused() {
		return
	}
	if state.Damage != nil {
		c.missing("how far the loader is: its ConfigMap is damaged")
	}
	taken := &schema.SupportLoader{Progress: state.Progress, Jobs: []schema.SupportJob{}}
	if state.Progress != nil && !c.Logs {
		taken.Progress = withoutTexts(state.Progress)
	}
	jobs := slices.Concat(state.Runs, state.Repairs)
	for _, job := range jobs[:min(len(jobs), maxItems)] {
		taken.Jobs = append(taken.Jobs, schema.SupportJob{
			Object: nameOf(job), Image: loader.ImageOf(job), Created: text(job, "metadata", "creationTimestamp"), Suspended: flag(job, "spec", "suspend"),
			Active: number(job, "status", "active"), Succeeded: number(job, "status", "succeeded"), Failed: number(job, "status", "failed"), Conditions: conditions(job),
		})
	}
	if cron := state.CronJob; cron != nil {
		active, _, _ := unstructured.NestedSlice(cron.Object, "status", "active")
		taken.Repairs = &schema.SupportCron{
			Object: nameOf(cron), Image: loader.ImageOf(cron), Created: text(cron, "metadata", "creationTimestamp"), Schedule: text(cron, "spec", "schedule"),
			TimeZone: text(cron, "spec", "timeZone"), Suspended: flag(cron, "spec", "suspend"), Active: len(active),
			Last: text(cron, "status", "lastScheduleTime"), Succeeded: text(cron, "status", "lastSuccessfulTime"),
		}
	}
	c.document.Loader = taken
}

func flag(object *unstructured.Unstructured, path ...string) bool {
	is, _, _ := unstructured.NestedBool(object.Object, path...)
	return is
}

// withoutTexts is progress without quotes of objects and programs.
func withoutTexts(p *schema.LoadProgress) *schema.LoadProgress {
	taken := *p
	taken.Error, taken.Notices, taken.Parts = withoutText(p.Error), []string{}, slices.Clone(p.Parts)
	for i := range taken.Parts {
		part := &taken.Parts[i]
		part.Environment, part.Namespace, part.Solution, part.Component = name(part.Environment), name(part.Namespace), name(part.Solution), name(part.Component)
		part.Version, part.WaitingFor, part.Error = version(part.Version), nil, withoutText(part.Error)
	}
	taken.Loaded = []schema.LoadedContent{}
	for _, loaded := range p.Loaded {
		taken.Loaded = append(taken.Loaded, schema.LoadedContent{Environment: name(loaded.Environment), Solution: name(loaded.Solution)})
	}
	if p.Repair != nil {
		taken.Repair = &schema.LoadRepair{At: p.Repair.At, Times: p.Repair.Times, Changed: make([]string, len(p.Repair.Changed))}
		for i := range taken.Repair.Changed {
			taken.Repair.Changed[i] = unknownWord
		}
	}
	return &taken
}

func withoutText(e *schema.LoadError) *schema.LoadError {
	if e == nil {
		return nil
	}
	return &schema.LoadError{Code: e.Code, Message: unknownWord}
}
