package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
)

// Verbs are the operations with which [Host.Converge] changes a cluster; [deployer.Deployer] implements them.
type Verbs interface {
	PlanConvergence(ctx context.Context, o deployer.PlanConvergenceOptions) (*schema.Convergence, error)
	Converge(ctx context.Context, o deployer.ConvergeOptions) error
}

// ConvergeOptions have the configuration for a host and its cluster.
type ConvergeOptions struct {
	Configuration *schema.SolutionsConfiguration
	Verbs         Verbs
	Deploy        deployer.ConvergeOptions // its plan and host are made here, its Export of the one below
	Import        ImportOptions            // but the archives, which the configuration names
	// Export returns where the custom resources of one of so many Solutions go before they lose data; may be nil.
	Export func(solution string, of int) definitions.Export
}

// Converge applies a configuration to this host and its cluster. A dry run only reports the changes.
func (h *Host) Converge(ctx context.Context, o ConvergeOptions) (*schema.Convergence, error) {
	var listed map[string]string
	if !o.Deploy.DryRun {
		err := errors.Join(h.Configuration.Check(), h.Store.Tidy(ctx, h.LockWait, h.Sink))
		if err != nil {
			return nil, err
		}
		if listed, err = ActiveVersions(h.Configuration.Path).Read(); err != nil {
			return nil, err
		}
	}
	here := &converging{Host: h, o: o.Import}
	plan, err := o.Verbs.PlanConvergence(ctx, deployer.PlanConvergenceOptions{Configuration: o.Configuration, Host: here})
	if err != nil {
		return nil, err
	}
	if o.Export != nil {
		o.Deploy.Export = func(solution string) definitions.Export { return o.Export(solution, len(plan.Activate)) }
	}
	flat, _, err := o.Configuration.Flat(here.Identify)
	if err != nil {
		return nil, err
	}
	o.Deploy.Plan, o.Deploy.Host = plan, here
	if err = o.Verbs.Converge(ctx, o.Deploy); err != nil {
		return nil, err
	}
	plan.Notices = append(plan.Notices, here.notices...)
	if o.Deploy.DryRun {
		return plan, nil
	}
	notices, err := h.listActive(ctx, listed, flat.Active, plan)
	if err != nil {
		return plan, fmt.Errorf("the cluster is changed, but not its configuration: %w", err)
	}
	plan.Notices = append(plan.Notices, notices...)
	return plan, nil
}

// listActive makes MetalK8s' configuration list the active versions after a plan. The entries of Solutions that only MetalK8s has imported stay, and
// those of versions that were activated by another process during the run: they differ from before, or are active in the cluster.
func (h *Host) listActive(ctx context.Context, before, active map[string]string, plan *schema.Convergence) (notices []string, err error) {
	entries, err := h.Store.Entries()
	if err != nil {
		return nil, err
	}
	ours := map[string]bool{}
	for _, e := range entries {
		ours[e.Name] = true
	}
	for _, at := range slices.Concat(plan.Unimport, plan.Deactivate) {
		ours[at.Solution] = true
	}
	stale := map[string]string{}
	for _, solution := range slices.Sorted(maps.Keys(before)) {
		if !ours[solution] || active[solution] != "" {
			continue
		}
		switch version, unknown := h.activeVersion(ctx, solution); {
		case unknown != nil:
			notices = append(notices, fmt.Sprintf("the version of %s that is active in the cluster is not known: %v", solution, unknown))
		case version == "":
			stale[solution] = before[solution]
		}
	}
	var others []string
	edited, err := h.Configuration.Edit(ctx, func(now *schema.SolutionsConfiguration) {
		maps.DeleteFunc(now.Active, func(solution, version string) bool { return version == stale[solution] })
		maps.Copy(now.Active, active)
		others = slices.DeleteFunc(slices.Sorted(maps.Keys(now.Active)), func(solution string) bool { return active[solution] != "" })
	})
	if err != nil {
		return nil, err
	}
	if len(others) > 0 {
		notices = append(notices, fmt.Sprintf("%s lists active versions of other Solutions, which stay: %s", h.Configuration.Path, strings.Join(others, ", ")))
	}
	return append(notices, edited.Notes...), nil
}

// converging is the host during a convergence.
type converging struct {
	*Host
	o       ImportOptions
	notices []string
}

// Identify returns the manifest of the archive imported from a path, even if the file is gone, or else that of the
// file.
func (c *converging) Identify(path string) (*schema.Solution, error) {
	path, err := c.find(path)
	if err != nil {
		return nil, err
	}
	return archive.Identify(path)
}

func (c *converging) Payload(path string) (*render.Payload, error) {
	path, err := c.find(path)
	if err != nil {
		return nil, err
	}
	opened, file, err := archive.OpenFile(path)
	if err != nil {
		return nil, err
	}
	p, err := render.FromArchive(opened)
	return p, errors.Join(err, file.Close())
}

func (c *converging) Stored() ([]schema.SolutionAt, error) {
	entries, err := c.Store.Entries()
	stored := make([]schema.SolutionAt, len(entries))
	for i, e := range entries {
		stored[i] = schema.SolutionAt{Solution: e.Name, Version: e.Version}
	}
	return stored, err
}

func (c *converging) Judge(ctx context.Context, paths ...string) error {
	o := c.o
	o.Archives = paths
	return c.judgeImport(ctx, o)
}

func (c *converging) Import(ctx context.Context, paths ...string) error {
	o := c.o
	o.Archives = paths
	done, err := c.Host.Import(ctx, o)
	if done != nil {
		c.notices = append(c.notices, done.Notices...)
	}
	return err
}

func (c *converging) Unimport(ctx context.Context, id string) error {
	done, err := c.Host.Unimport(ctx, UnimportOptions{Archive: id})
	if done != nil {
		c.notices = append(c.notices, done.Notices...)
	}
	return err
}
