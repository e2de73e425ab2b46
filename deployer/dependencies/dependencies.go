// Package dependencies checks which Solutions need which, and refuses changes that would leave a Solution without
// another one that it needs.
//
// [Read] reads the present holdings of a cluster. [Check] refuses a change of them, such as [Put], [Activate] or
// [Empty], and names the command to run first. [InOrder] sorts versions to activate so that none waits for a later one,
// and [First] returns the versions that have to be ready before another one. Except for Read, all of it works on
// values: a catalogue and holdings.
package dependencies

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Holder is a place of a Solution: a namespace of an environment, or, with both empty, the cluster in which it is active.
type Holder struct{ Environment, Namespace, Solution string }

// Holdings are the versions that are there.
type Holdings map[Holder]string

// need is a dependency that is not met.
type need struct {
	environment, solution string
	schema.Dependency
}

// unmet is a need, for a message.
type unmet struct {
	need
	version string
	have    []string // deployed versions that do not satisfy the need
}

// AnyDeclared reports whether an imported version needs another Solution.
func AnyDeclared(catalog *records.Catalog) bool {
	return slices.ContainsFunc(catalog.Imports(), func(i schema.Import) bool { return len(i.DependsOn) > 0 })
}

// Check refuses a change of holdings that leaves a Solution without another one that it needs. A need that was unmet
// before is not a reason.
func Check(catalog *records.Catalog, held Holdings, change func(Holdings)) error {
	before, err := held.unmet(catalog)
	if err != nil {
		return err
	}
	changed := maps.Clone(held)
	change(changed)
	r := refusal{catalog, held, changed, before}
	after, err := r.missingIn(changed)
	if err != nil || len(after) == 0 {
		return err
	}
	list := slices.SortedFunc(maps.Values(after), func(a, b *unmet) int { return cmp.Compare(a.String(), b.String()) })
	for _, u := range list {
		if u.isNew(held, changed) {
			return r.missing(u)
		}
	}
	return r.needed(list)
}

// refusal compares the holdings before and after a change, and explains the needs that it leaves unmet.
type refusal struct {
	catalog      *records.Catalog
	held, wanted Holdings
	before       map[need]*unmet // the unmet needs before the change
}

// missingIn returns the needs that are unmet and were met before.
func (r *refusal) missingIn(h Holdings) (map[need]*unmet, error) {
	after, err := h.unmet(r.catalog)
	maps.DeleteFunc(after, func(n need, u *unmet) bool { return r.before[n] != nil && r.before[n].version == u.version })
	return after, err
}

// breaks reports whether a need that was met before would be unmet.
func (r *refusal) breaks(h Holdings) bool {
	after, err := r.missingIn(h)
	return err != nil || len(after) > 0
}

// together returns a command that resolves the refusal: it changes the first Solution as requested, and in the same run the other one to
// one of these versions. It is empty if none of them helps.
func (r *refusal) together(environment, first, other string, versions []schema.Import) report.Remedy {
	from, version := r.held.in(environment, first), r.wanted.in(environment, first)
	target, known := r.catalog.Get(first + "-" + version)
	if from == "" || !known || r.held.in(environment, other) == "" {
		return report.Remedy{}
	}
	for _, i := range slices.Backward(versions) {
		if !r.breaks(r.wanted.with(environment, other, i.Version)) {
			return records.ChangeTo(environment, from, target).With("with", other+"="+i.Version)
		}
	}
	return report.Remedy{}
}

// in is a version of a Solution that is in an environment.
func (h Holdings) in(environment, solution string) string {
	var versions []string
	for there, version := range h {
		if there.Environment == environment && there.Solution == solution {
			versions = append(versions, version)
		}
	}
	if len(versions) == 0 {
		return ""
	}
	return slices.Min(versions)
}

// with are the holdings with another version of a Solution wherever it is in an environment.
func (h Holdings) with(environment, solution, version string) Holdings {
	changed := maps.Clone(h)
	for there := range h {
		if there.Environment == environment && there.Solution == solution {
			changed[there] = version
		}
	}
	return changed
}

// Read returns the present holdings: from our records, and operators that are on no record. A requested version is not
// held.
func Read(ctx context.Context, r *records.Records) (Holdings, error) {
	environments, err := r.Documents.Environments(ctx)
	if err != nil {
		return nil, err
	}
	solutions, err := r.Documents.Solutions(ctx)
	if err != nil {
		return nil, err
	}
	operators, err := r.OperatorsIn(ctx, environments, records.OperatorOf)
	if err != nil {
		return nil, err
	}
	states, err := r.Engine.States(ctx)
	if err != nil {
		return nil, err
	}
	held := Holdings{}
	environmentOf := records.EnvironmentsByNamespace(environments)
	for name := range solutions.Versions {
		held[Holder{Solution: name}] = solutions.Active(name)
	}
	for key, operator := range operators {
		held[Holder{Environment: environmentOf[key.Namespace], Namespace: key.Namespace, Solution: key.Name}] = records.VersionOn(operator, records.Asked(environments, key))
	}
	for _, s := range states {
		if s.Component != "" {
			continue // it has the version of its Solution
		}
		environment, inside := environmentOf[s.Namespace]
		if version, deployed := records.DeployedVersion(s); deployed && (inside || s.Namespace == "") {
			held[Holder{Environment: environment, Namespace: s.Namespace, Solution: s.Name}] = version
		}
	}
	maps.DeleteFunc(held, func(_ Holder, version string) bool { return version == "" })
	return held, nil
}

// unmet returns the dependencies that are not met.
func (h Holdings) unmet(catalog *records.Catalog) (map[need]*unmet, error) {
	type place struct{ environment, solution string }
	versions := map[place][]string{}
	for there, version := range h {
		at := place{there.Environment, there.Solution}
		if !slices.Contains(versions[at], version) {
			versions[at] = append(versions[at], version)
		}
	}
	found := map[need]*unmet{}
	for there, version := range h {
		imported, _ := catalog.Get(there.Solution + "-" + version)
		for _, dependency := range imported.DependsOn {
			at := place{there.Environment, dependency.Solution}
			if dependency.Scope == schema.ScopeCluster {
				at.environment = ""
			} else if there.Namespace == "" {
				continue // to be active it needs nothing in an environment
			}
			met, err := anyIn(versions[at], dependency.Version)
			if err != nil {
				return nil, fmt.Errorf("%s-%s: dependsOn %s: %w", there.Solution, version, dependency.Solution, err)
			}
			if !met {
				slices.Sort(versions[at])
				n := need{there.Environment, there.Solution, dependency}
				found[n] = &unmet{n, version, versions[at]}
			}
		}
	}
	return found, nil
}

func anyIn(versions []string, text string) (bool, error) {
	wanted, err := schema.ParseRange(text)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(versions, func(text string) bool {
		v, err := schema.ParseVersion(text)
		return err == nil && wanted.Contains(v)
	}), nil
}

// isNew reports whether the change concerns the Solution with the need, and not the one that it needs.
func (u *unmet) isNew(before, after Holdings) bool {
	for there, version := range after {
		if there.Environment == u.environment && there.Solution == u.solution && before[there] != version {
			return true
		}
	}
	return false
}

// String names who needs whom, and the place.
func (u *unmet) String() string {
	where := ""
	if u.environment != "" {
		where = " in environment " + u.environment
	}
	return fmt.Sprintf("%s %s%s needs %s", u.solution, u.version, where, dependencyText(u.Dependency))
}

func dependencyText(d schema.Dependency) string {
	text := strings.TrimSpace(d.Solution + " " + d.Version)
	if d.Scope == schema.ScopeCluster {
		text += " to be active"
	}
	return text
}

// missing refuses a Solution whose own dependency is not met.
func (r *refusal) missing(u *unmet) error {
	fit := fitting(r.catalog, u.Dependency)
	if u.Scope != schema.ScopeCluster && len(u.have) > 0 && len(fit) > 0 && r.breaks(r.held.with(u.environment, u.Solution, fit[len(fit)-1].Version)) {
		if both := r.together(u.environment, u.solution, u.Solution, fit); !both.IsZero() {
			return report.Errorf(report.Refused, "%s: there is %s, and neither can change before the other", u, strings.Join(u.have, ", ")).WithHint("%s", both)
		}
	}
	if way := loop(r.catalog, u); len(way) > 0 {
		e := report.Errorf(report.Refused, "%s, and they need each other: %s", u, strings.Join(way, " → "))
		if u.Scope == schema.ScopeCluster {
			return e.WithHint("activate them together: name them in a SolutionsConfiguration, and %s", report.Run("deploy apply", "-f", "FILE"))
		}
		return e.WithHint("they need each other in a circle, so none of them can be activated first: report it to the vendor")
	}
	have := "it is not there"
	if len(u.have) > 0 {
		have = "there is " + strings.Join(u.have, ", ")
	}
	e := report.Errorf(report.Refused, "%s: %s", u, have)
	if len(fit) == 0 {
		return e.WithHint("import a version of %s first", dependencyText(schema.Dependency{Solution: u.Solution, Version: u.Version}))
	}
	best := fit[len(fit)-1]
	switch {
	case u.Scope == schema.ScopeCluster:
		return e.WithHint("%s", report.Run("deploy activate", best.Name, best.Version))
	case len(u.have) > 0:
		return e.WithHint("%s", records.ChangeTo(u.environment, u.have[0], best))
	default:
		return e.WithHint("%s", report.Run("deploy add", u.environment, best.Name, best.Version))
	}
}

// needed refuses to remove or change Solutions that others need.
func (r *refusal) needed(list []*unmet) error {
	var lines []string
	for _, u := range list {
		lines = append(lines, u.String())
	}
	first := list[0]
	e := report.Errorf(report.InUse, "others need it as it is:\n  %s", report.Some(lines))
	if first.environment == "" {
		return e.WithHint("first: %s\nor change both together: name the versions in a SolutionsConfiguration, and %s",
			report.Run("deploy deactivate", first.solution), report.Run("deploy apply", "-f", "FILE"))
	}
	if both := r.together(first.environment, first.Solution, first.solution, r.catalog.Of(first.solution)); !both.IsZero() {
		return e.WithHint("change both together: %s", both)
	}
	return e.WithHint("first: %s", report.Run("deploy remove", first.environment, first.solution))
}

// fitting are the imported versions that meet a dependency, the lowest first.
func fitting(c *records.Catalog, dependency schema.Dependency) []schema.Import {
	return slices.DeleteFunc(c.Of(dependency.Solution), func(i schema.Import) bool {
		met, err := anyIn([]string{i.Version}, dependency.Version)
		return err != nil || !met
	})
}

// loop returns a way along dependencies that comes back to where it began, when whatever was imported to meet the need leads to
// one.
func loop(c *records.Catalog, u *unmet) []string {
	seen := map[string]bool{}
	var follow func(dependency schema.Dependency, way []string) []string
	follow = func(dependency schema.Dependency, way []string) []string {
		if at := slices.Index(way, dependency.Solution); at >= 0 {
			return append(slices.Clone(way[at:]), dependency.Solution)
		}
		var found []string
		for _, i := range fitting(c, dependency) {
			if seen[i.ID()] {
				return nil
			}
			seen[i.ID()] = true
			found = nil
			for _, next := range i.DependsOn {
				if next.Scope == dependency.Scope && found == nil {
					found = follow(next, append(slices.Clip(way), dependency.Solution))
				}
			}
			if found == nil {
				return nil
			}
		}
		return found
	}
	return follow(u.Dependency, []string{u.solution})
}

// InOrder sorts versions so that each comes after those that it needs in a scope: that are active, or in its environment. Of those
// that need each other, none can be the first, so they come in any order.
func InOrder(c *records.Catalog, list []schema.SolutionAt, scope schema.Scope) []schema.SolutionAt {
	ordered := []schema.SolutionAt{}
	seen := map[schema.SolutionAt]bool{}
	var visit func(at schema.SolutionAt)
	visit = func(at schema.SolutionAt) {
		if seen[at] {
			return
		}
		seen[at] = true
		for _, needed := range among(c, list, at, scope) {
			visit(needed)
		}
		ordered = append(ordered, at)
	}
	for _, at := range list {
		visit(at)
	}
	return ordered
}

// First returns those of a list of versions that one of them needs, in a scope, and that do not need it in turn, even
// through others: they can be ready before it.
func First(c *records.Catalog, list []schema.SolutionAt, at schema.SolutionAt, scope schema.Scope) []schema.SolutionAt {
	return slices.DeleteFunc(among(c, list, at, scope), func(needed schema.SolutionAt) bool {
		seen := map[schema.SolutionAt]bool{}
		var needs func(other schema.SolutionAt) bool
		needs = func(other schema.SolutionAt) bool {
			if other == at || seen[other] {
				return other == at
			}
			seen[other] = true
			return slices.ContainsFunc(among(c, list, other, scope), needs)
		}
		return needs(needed)
	})
}

// among returns those of a list of versions that a version depends on in a scope.
func among(c *records.Catalog, list []schema.SolutionAt, at schema.SolutionAt, scope schema.Scope) (needed []schema.SolutionAt) {
	imported, _ := c.Get(at.ID())
	for _, dependency := range imported.DependsOn {
		next := slices.IndexFunc(list, func(s schema.SolutionAt) bool { return s.Solution == dependency.Solution })
		if next >= 0 && cmp.Or(dependency.Scope, schema.ScopeEnvironment) == scope {
			needed = append(needed, list[next])
		}
	}
	return needed
}

// Put is a change that deploys a version in namespaces, or with "" removes the Solution from them.
func Put(solution, version string, namespaces ...metalk8s.Namespace) func(Holdings) {
	return func(h Holdings) {
		for _, n := range namespaces {
			set(h, Holder{n.Environment, n.Name, solution}, version)
		}
	}
}

// Activate is a change that makes versions active, or with the version "" none. The later ones become so in the same run.
func Activate(later []schema.SolutionAt, now ...schema.SolutionAt) func(Holdings) {
	return func(h Holdings) {
		for _, at := range append(slices.Clip(later), now...) {
			set(h, Holder{Solution: at.Solution}, at.Version)
		}
	}
}

// Empty is a change that takes everything out of namespaces.
func Empty(namespaces []metalk8s.Namespace) func(Holdings) {
	return func(h Holdings) {
		maps.DeleteFunc(h, func(there Holder, _ string) bool {
			return slices.ContainsFunc(namespaces, func(n metalk8s.Namespace) bool { return n.Name == there.Namespace })
		})
	}
}

func set(h Holdings, at Holder, version string) {
	if h[at] = version; version == "" {
		delete(h, at)
	}
}
