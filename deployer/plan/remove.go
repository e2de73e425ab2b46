package plan

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// How a removal records that custom resources stay, for the run that resumes it.
const (
	settingData = "data"
	keptData    = "keep"
)

// Keeps reports whether a revision that removes a Solution keeps its custom resources.
func Keeps(r *schema.DeploymentRevision) bool { return r.Settings[settingData] == keptData }

// Remove plans to remove r.Solution from the namespaces of the run. The going ones, which may need it, leave before.
func (r *Run) Remove(ctx context.Context, data DataPolicy, going ...string) error {
	d := removal{SolutionAt: schema.SolutionAt{Solution: r.Solution}, data: data}
	if err := r.findRemoval(ctx, &d); err != nil {
		return err
	}
	if len(d.namespaces) == 0 {
		return NotDeployed(r.Solution, r.Environment, r.Namespaces)
	}
	if err := r.ReadCatalogIfIntact(ctx); err != nil {
		return err
	}
	leave := func(h dependencies.Holdings) {
		for _, solution := range append(slices.Clip(going), r.Solution) {
			dependencies.Put(solution, "", d.namespaces...)(h)
		}
	}
	if err := r.CheckDependencies(ctx, leave); err != nil {
		return err
	}
	lost, err := r.checkData(ctx, &d)
	if report.CodeOf(err) == report.DataLoss && r.isRemoved(ctx, &d) {
		err = report.Errorf(report.DataLoss, "Solution %s was removed before, and nothing but its data is left: %w", r.Solution, err).
			WithHint("to keep it, do nothing; '%s' brings its operator back, which finalizers may need", report.Run("deploy add", r.Environment, r.Solution).In(r.only))
	}
	if err != nil {
		return err
	}
	if r.Needs, err = definitions.DeletePermissions(ctx, r.Cluster, lost); err != nil {
		return err
	}
	r.Before = func(ctx context.Context) error {
		if err := r.Definitions.DeleteInstances(ctx, lost, r.Export, r.Timeout); err != nil {
			return err
		}
		left := entries{}
		left.add(r.Solution, "", d.namespaces)
		return r.setVersions(ctx, left)
	}
	return r.Plan(ctx, d.releases...)
}

// removal is a Solution that is removed from namespaces.
type removal struct {
	schema.SolutionAt
	data       DataPolicy
	namespaces []metalk8s.Namespace
	releases   []engine.Release
}

// findRemoval finds in which namespaces of the run there is something of a Solution, and the releases that remove it.
func (r *Run) findRemoval(ctx context.Context, d *removal) error {
	solution := d.Solution
	found, err := r.Records.ListUnrecorded(ctx, solution, r.Namespaces)
	if err != nil {
		return err
	}
	for _, n := range r.Namespaces {
		state, err := r.Records.Engine.State(ctx, record.Key{Namespace: n.Name, Name: solution})
		if err != nil {
			return err
		}
		recorded, ok := n.Versions[solution]
		if !ok && state.Current == nil && state.Pending == nil && found[n.Name].Empty() {
			continue
		}
		if !found[n.Name].Empty() && !r.Adopt {
			return found[n.Name].Refuse(n.Environment, r.only)
		}
		d.namespaces = append(d.namespaces, n)
		for _, kept := range []string{found[n.Name].CopiesText(), found[n.Name].SharedText()} {
			if kept != "" {
				r.noticeOnce(kept)
			}
		}
		parts, err := r.componentStates(ctx, state)
		if err != nil {
			return err
		}
		gone := Removals(append([]*record.State{state}, parts...), schema.VerbRemove)
		if gone[0].Found = found[n.Name].Deployed(); d.data == KeepData {
			gone[0].Settings = map[string]string{settingData: keptData}
		}
		d.releases = append(d.releases, gone...)
		r.Changes = append(r.Changes, records.EntryChange(n.Name, metalk8s.EnvironmentConfigMap, "data."+solution, recorded, "")...)
	}
	return nil
}

// isRemoved reports whether the records say that an earlier run has removed the Solution from all of the namespaces.
func (p *Planner) isRemoved(ctx context.Context, d *removal) bool {
	return !slices.ContainsFunc(d.namespaces, func(n metalk8s.Namespace) bool {
		state, err := p.Records.Engine.State(ctx, record.Key{Namespace: n.Name, Name: d.Solution})
		return err != nil || state.Pending != nil || state.Current == nil || state.Installed() || n.Versions[d.Solution] != ""
	})
}

// NotDeployed is the error for a Solution that is in no namespace of an environment.
func NotDeployed(solution, environment string, namespaces []metalk8s.Namespace) error {
	names := map[string]bool{}
	for _, n := range namespaces {
		for name := range n.Versions {
			names[name] = true
		}
	}
	err := report.Errorf(report.NotFound, "Solution %s is not in environment %s", solution, environment)
	if len(names) == 0 {
		return err.WithHint("there is no Solution in it")
	}
	return err.WithHint("it has %s", strings.Join(slices.Sorted(maps.Keys(names)), ", "))
}

// checkData judges the custom resources that are left without their operator; it returns those to delete.
func (r *Run) checkData(ctx context.Context, d *removal) ([]definitions.Instance, error) {
	solution := d.Solution
	crds, err := r.Definitions.Of(ctx, r.Catalog, solution)
	if err != nil {
		return nil, err
	}
	var all []definitions.Instance
	var counts []string
	for _, n := range d.namespaces {
		here, err := r.Definitions.Instances(ctx, crds, n.Name)
		if err != nil {
			return nil, err
		}
		if len(here) > 0 {
			all = append(all, here...)
			counts = append(counts, definitions.CountText(here)+" in namespace "+n.Name)
		}
	}
	switch {
	case len(all) == 0:
		return nil, nil
	case d.data == KeepData:
		r.data = append(r.data, definitions.Data(crds, all, schema.DataOrphaned)...)
		r.Notice("kept without their operator: " + strings.Join(counts, "; "))
		return nil, nil
	case d.data == DeleteData:
		r.data = append(r.data, definitions.Data(crds, all, schema.DataDeleted)...)
		r.Notice("custom resources are deleted: " + strings.Join(counts, "; "))
		return all, nil
	}
	return nil, report.Errorf(report.DataLoss, "there are custom resources of Solution %s: %s", solution, strings.Join(counts, "; ")).
		WithHint("%s leaves them without an operator, %s exports and deletes them", report.Accept("keep-data"), report.Accept("delete-data").About(counts...))
}

// DataPolicy decides what to do with custom resources that would lose their operator or CustomResourceDefinition.
type DataPolicy int

// The policies. Without one, nothing is done while there are custom resources.
const (
	RefuseData DataPolicy = iota
	KeepData              // leave them as they are
	DeleteData            // write them to the export, delete them and wait until they are gone
)
