package deployer

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// OthersPolicy says what to do with the Solutions of an environment that nobody wants there.
type OthersPolicy int

// The policies.
const (
	LeaveOthers  OthersPolicy = iota // nobody asks
	TellOthers                       // a notice names them
	RemoveOthers                     // when all that is wanted is ready; where there are custom resources that is refused
)

// departure is a Solution that leaves namespaces.
type departure struct {
	schema.SolutionAt
	namespaces []metalk8s.Namespace
	releases   []engine.Release
}

// planUnlisted plans to remove what is in an environment and not wanted there, or where that is not asked for tells it.
func (d *Deployer) planUnlisted(ctx context.Context, t *task, catalog *records.Catalog, o EnsureOptions, wanted []schema.SolutionAt, namespaces []metalk8s.Namespace) error {
	if o.Others == LeaveOthers {
		return nil
	}
	there, err := d.versionsIn(ctx, namespaces)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		listed := slices.ContainsFunc(wanted, func(at schema.SolutionAt) bool { return at.Solution == name })
		if listed || o.Going != nil && !slices.Contains(o.Going, name) {
			continue
		}
		if o.Others == TellOthers {
			t.notice("Solution " + name + " is in environment " + o.Environment + " and not wanted there: it stays")
			continue
		}
		leaves := RemoveOptions{Options: o.Options, Environment: o.Environment, Solution: name}
		gone := departure{SolutionAt: schema.SolutionAt{Solution: name, Version: there[name]}}
		if gone.releases, gone.namespaces, err = d.leaving(ctx, t, leaves, namespaces); err != nil {
			return err
		}
		if _, err = d.checkData(ctx, t, catalog, leaves, gone.namespaces); err != nil {
			if report.CodeOf(err) == report.DataLoss { // what it proposes is to be said of each Solution by itself
				return report.Errorf(report.DataLoss, "%s", err.Error()).WithHint("say what becomes of them: %s", report.Run("deploy remove", o.Environment, name))
			}
			return err
		}
		t.gone = append(t.gone, gone)
	}
	return nil
}

// versionsIn are the Solutions of some namespaces, each with a version of it: those that the shared document names, and those on record.
// One that was never added as a whole, and whose removal was interrupted, has none.
func (d *Deployer) versionsIn(ctx context.Context, namespaces []metalk8s.Namespace) (map[string]string, error) {
	versions := map[string]string{}
	for _, n := range namespaces {
		maps.Copy(versions, n.Versions)
	}
	states, err := d.Records.StatesIn(ctx, namespaces)
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

// departures are the releases of what goes: after all that stays is ready, and each Solution after those that need it.
func departures(catalog *records.Catalog, gone []departure, staying []engine.Release) (releases []engine.Release) {
	leaving := make([]schema.SolutionAt, len(gone))
	for i, g := range gone {
		leaving[i] = g.SolutionAt
	}
	for _, g := range gone {
		for _, release := range g.releases {
			for _, other := range staying {
				release.Needs = append(release.Needs, engine.Need{Key: other.Key, Until: schema.UntilReady})
			}
			for _, other := range gone {
				if !slices.Contains(dependencies.First(catalog, leaving, other.SolutionAt, schema.ScopeEnvironment), g.SolutionAt) {
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
