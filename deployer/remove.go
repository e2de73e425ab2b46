package deployer

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// RemoveOptions say what to remove from an environment.
type RemoveOptions struct {
	Options
	Environment, Solution string
	Namespace             string // one of the environment's; "" stands for all of them
	Data                  DataPolicy
	Export                definitions.Export // where custom resources go before they are deleted
}

// How a removal records that custom resources were to stay, so that whoever finishes it need not be asked.
const (
	settingData = "data"
	keptData    = "keep"
)

// Remove takes a Solution out of namespaces of an environment: everything that adding it put there. What is there of it and on
// no record is refused, unless o.Adopt is set: then it goes, too.
func (d *Deployer) Remove(ctx context.Context, o RemoveOptions) (*schema.Operation, error) {
	return d.inNamespaces(ctx, o.Options, o.Environment, o.Namespace, func(ctx context.Context, namespaces []metalk8s.Namespace) (*task, error) {
		return d.planRemove(ctx, o, namespaces)
	})
}

func (d *Deployer) planRemove(ctx context.Context, o RemoveOptions, namespaces []metalk8s.Namespace) (*task, error) {
	t := &task{Operation: schema.Operation{Operation: schema.VerbRemove, Solution: o.Solution, Environment: o.Environment}}
	releases, there, err := d.leaving(ctx, t, o, namespaces)
	if err != nil {
		return nil, err
	}
	if len(there) == 0 {
		return nil, notThere(o.Solution, o.Environment, namespaces)
	}
	catalog, err := d.imported(ctx, t)
	if err != nil {
		return nil, err
	}
	if err = d.checkDependencies(ctx, catalog, dependencies.Put(o.Solution, "", there...)); err != nil {
		return nil, err
	}
	lost, err := d.checkData(ctx, t, catalog, o, there)
	if report.CodeOf(err) == report.DataLoss && d.isRemoved(ctx, o.Solution, there) {
		err = report.Errorf(report.DataLoss, "Solution %s was removed before, and nothing but its data is left: %w", o.Solution, err).
			WithHint("to keep it, do nothing; '%s' brings its operator back, which finalizers may need", report.Run("deploy add", o.Environment, o.Solution))
	}
	if err != nil {
		return nil, err
	}
	if t.needs, err = definitions.DeletePermissions(ctx, d.Cluster, lost); err != nil {
		return nil, err
	}
	if t.plans, err = d.Records.Engine.PlanAll(ctx, releases, o.plan()); err != nil {
		return nil, err
	}
	t.before = func(ctx context.Context) error {
		if err := d.Definitions.DeleteInstances(ctx, lost, o.Export, o.Timeout); err != nil {
			return err
		}
		return d.setVersion(ctx, there, o.Solution, "")
	}
	return t, nil
}

// leaving finds what there is of a Solution, and in which of the namespaces, and returns the releases that take it away.
func (d *Deployer) leaving(ctx context.Context, t *task, o RemoveOptions, namespaces []metalk8s.Namespace) (releases []engine.Release, there []metalk8s.Namespace, err error) {
	found, err := d.Records.ListUnrecorded(ctx, o.Solution, namespaces)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range namespaces {
		key := engine.Key{Namespace: n.Name, Name: o.Solution}
		state, failure := d.Records.Engine.State(ctx, key)
		if failure != nil {
			return nil, nil, failure
		}
		recorded, ok := n.Versions[o.Solution]
		if !ok && state.Current == nil && state.Pending == nil && found[n.Name].Empty() {
			continue
		}
		if !found[n.Name].Empty() && !o.Adopt {
			return nil, nil, found[n.Name].Refuse(n.Environment)
		}
		there = append(there, n)
		if copies := found[n.Name].CopiesText(); copies != "" {
			t.notice(copies)
		}
		parts, failure := d.componentStates(ctx, state)
		if failure != nil {
			return nil, nil, failure
		}
		gone := removals(append([]*engine.State{state}, parts...), schema.VerbRemove)
		if gone[0].Found = found[n.Name].Deployed(); o.Data == KeepData {
			gone[0].Settings = map[string]string{settingData: keptData}
		}
		releases = append(releases, gone...)
		t.records = append(t.records, records.EntryChange(n.Name, metalk8s.EnvironmentConfigMap, "data."+o.Solution, recorded, "")...)
	}
	return releases, there, nil
}

// isRemoved reports whether the records say that an earlier run has removed a Solution from all of some namespaces.
func (d *Deployer) isRemoved(ctx context.Context, solution string, namespaces []metalk8s.Namespace) bool {
	return !slices.ContainsFunc(namespaces, func(n metalk8s.Namespace) bool {
		state, err := d.Records.Engine.State(ctx, engine.Key{Namespace: n.Name, Name: solution})
		return err != nil || state.Pending != nil || state.Current == nil || state.Installed() || n.Versions[solution] != ""
	})
}

func notThere(solution, environment string, namespaces []metalk8s.Namespace) error {
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

// checkData judges the custom resources that would be left without their operator; it returns those to delete.
func (d *Deployer) checkData(ctx context.Context, t *task, catalog *records.Catalog, o RemoveOptions, namespaces []metalk8s.Namespace) ([]definitions.Instance, error) {
	crds, err := d.Definitions.Of(ctx, catalog, o.Solution)
	if err != nil {
		return nil, err
	}
	var all []definitions.Instance
	var counts []string
	for _, n := range namespaces {
		here, err := d.Definitions.Instances(ctx, crds, n.Name)
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
	case o.Data == KeepData:
		t.notice("kept without their operator: " + strings.Join(counts, "; "))
		return nil, nil
	case o.Data == DeleteData:
		t.notice("custom resources are deleted: " + strings.Join(counts, "; "))
		return all, nil
	}
	return nil, report.Errorf(report.DataLoss, "there are custom resources of Solution %s: %s", o.Solution, strings.Join(counts, "; ")).
		WithHint("%s leaves them without an operator, %s exports and deletes them", report.Accept("keep-data"), report.Accept("delete-data").About(counts...))
}

// DataPolicy says what to do with custom resources that would be left without their operator or definition.
type DataPolicy int

// The policies. Without one, nothing is done while there are custom resources.
const (
	RefuseData DataPolicy = iota
	KeepData              // leave them as they are
	DeleteData            // write them to the export, delete them and wait until they are gone
)
