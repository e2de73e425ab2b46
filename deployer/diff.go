package deployer

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// DiffOptions say what to compare; empty fields stand for everything.
type DiffOptions struct {
	Environment, Solution string
}

// Diff compares what was deployed with what the cluster has now: what would have to be done to have it again as it was.
func (d *Deployer) Diff(ctx context.Context, o DiffOptions) (*schema.Operation, error) {
	t := &task{Operation: schema.Operation{Operation: "diff", Solution: o.Solution, Environment: o.Environment}}
	t.Planned = true
	var namespaces []string
	if o.Environment != "" {
		environment, err := d.documents().Environment(ctx, o.Environment)
		if err != nil {
			return nil, err
		}
		for _, n := range environment.Namespaces {
			namespaces = append(namespaces, n.Name)
		}
	}
	states, err := d.engine().States(ctx)
	if err != nil {
		return nil, err
	}
	var releases []engine.Release
	for _, s := range states {
		if s.Current == nil || o.Solution != "" && s.Solution != o.Solution || namespaces != nil && !slices.Contains(namespaces, s.Namespace) {
			continue
		}
		if s.Pending != nil {
			t.notice(s.String() + ": the last " + s.Pending.Operation + " was interrupted; run it again")
		}
		var objects []*unstructured.Unstructured
		if objects, err = d.engine().Objects(ctx, s.Key, s.Current); err != nil {
			return nil, err
		}
		releases = append(releases, engine.Release{
			Key: s.Key, Version: s.Current.Version, Operation: s.Current.Operation, Settings: s.Current.Settings, Objects: objects,
		})
	}
	if len(releases) == 0 && o.Solution != "" {
		return nil, report.Errorf(report.NotFound, "Solution %s was not deployed here", o.Solution).
			WithHint("'solutionctl deploy status' lists what was")
	}
	// Nothing is applied: fields that somebody else took over are what is looked for, not a conflict.
	if t.plans, err = d.engine().PlanAll(ctx, releases, engine.PlanOptions{Adopt: true, Force: true}); err != nil {
		return nil, err
	}
	return t.finish(), nil
}
