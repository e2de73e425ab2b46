package deployer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
)

// ActiveVersions is the list of active versions in MetalK8s' configuration on this host. MetalK8s deletes the CRDs of an imported Solution that is active
// in the cluster and not listed, with all custom resources. So an activation lists its version before it changes the cluster, and a deactivation removes
// it afterwards: a run that is killed in between leaves a Solution that MetalK8s activates.
type ActiveVersions interface {
	// Check returns an error if the list cannot be edited.
	Check() error
	// Read returns the versions by Solution; nil on a host without the file.
	Read() (map[string]string, error)
	// Edit changes the list, and returns notices for the user. On a host without the file it does nothing.
	Edit(ctx context.Context, edit func(active map[string]string)) (notices []string, err error)
}

// listActivation makes a planned activation list its version. The word "latest" stays in the list, where keepLatest is set and this is the highest release.
func (d *Deployer) listActivation(run *plan.Run, requested string, keepLatest bool) {
	d.listBefore(run, func(active map[string]string) {
		switch {
		case requested == schema.ActiveLatest:
			active[run.Solution] = schema.ActiveLatest
		case !keepLatest || !isListed(run.Catalog, active[run.Solution], run.Solution, run.Version):
			active[run.Solution] = run.Version
		}
	})
}

// listRestored makes a planned repair list the versions that it makes active again: those of the states that are not active, and imported.
func (d *Deployer) listRestored(ctx context.Context, run *plan.Run, states []*record.State) error {
	if d.Active == nil {
		return nil
	}
	restored := map[string]string{}
	for _, s := range states {
		if s.Namespace != "" || s.Component != "" {
			continue
		}
		solutions, err := d.Records.Documents.Solutions(ctx)
		if err != nil {
			return err
		}
		if _, imported := solutions.Find(s.Name, s.Current.Version); imported && solutions.Active(s.Name) != s.Current.Version {
			restored[s.Name] = s.Current.Version
		}
	}
	if len(restored) == 0 {
		return nil
	}
	err := d.checkList(run.Options)
	if err != nil {
		return err
	}
	if run.Catalog, err = d.Records.CatalogOrDamage(ctx); err != nil {
		return err
	}
	d.listBefore(run, func(active map[string]string) {
		for solution, version := range restored {
			if !isListed(run.Catalog, active[solution], solution, version) {
				active[solution] = version
			}
		}
	})
	return nil
}

// listBefore makes a planned run edit the list before it changes the cluster.
func (d *Deployer) listBefore(run *plan.Run, edit func(active map[string]string)) {
	before := run.Before
	run.Before = func(ctx context.Context) error {
		if err := d.list(ctx, run, edit); err != nil || before == nil {
			return err
		}
		return before(ctx)
	}
}

// unlistDeactivation makes a planned deactivation remove its Solution from the list.
func (d *Deployer) unlistDeactivation(run *plan.Run) {
	after := run.After
	run.After = func(ctx context.Context) error {
		if after != nil {
			if err := after(ctx); err != nil {
				return err
			}
		}
		err := d.list(ctx, run, func(active map[string]string) { delete(active, run.Solution) })
		if err != nil {
			return fmt.Errorf("the cluster is changed, but not MetalK8s' configuration: %w", err)
		}
		return nil
	}
}

// checkList returns an error if a run cannot edit the list of active versions.
func (d *Deployer) checkList(o plan.Options) error {
	if d.Active == nil || o.DryRun {
		return nil
	}
	return d.Active.Check()
}

func (d *Deployer) list(ctx context.Context, run *plan.Run, edit func(map[string]string)) error {
	if d.Active == nil {
		return nil
	}
	notices, err := d.Active.Edit(ctx, edit)
	run.Notice(notices...)
	return err
}

// isListed reports whether an entry of the list stands for a version.
func isListed(catalog *records.Catalog, entry, solution, version string) bool {
	if entry != schema.ActiveLatest {
		return entry == version
	}
	highest, _, err := catalog.Find(solution, schema.ActiveLatest)
	return err == nil && highest.Version == version
}

// listActive lists versions that are active already, and returns the operations that did it. A dry run changes nothing, and takes a list that its user is
// not allowed to read for an empty one.
func (d *Deployer) listActive(ctx context.Context, run *plan.Run, versions []schema.SolutionAt) (done []*schema.Operation, err error) {
	if d.Active == nil || len(versions) == 0 {
		return nil, nil
	}
	listed, err := d.Active.Read()
	if run.DryRun && errors.Is(err, fs.ErrPermission) {
		listed, err = map[string]string{}, nil
	}
	if listed == nil || err != nil {
		return nil, err
	}
	for _, at := range versions {
		if isListed(run.Catalog, listed[at.Solution], at.Solution, at.Version) {
			continue
		}
		operation := &schema.Operation{
			Operation: schema.VerbActivate, Planned: run.DryRun, Solution: at.Solution, Version: at.Version, Parts: []schema.OperationPart{},
			Notices: []string{fmt.Sprintf("MetalK8s' configuration on this host lists %s as active", at.ID())},
		}
		done = append(done, operation)
		if run.DryRun {
			continue
		}
		notices, err := d.Active.Edit(ctx, func(active map[string]string) { active[at.Solution] = at.Version })
		operation.Notices = append(operation.Notices, notices...)
		if err != nil {
			return done, err
		}
	}
	return done, nil
}
