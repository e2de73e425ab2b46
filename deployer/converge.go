package deployer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Host imports archives and forgets them, as the host with the store does.
type Host interface {
	// Identify returns the manifest of the archive with this path.
	Identify(path string) (*schema.Solution, error)
	// Payload returns what is in the archive with this path. It is judged, never deployed: what is deployed was imported.
	Payload(path string) (*render.Payload, error)
	// Stored lists the versions in the store of this host. An import puts a version there first, an unimport takes it from
	// there last.
	Stored() ([]schema.SolutionAt, error)
	// Judge returns an error if the archives with these paths cannot be imported. It changes nothing.
	Judge(ctx context.Context, paths ...string) error
	// Import imports the archives with these paths, all or none of them. An archive that is imported already is not an error.
	Import(ctx context.Context, paths ...string) error
	// Unimport forgets an imported version, unless it is in use.
	Unimport(ctx context.Context, id string) error
}

// ConvergeOptions say which convergence to carry out, and how.
type ConvergeOptions struct {
	plan.Options
	Plan *schema.Convergence // by [Deployer.PlanConvergence]
	Host Host
	// AcceptDataLoss and AcceptInvalid are CustomResourceDefinitions as in [ActivateOptions]. Names of what does not change are
	// no mistake here: the same command finishes what was interrupted.
	AcceptDataLoss []string
	AcceptInvalid  []string
	// Export returns where the custom resources of a Solution go before they lose data.
	Export func(solution string) definitions.Export
}

// PlanConvergenceOptions say what the cluster and this host are to have: a SolutionsConfiguration in either form.
type PlanConvergenceOptions struct {
	Configuration *schema.SolutionsConfiguration
	Host          Host
}

// PlanConvergence compares a SolutionsConfiguration with the state of the cluster and this host.
func (d *Deployer) PlanConvergence(ctx context.Context, o PlanConvergenceOptions) (*schema.Convergence, error) {
	c, host := o.Configuration, o.Host
	flat, notes, err := c.Flat(host.Identify)
	if err != nil {
		return nil, err
	}
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	plan := &schema.Convergence{
		Import: []schema.ConvergeImport{}, Activate: []schema.SolutionAt{}, Deactivate: []schema.SolutionAt{},
		Unimport: []schema.SolutionAt{}, Notices: append([]string{}, notes...),
	}
	listed, err := d.Records.Documents.Solutions(ctx)
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
		_, known := catalog.Get(i.ID())
		if _, complete := listed.Find(i.Name, i.Version); !known || !complete || !slices.Contains(stored, at) {
			plan.Import = append(plan.Import, schema.ConvergeImport{SolutionAt: at, Path: i.Archive.Path})
		}
	}
	if err = d.planActive(ctx, plan, flat.Active, desired); err != nil {
		return nil, err
	}
	if err = d.planInactive(ctx, plan, flat.Active, catalog); err != nil {
		return nil, err
	}
	plan.Activate, plan.Deactivate = dependencies.InOrder(desired, plan.Activate, schema.ScopeCluster), dependencies.InOrder(catalog, plan.Deactivate, schema.ScopeCluster)
	slices.Reverse(plan.Deactivate)
	leaving := stored
	for _, i := range catalog.Imports() {
		leaving = append(leaving, schema.SolutionAt{Solution: i.Name, Version: i.Version})
	}
	for _, at := range leaving {
		if _, keep := desired.Get(at.ID()); !keep && !slices.Contains(plan.Unimport, at) {
			plan.Unimport = append(plan.Unimport, at)
		}
	}
	slices.SortFunc(plan.Unimport, func(a, b schema.SolutionAt) int { return strings.Compare(a.ID(), b.ID()) })
	return plan, nil
}

// configured is the catalogue as it will be: of the versions in the archives of a configuration.
func configured(flat *schema.SolutionsConfiguration, host Host) (*records.Catalog, error) {
	desired := &records.Catalog{}
	for _, path := range flat.Archives {
		manifest, err := host.Identify(path)
		if err != nil {
			return nil, err
		}
		at := schema.SolutionAt{Solution: manifest.Metadata.Name, Version: manifest.Spec.Version}
		if other, twice := desired.Get(at.ID()); twice {
			return nil, report.Errorf(report.Invalid, "%s and %s both hold %s", other.Archive.Path, path, at.ID()).WithHint("list one of them")
		}
		desired.Put(schema.Import{
			Name: at.Solution, Version: at.Version, Archive: schema.ImportedArchive{Path: path}, DependsOn: manifest.Spec.DependsOn,
		})
	}
	return desired, nil
}

// planActive plans which versions become active, of those that will be imported.
func (d *Deployer) planActive(ctx context.Context, plan *schema.Convergence, active map[string]string, desired *records.Catalog) error {
	for _, name := range slices.Sorted(maps.Keys(active)) {
		found, notice, err := desired.Find(name, active[name])
		if err != nil {
			return report.Errorf(report.Refused, "version %s of Solution %s is to be active, but none of the archives holds it", active[name], name).
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
	return nil
}

// planInactive plans which versions stop to be active.
func (d *Deployer) planInactive(ctx context.Context, plan *schema.Convergence, active map[string]string, catalog *records.Catalog) error {
	for _, name := range catalog.Names() {
		if _, stays := active[name]; stays {
			continue
		}
		version, err := d.Records.Active(ctx, name)
		if err != nil {
			return err
		}
		if version != "" {
			plan.Deactivate = append(plan.Deactivate, schema.SolutionAt{Solution: name, Version: version})
		}
	}
	return nil
}

// isActive reports whether a version is the active one and nothing is left to do for that: no operation is pending, nothing waits for
// a kind that the cluster has by now, and MetalK8s' document says the same as our record, if there is one.
func (d *Deployer) isActive(ctx context.Context, solution, version string) (bool, error) {
	state, err := d.Records.Engine.State(ctx, engine.Key{Name: solution})
	if err != nil {
		return false, err
	}
	solutions, err := d.Records.Documents.Solutions(ctx)
	if err != nil {
		return false, err
	}
	awaited, err := awaited(ctx, d.Cluster, state)
	if err != nil {
		return false, err
	}
	recorded := state.Current == nil || state.Current.Version == version
	return awaited == nil && state.Pending == nil && recorded && solutions.Active(solution) == version, nil
}

// Converge carries a plan out. Its guards are asked before the first change: nothing is imported when something else
// cannot be removed.
func (d *Deployer) Converge(ctx context.Context, o ConvergeOptions) error {
	if err := o.ExpectsNothing("what takes several verbs"); err != nil {
		return err
	}
	host := o.Host
	notices, err := (&convergence{Deployer: d, ConvergeOptions: o}).check(ctx)
	if err != nil {
		return err
	}
	var paths []string
	for _, i := range o.Plan.Import {
		paths = append(paths, i.Path)
	}
	if o.DryRun {
		o.Plan.Planned = true
		o.Plan.Notices = append(o.Plan.Notices, notices...)
		if len(paths) > 0 {
			if err := host.Judge(ctx, paths...); err != nil {
				return fmt.Errorf("import: %w", err)
			}
		}
		return nil
	}
	if len(paths) > 0 {
		if err := host.Import(ctx, paths...); err != nil {
			return fmt.Errorf("import: %w", err)
		}
	}
	for _, s := range o.Plan.Activate {
		done, err := d.Activate(ctx, o.activation(s))
		if err != nil {
			if refused, ok := errors.AsType[*plan.PowersError](err); ok {
				refused.Changed = true
			}
			return fmt.Errorf("activate %s: %w", s.ID(), err)
		}
		o.Plan.Notices = append(o.Plan.Notices, done.Notices...)
	}
	for _, s := range o.Plan.Deactivate {
		done, err := d.Deactivate(ctx, DeactivateOptions{Options: o.Options, Solution: s.Solution, later: activeAfter(o.Plan)})
		if err != nil {
			return fmt.Errorf("deactivate %s: %w", s.ID(), err)
		}
		o.Plan.Notices = append(o.Plan.Notices, done.Notices...)
	}
	for _, s := range o.Plan.Unimport {
		if err := host.Unimport(ctx, s.ID()); err != nil {
			return fmt.Errorf("unimport %s: %w", s.ID(), err)
		}
	}
	return nil
}

// activation is one step of a plan.
func (o *ConvergeOptions) activation(at schema.SolutionAt) ActivateOptions {
	a := ActivateOptions{
		Options: o.Options, Solution: at.Solution, Version: at.Version, AcceptDataLoss: o.AcceptDataLoss, AcceptInvalid: o.AcceptInvalid, later: activeAfter(o.Plan),
	}
	a.ReplaceIfPlanned = true
	if o.Export != nil {
		a.Export = o.Export(at.Solution)
	}
	return a
}
