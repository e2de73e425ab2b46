package install

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// anyPlanned reports whether a step is left to do.
func anyPlanned(steps []schema.InstallStep) bool {
	return slices.ContainsFunc(steps, func(s schema.InstallStep) bool { return s.State == schema.StepPlanned })
}

// runSteps runs the steps that are planned, in their order, up to the first error. Their states say how far it came.
func runSteps(ctx context.Context, sink report.Sink, steps []schema.InstallStep, run []func(context.Context) error) error {
	emit := func(event report.Event) {
		if sink != nil {
			sink.Emit(event)
		}
	}
	changed := false
	for i := range steps {
		s := &steps[i]
		if s.State != schema.StepPlanned {
			continue
		}
		event := report.Event{Step: s.Step, Name: s.Name, State: report.Running}
		emit(event)
		err := ctx.Err() // some steps are too short to look at it
		if err == nil {
			err = run[i](ctx)
		}
		if err != nil {
			event.State = report.Failed
			emit(event)
			err = fmt.Errorf("%s %s: %w", s.Step, s.Name, err)
			if changed && errors.Is(err, context.Canceled) {
				return report.Errorf(report.Interrupted, "%w", err).WithHint("run the same command again: it continues there")
			}
			return err
		}
		changed = true
		s.State, event.State = schema.StepDone, report.Done
		emit(event)
	}
	return nil
}

func stateOf(done bool) schema.StepState {
	if done {
		return schema.StepUnchanged
	}
	return schema.StepPlanned
}

// digestOf names what a plan would do. The document has no digest yet.
func digestOf(document any) string {
	data, err := json.Marshal(document)
	if err != nil {
		panic(err) // plain data
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(data))
}

// checkExpected refuses a plan that is not the expected one, if any is.
func checkExpected(expected, digest string) error {
	if expected == "" || expected == digest {
		return nil
	}
	return report.Errorf(report.Conflict, "the plan is another one by now: %s", digest).WithHint("look at it, and expect that digest")
}
