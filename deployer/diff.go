package deployer

import (
	"context"
	"maps"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
)

// Diff reports changes since the deployment: applied fields that another field manager changed, with its name and the
// time, and objects that were deleted. It ignores fields that others added. It needs no permission to write.
func (d *Deployer) Diff(ctx context.Context, o survey.Selection) (*schema.Operation, error) {
	run := d.begin(schema.Operation{Operation: "diff", Solution: o.Solution, Environment: o.Environment, Planned: true}, plan.Options{})
	states, namespaces, notices, err := d.Survey.Deployed(ctx, o)
	if err != nil {
		return nil, err
	}
	run.Notice(notices...)
	var unread map[record.Key]error
	if run.Plans, unread, err = d.Survey.Drift(ctx, states); err != nil {
		return nil, err
	}
	if run.Changes, _, err = d.Records.VersionDrift(ctx, states, namespaces); err != nil {
		return nil, err
	}
	noticeLeftOut(run, namespaces)
	return run.Report(), noticeUnread(run, unread, o)
}

// noticeUnread reports deployed revisions that cannot be read any more. It is an error if the user asked for this Solution.
func noticeUnread(run *plan.Run, failures map[record.Key]error, o survey.Selection) error {
	for _, key := range slices.SortedFunc(maps.Keys(failures), record.CompareKeys) {
		if o.Solution != "" {
			return failures[key]
		}
		run.Notice(records.UnreadText(key, failures[key]))
	}
	return nil
}
