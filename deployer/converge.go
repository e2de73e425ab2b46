package deployer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Host is where archives are imported, beside the store.
type Host interface {
	// Identify returns the manifest of the archive with this path.
	Identify(path string) (*schema.Solution, error)
	// Stored lists the versions in the store of this host. An import puts a version there first, an unimport takes it from
	// there last.
	Stored() ([]schema.SolutionAt, error)
	// Import imports the archives with these paths, all or none of them. One that is imported already is no error.
	Import(ctx context.Context, paths ...string) error
	// Unimport forgets an imported version, unless it is in use.
	Unimport(ctx context.Context, id string) error
}

// PlanConvergence compares what a SolutionsConfiguration, in either form, says with what the cluster and this host have.
func (d *Deployer) PlanConvergence(ctx context.Context, c *schema.SolutionsConfiguration, host Host) (*schema.Convergence, error) {
	flat, notes, err := c.Flat(host.Identify)
	if err != nil {
		return nil, err
	}
	catalog, err := d.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	plan := &schema.Convergence{
		Import: []schema.ConvergeImport{}, Activate: []schema.SolutionAt{}, Deactivate: []schema.SolutionAt{},
		Unimport: []schema.SolutionAt{}, Notices: append([]string{}, notes...),
	}
	listed, err := d.documents().Solutions(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := host.Stored()
	if err != nil {
		return nil, err
	}
	desired, err := configured(flat, host)
	if err != nil {
		return nil, err
	}
	// Lower versions come first: an older version after a newer one would have to be allowed.
	for _, i := range desired.Imports() {
		at := schema.SolutionAt{Solution: i.Name, Version: i.Version}
		_, known := catalog.imports[i.ID()]
		if _, complete := listed.Find(i.Name, i.Version); !known || !complete || !slices.Contains(stored, at) {
			plan.Import = append(plan.Import, schema.ConvergeImport{SolutionAt: at, Path: i.Archive.Path})
		}
	}
	if err = d.planActive(ctx, plan, flat, desired, catalog); err != nil {
		return nil, err
	}
	if plan.Activate, err = desired.inOrder(plan.Activate); err != nil {
		return nil, err
	}
	if plan.Deactivate, err = catalog.inOrder(plan.Deactivate); err != nil {
		return nil, err
	}
	slices.Reverse(plan.Deactivate)
	leaving := stored
	for _, i := range catalog.Imports() {
		leaving = append(leaving, schema.SolutionAt{Solution: i.Name, Version: i.Version})
	}
	for _, at := range leaving {
		if _, keep := desired.imports[at.ID()]; !keep && !slices.Contains(plan.Unimport, at) {
			plan.Unimport = append(plan.Unimport, at)
		}
	}
	slices.SortFunc(plan.Unimport, func(a, b schema.SolutionAt) int { return strings.Compare(a.ID(), b.ID()) })
	return plan, nil
}

// configured is what the catalogue will be: what the archives of a configuration hold.
func configured(flat *schema.SolutionsConfiguration, host Host) (*Catalog, error) {
	desired := &Catalog{imports: map[string]schema.Import{}}
	for _, path := range flat.Archives {
		manifest, err := host.Identify(path)
		if err != nil {
			return nil, err
		}
		at := schema.SolutionAt{Solution: manifest.Metadata.Name, Version: manifest.Spec.Version}
		if other, twice := desired.imports[at.ID()]; twice {
			return nil, report.Errorf(report.Invalid, "%s and %s both hold %s", other.Archive.Path, path, at.ID()).WithHint("list one of them")
		}
		desired.imports[at.ID()] = schema.Import{
			Name: at.Solution, Version: at.Version, Archive: schema.ImportedArchive{Path: path}, DependsOn: manifest.Spec.DependsOn,
		}
	}
	return desired, nil
}

// planActive plans which versions become active, of those that will be imported, and which stop to be.
func (d *Deployer) planActive(ctx context.Context, plan *schema.Convergence, flat *schema.SolutionsConfiguration, desired, catalog *Catalog) error {
	for _, name := range sortedKeys(flat.Active) {
		found, notice, err := desired.Find(name, flat.Active[name])
		if err != nil {
			return report.Errorf(report.Refused, "version %s of Solution %s is to be active, but none of the archives holds it", flat.Active[name], name).
				WithHint("list its archive, or remove the line from active")
		}
		complete, err := d.isActive(ctx, name, found.Version)
		if err != nil {
			return err
		}
		if notice != "" {
			plan.Notices = append(plan.Notices, fmt.Sprintf("Solution %s: %s", name, notice))
		}
		if !complete {
			plan.Activate = append(plan.Activate, schema.SolutionAt{Solution: name, Version: found.Version})
		}
	}
	for _, name := range catalog.names() {
		if _, stays := flat.Active[name]; stays {
			continue
		}
		active, err := d.active(ctx, name)
		if err != nil {
			return err
		}
		if active != "" {
			plan.Deactivate = append(plan.Deactivate, schema.SolutionAt{Solution: name, Version: active})
		}
	}
	return nil
}

// isActive tells whether a version is the active one and nothing is left to do for that: no operation is pending, and
// MetalK8s' document says the same as our record, if there is one.
func (d *Deployer) isActive(ctx context.Context, solution, version string) (bool, error) {
	state, err := d.engine().State(ctx, engine.Key{Solution: solution})
	if err != nil {
		return false, err
	}
	solutions, err := d.documents().Solutions(ctx)
	if err != nil {
		return false, err
	}
	recorded := state.Current == nil || state.Current.Version == version
	return state.Pending == nil && recorded && solutions.Active(solution) == version, nil
}

// Converge carries a plan out. Its guards are asked before the first change: nothing is imported when something else
// cannot be removed.
func (d *Deployer) Converge(ctx context.Context, plan *schema.Convergence, host Host, o Options) error {
	if err := d.checkConvergence(ctx, plan, host); err != nil {
		return err
	}
	if o.DryRun {
		plan.Planned = true
		return nil
	}
	var paths []string
	for _, i := range plan.Import {
		paths = append(paths, i.Path)
	}
	if len(paths) > 0 {
		if err := host.Import(ctx, paths...); err != nil {
			return fmt.Errorf("import: %w", err)
		}
	}
	for _, s := range plan.Activate {
		done, err := d.Activate(ctx, ActivateOptions{Options: o, Solution: s.Solution, Version: s.Version, later: activeAfter(plan)})
		if err != nil {
			return fmt.Errorf("activate %s: %w", s.ID(), err)
		}
		plan.Notices = append(plan.Notices, done.Notices...)
	}
	for _, s := range plan.Deactivate {
		done, err := d.Deactivate(ctx, DeactivateOptions{Options: o, Solution: s.Solution, later: activeAfter(plan)})
		if err != nil {
			return fmt.Errorf("deactivate %s: %w", s.ID(), err)
		}
		plan.Notices = append(plan.Notices, done.Notices...)
	}
	for _, s := range plan.Unimport {
		if err := host.Unimport(ctx, s.ID()); err != nil {
			return fmt.Errorf("unimport %s: %w", s.ID(), err)
		}
	}
	return nil
}

// checkConvergence refuses what would be refused in the middle.
func (d *Deployer) checkConvergence(ctx context.Context, plan *schema.Convergence, host Host) error {
	if err := d.checkActiveAfter(ctx, plan, host); err != nil {
		return err
	}
	for _, s := range plan.Deactivate {
		if _, err := d.Deactivate(ctx, DeactivateOptions{Options: Options{DryRun: true}, Solution: s.Solution, later: activeAfter(plan)}); err != nil {
			return fmt.Errorf("deactivate %s: %w", s.ID(), err)
		}
	}
	stored, err := host.Stored()
	if err != nil {
		return err
	}
	for _, s := range plan.Unimport {
		if !slices.Contains(stored, s) {
			return report.Errorf(report.Refused, "%s is not in the file any more, and was imported on another host", s.ID()).
				WithHint("run there: solutionctl deploy unimport %s %s", s.Solution, s.Version)
		}
		deployed, err := d.deployments(ctx, s.Solution)
		if err != nil {
			return err
		}
		var users []string
		for _, there := range deployed {
			if there.version == s.Version {
				users = append(users, there.String())
			}
		}
		if len(users) > 0 {
			return report.Errorf(report.InUse, "version %s of Solution %s is not in the file any more, and in use: %s",
				s.Version, s.Solution, strings.Join(slices.Compact(users), ", ")).
				WithHint("remove it there first: solutionctl deploy remove ENVIRONMENT %s", s.Solution)
		}
	}
	return nil
}

// activeAfter are the changes of what is active that a plan makes.
func activeAfter(plan *schema.Convergence) []schema.SolutionAt {
	after := slices.Clone(plan.Activate)
	for _, s := range plan.Deactivate {
		after = append(after, schema.SolutionAt{Solution: s.Solution})
	}
	return after
}

// checkActiveAfter refuses a plan whose active versions lack what they, or others, need. Some of them are not imported yet.
func (d *Deployer) checkActiveAfter(ctx context.Context, plan *schema.Convergence, host Host) error {
	catalog, err := d.Catalog(ctx)
	if err != nil {
		return err
	}
	for _, i := range plan.Import {
		manifest, err := host.Identify(i.Path)
		if err != nil {
			return err
		}
		catalog.imports[i.ID()] = schema.Import{Name: i.Solution, Version: i.Version, DependsOn: manifest.Spec.DependsOn}
	}
	return d.checkDependencies(ctx, catalog, activate(activeAfter(plan)))
}
