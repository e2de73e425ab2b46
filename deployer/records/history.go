package records

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// HistoryOptions select operations: those in an environment, or everywhere for "", and on one Solution, or all of them for "".
type HistoryOptions struct{ Environment, Solution string }

// History returns the recorded operations, the newest first.
func (r *Records) History(ctx context.Context, o HistoryOptions) (*schema.History, error) {
	environments, states, err := r.past(ctx, o.Environment)
	if err != nil {
		return nil, err
	}
	environmentOf := EnvironmentsByNamespace(environments)
	history := &schema.History{Operations: []schema.HistoryEntry{}}
	names := map[string]bool{}
	for _, s := range states {
		names[s.Name] = true
		if s.Damage != nil {
			if o.Solution == s.Name {
				return nil, s.Damage
			}
			history.Problems = append(history.Problems, UnreadText(s.Key, s.Damage))
			continue
		}
		if o.Solution == "" || s.Name == o.Solution {
			history.Operations = append(history.Operations, entries(s, environmentOf[s.Namespace])...)
		}
	}
	if o.Solution != "" && !names[o.Solution] {
		return nil, withoutHistory(o.Solution, o.Environment, slices.Sorted(maps.Keys(names)))
	}
	slices.SortStableFunc(history.Operations, func(a, b schema.HistoryEntry) int {
		// Within one second, changes of a namespace follow the cluster-wide changes that they need.
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.Component, b.Component), cmp.Compare(b.Revision, a.Revision), cmp.Compare(b.Namespace, a.Namespace))
	})
	return history, nil
}

// past reads an environment, or all of them for "", and the records there.
func (r *Records) past(ctx context.Context, environment string) ([]metalk8s.Environment, []*record.State, error) {
	if environment == "" {
		environments, err := r.Documents.Environments(ctx)
		if err != nil {
			return nil, nil, err
		}
		states, err := r.Engine.States(ctx)
		return environments, states, err
	}
	one, err := r.Documents.Permitted(ctx, environment, "")
	if err != nil {
		return nil, nil, err
	}
	states, err := r.StatesIn(ctx, one.Namespaces)
	return []metalk8s.Environment{*one}, states, err
}

// entries are the operations on a release, the newest first.
func entries(s *record.State, environment string) []schema.HistoryEntry {
	var list []schema.HistoryEntry
	for _, r := range s.Revisions() {
		list = append(list, schema.HistoryEntry{
			Environment: environment, Namespace: s.Namespace, Solution: s.Name, Component: s.Component,
			Revision: r.Number, Operation: r.Operation, Version: r.Version, Outcome: r.Outcome,
			User: r.User, Tool: r.Tool, Started: r.Started, Finished: r.Finished,
			Failure: r.Failure,
		})
	}
	return list
}

func withoutHistory(solution, environment string, others []string) error {
	where := ""
	if environment != "" {
		where = " in environment " + environment
	}
	err := report.Errorf(report.NotFound, "nothing was done with Solution %s%s", solution, where)
	if len(others) == 0 {
		return err.WithHint("nothing was done with any Solution%s", where)
	}
	return err.WithHint("there is a history of %s", strings.Join(others, ", "))
}
