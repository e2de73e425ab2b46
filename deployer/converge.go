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
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Host imports and unimports archives on a host with a store.
type Host interface {
	// Identify returns the manifest of the archive with this path.
	Identify(path string) (*schema.Solution, error)
	// Payload returns the content of the archive with this path. It is only judged: verbs deploy imported versions.
	Payload(path string) (*render.Payload, error)
	// Stored lists the versions in the store of this host. An import stores a version first, an unimport deletes it last.
	Stored() ([]schema.SolutionAt, error)
	// Judge returns an error if the archives with these paths cannot be imported. It changes nothing.
	Judge(ctx context.Context, paths ...string) error
	// Import imports the archives with these paths, all or none of them. An archive that is imported already is not an error.
	Import(ctx context.Context, paths ...string) error
	// Unimport deletes an imported version, unless it is in use.
	Unimport(ctx context.Context, id string) error
}

// ConvergeOptions have the plan of a convergence, and how to carry it out.
type ConvergeOptions struct {
	plan.Options
	Plan *schema.Convergence // by [Deployer.PlanConvergence]
	Host Host
	// AcceptDataLoss and AcceptInvalid are as in [definitions.Losses]. Names of CRDs that do not change are accepted, because the same command
	// finishes an interrupted run.
	AcceptDataLoss []string
	AcceptInvalid  []string
	// Export returns where the custom resources of a Solution go before they lose data.
	Export func(solution string) definitions.Export
}

// PlanConvergenceOptions have the wanted state of the cluster and this host: a SolutionsConfiguration in either form.
type PlanConvergenceOptions struct {
	Configuration *schema.SolutionsConfiguration
	Host          Host
}

// PlanConvergence compares a SolutionsConfiguration with the state of the cluster and this host.
func (d *Deployer) PlanConvergence(ctx context.Context, o PlanConvergenceOptions) (*schema.Convergence, error) {
	flat, notes, err := o.Configuration.Flat(o.Host.Identify)
	if err != nil {
		return nil, err
	}
	c := &comparison{records: d.Records, active: flat.Active, Convergence: schema.Convergence{
		Import: []schema.ConvergeImport{}, Activate: []schema.SolutionAt{}, Deactivate: []schema.SolutionAt{},
		Unimport: []schema.SolutionAt{}, Notices: append([]string{}, notes...),
	}}
	if err = c.read(ctx, flat.Archives, o.Host); err != nil {
		return nil, err
	}
	c.compareImports()
	if err = c.compareActive(ctx); err != nil {
		return nil, err
	}
	return &c.Convergence, nil
}

// comparison is a run of PlanConvergence.
type comparison struct {
	schema.Convergence
	records          *records.Records
	active           map[string]string // versions that are to be active, by Solution
	desired, catalog *records.Catalog  // to be imported, and imported
	listed           *metalk8s.Solutions
	stored           []schema.SolutionAt
}

func (c *comparison) read(ctx context.Context, archives []string, host Host) (err error) {
	if c.catalog, err = c.records.Catalog(ctx); err != nil {
		return err
	}
	if c.listed, err = c.records.Documents.Solutions(ctx); err != nil {
		return err
	}
	if c.stored, err = host.Stored(); err != nil {
		return err
	}
	c.desired, err = configured(archives, host)
	return err
}

// compareImports plans which versions are imported and unimported. Lower versions are imported first, because a lower one after a higher one
// is refused by default.
func (c *comparison) compareImports() {
	for _, i := range c.desired.Imports() {
		at := schema.SolutionAt{Solution: i.Name, Version: i.Version}
		_, known := c.catalog.Get(i.ID())
		if _, complete := c.listed.Find(i.Name, i.Version); !known || !complete || !slices.Contains(c.stored, at) {
			c.Import = append(c.Import, schema.ConvergeImport{SolutionAt: at, Path: i.Archive.Path})
		}
	}
	known := c.stored
	for _, i := range c.catalog.Imports() {
		known = append(known, schema.SolutionAt{Solution: i.Name, Version: i.Version})
	}
	for _, at := range known {
		if _, keep := c.desired.Get(at.ID()); !keep && !slices.Contains(c.Unimport, at) {
			c.Unimport = append(c.Unimport, at)
		}
	}
	slices.SortFunc(c.Unimport, func(a, b schema.SolutionAt) int { return strings.Compare(a.ID(), b.ID()) })
}

// compareActive plans which of the desired versions are activated, and which versions are deactivated.
func (c *comparison) compareActive(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(c.active)) {
		found, notice, err := c.desired.Find(name, c.active[name])
		if err != nil {
			return report.Errorf(report.Refused, "version %s of Solution %s is to be active, but none of the archives holds it", c.active[name], name).
				WithHint("list its archive, or remove the line from active")
		}
		if notice != "" {
			c.Notices = append(c.Notices, fmt.Sprintf("Solution %s: %s", name, notice))
		}
		active, err := c.isActive(ctx, name, found.Version)
		if err != nil {
			return err
		}
		if !active {
			c.Activate = append(c.Activate, schema.SolutionAt{Solution: name, Version: found.Version})
		}
	}
	for _, name := range c.catalog.Names() {
		if _, stays := c.active[name]; stays {
			continue
		}
		version, err := c.records.Active(ctx, name)
		if err != nil {
			return err
		}
		if version != "" {
			c.Deactivate = append(c.Deactivate, schema.SolutionAt{Solution: name, Version: version})
		}
	}
	c.Activate, c.Deactivate = dependencies.InOrder(c.desired, c.Activate, schema.ScopeCluster), dependencies.InOrder(c.catalog, c.Deactivate, schema.ScopeCluster)
	slices.Reverse(c.Deactivate)
	return nil
}

// isActive reports whether a version is active and complete: no operation is pending, nothing waits for a kind that the cluster has by now, and
// the document of MetalK8s agrees with our record, if there is one.
func (c *comparison) isActive(ctx context.Context, solution, version string) (bool, error) {
	state, err := c.records.Engine.State(ctx, record.Key{Name: solution})
	if err != nil {
		return false, err
	}
	awaited, err := awaited(ctx, c.records.Cluster, state)
	if err != nil {
		return false, err
	}
	recorded := state.Current == nil || state.Current.Version == version
	return awaited == nil && state.Pending == nil && recorded && c.listed.Active(solution) == version, nil
}

// configured returns the catalogue of the versions in archives.
func configured(archives []string, host Host) (*records.Catalog, error) {
	desired := &records.Catalog{}
	for _, path := range archives {
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

// Converge carries out a plan. It checks all steps before the first change: it imports nothing if it cannot remove another version.
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
		Options: o.Options, Solution: at.Solution, Version: at.Version, later: activeAfter(o.Plan),
		Losses: definitions.Losses{AcceptDataLoss: o.AcceptDataLoss, AcceptInvalid: o.AcceptInvalid},
	}
	a.ReplaceIfPlanned = true
	if o.Export != nil {
		a.Export = o.Export(at.Solution)
	}
	return a
}
