package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	// explainEvery is the interval at which a waiting user is shown the reasons.
	explainEvery = 10 * time.Second
	// explained is the number of objects that are explained.
	explained = 3
)

// explainAll periodically reports why the first targets that are not ready are not.
func (e *Engine) explainAll(ctx context.Context, targets []*target) {
	for cluster.Sleep(ctx, explainEvery) == nil {
		count := 0
		for _, t := range targets {
			if t.over() || count == explained {
				continue
			}
			count++
			if reasons := e.explain(ctx, t.step); len(reasons) > 0 {
				t.run.emit(report.Event{Step: "wait", Name: t.step.Object.String(), State: report.Running, Note: reasons[0]})
			}
		}
	}
}

// explain returns the reasons why an object is not ready, as far as they can be found.
func (e *Engine) explain(ctx context.Context, s *step) []string {
	live, err := e.Cluster.Get(ctx, kindOfRef(s.Object), s.Object.Namespace, s.Object.Name)
	if err != nil {
		return nil
	}
	if live == nil {
		return []string{"it does not exist"}
	}
	return health.Explain(ctx, e.Cluster, live)
}

// errInterruptedWait is the error of an interrupted wait. It names the objects as they were last observed, without further requests.
func errInterruptedWait(ctx context.Context, late []*target, of int) error {
	var names []string
	for _, t := range late[:min(len(late), explained)] {
		t.mu.Lock()
		name := t.step.Object.String()
		if t.status.Message != "" {
			name += " " + t.status.Message
		}
		t.mu.Unlock()
		names = append(names, name)
	}
	if more := len(late) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("interrupted while waiting for %d of %s: %s: %w", len(late), report.Count(of, "object"), strings.Join(names, "; "), ctx.Err())
}

// waitError returns an error with the targets that are not ready, and the reasons; nil if all are.
func (r *run) waitError(ctx context.Context, targets []*target) error {
	var late []*target
	for _, t := range targets {
		if !t.status.Ready {
			late = append(late, t)
		}
	}
	if len(late) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return errInterruptedWait(ctx, late, len(targets))
	}
	var text strings.Builder
	for i, t := range late {
		if i == explained && len(late) > explained+1 {
			fmt.Fprintf(&text, "\n  and %d more", len(late)-i)
			break
		}
		fmt.Fprintf(&text, "\n  %s: ", t.step.Object)
		reasons := r.explain(ctx, t.step)
		if len(reasons) == 0 {
			reasons = []string{t.status.Message}
		}
		text.WriteString(strings.Join(reasons, "\n    "))
	}
	what := "did not become ready in " + r.timeout.String()
	if r.waitCtx.Err() == nil {
		what = "cannot become ready"
	}
	return report.Errorf(report.Timeout, "%d of %s %s:%s", len(late), report.Count(len(targets), "object"), what, text.String()).
		WithHint("repair the cause and run the same command again; what was applied stays as it is")
}
