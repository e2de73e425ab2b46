package plan

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// OthersPolicy decides what to do with Solutions of an environment that its configuration does not list.
type OthersPolicy int

// The policies.
const (
	LeaveOthers  OthersPolicy = iota // nothing
	TellOthers                       // a notice names them
	RemoveOthers                     // when all that is wanted is ready; where there are custom resources that is refused
)

// Others are the Solutions of an environment that are not wanted there.
type Others struct {
	Policy OthersPolicy
	Only   []string // the only ones that Policy is about; nil stands for all of them
}

// leave plans to remove what is in the namespaces of the run and not wanted there, or reports it.
func (r *Run) leave(ctx context.Context, others Others, wanted []schema.SolutionAt) error {
	if others.Policy == LeaveOthers {
		return nil
	}
	there, err := r.versionsIn(ctx, r.Namespaces)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		listed := slices.ContainsFunc(wanted, func(at schema.SolutionAt) bool { return at.Solution == name })
		if listed || others.Only != nil && !slices.Contains(others.Only, name) {
			continue
		}
		if others.Policy == TellOthers {
			r.Notice("Solution " + name + " is in environment " + r.Environment + " and not wanted there: it stays")
			continue
		}
		d := removal{SolutionAt: schema.SolutionAt{Solution: name, Version: there[name]}}
		if err = r.findRemoval(ctx, &d); err != nil {
			return err
		}
		if _, err = r.checkData(ctx, &d); err != nil {
			if report.CodeOf(err) == report.DataLoss { // its remedies are options for one Solution
				return report.Errorf(report.DataLoss, "%s", err.Error()).WithHint("choose what happens to them: %s", report.Run("deploy remove", r.Environment, name))
			}
			return err
		}
		r.leaving = append(r.leaving, d)
	}
	return nil
}

// versionsIn returns the Solutions of namespaces, each with a version of it: those that the shared document names, and those on record.
// One that was never added as a whole, and whose removal was interrupted, has none.
func (p *Planner) versionsIn(ctx context.Context, namespaces []metalk8s.Namespace) (map[string]string, error) {
	versions := map[string]string{}
	for _, n := range namespaces {
		maps.Copy(versions, n.Versions)
	}
	states, err := p.Records.StatesIn(ctx, namespaces)
	if err != nil {
		return nil, err
	}
	for _, s := range states {
		if s.Damage != nil {
			return nil, s.Damage
		}
		for _, r := range s.Recent() {
			if s.Component == "" && (r.Version != "" || r == s.Pending) { // else it was removed
				versions[s.Name] = cmp.Or(r.Version, versions[s.Name])
			}
		}
	}
	return versions, nil
}

// removals returns the releases of Solutions that leave: after all that stays is ready, and each Solution after those that need it.
func (r *Run) removals(staying []engine.Release) (releases []engine.Release) {
	leaving := make([]schema.SolutionAt, len(r.leaving))
	for i, d := range r.leaving {
		leaving[i] = d.SolutionAt
	}
	for _, d := range r.leaving {
		for _, release := range d.releases {
			for _, other := range staying {
				release.Needs = append(release.Needs, engine.Need{Key: other.Key, Until: schema.UntilReady})
			}
			for _, other := range r.leaving {
				if !slices.Contains(dependencies.First(r.Catalog, leaving, other.SolutionAt, schema.ScopeEnvironment), d.SolutionAt) {
					continue
				}
				for _, first := range other.releases {
					release.Needs = append(release.Needs, engine.Need{Key: first.Key, Until: schema.UntilApplied})
				}
			}
			releases = append(releases, release)
		}
	}
	return releases
}
