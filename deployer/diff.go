package deployer

import (
	"context"
	"maps"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
)

// Diff tells what was changed since it was deployed: fields that were applied and that somebody has changed, with who and
// when, and objects that are gone. What others have added is none of its business. It needs no right to write.
func (d *Deployer) Diff(ctx context.Context, o survey.Selection) (*schema.Operation, error) {
	t := &task{Operation: schema.Operation{Operation: "diff", Solution: o.Solution, Environment: o.Environment, Planned: true}}
	states, namespaces, notices, err := d.Survey.Deployed(ctx, o)
	if err != nil {
		return nil, err
	}
	t.notice(notices...)
	var unread map[engine.Key]error
	if t.plans, unread, err = d.Survey.Drift(ctx, states); err != nil {
		return nil, err
	}
	if t.records, _, err = d.Records.VersionDrift(ctx, states, namespaces); err != nil {
		return nil, err
	}
	return t.finish(), t.unread(unread, o)
}

// unread tells of what was deployed and cannot be read any more. It is an error for whoever asked for this one, and else harms
// no other.
func (t *task) unread(failures map[engine.Key]error, o survey.Selection) error {
	for _, key := range slices.SortedFunc(maps.Keys(failures), engine.CompareKeys) {
		if o.Solution != "" {
			return failures[key]
		}
		t.notice(records.UnreadText(key, failures[key]))
	}
	return nil
}
