package survey

import (
	"context"
	"fmt"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Selection selects the releases to compare; an empty field selects all.
type Selection struct {
	Environment, Solution string
	// Components are some of the Solution, by their names in its graph: operator/ and ui/ are deployed as one.
	Components []string
}

// Includes reports whether the selection includes a release in one of its namespaces.
func (o *Selection) Includes(key record.Key) bool {
	return (o.Solution == "" || o.Solution == key.Name) &&
		(len(o.Components) == 0 || slices.ContainsFunc(o.Components, func(name string) bool { return componentOf(name) == key.Component }))
}

// check refuses names of components that are not deployed: a misspelt name must not be reported as unchanged.
func (o *Selection) check(states []*record.State) error {
	var names []string
	for _, s := range states {
		if s.Installed() || s.Pending != nil || s.Damage != nil { // a removed release keeps its record
			names = append(names, s.Component)
		}
	}
	for _, name := range o.Components {
		if slices.Contains(names, componentOf(name)) {
			continue
		}
		err := report.Errorf(report.NotFound, "component %s of Solution %s was not deployed here", name, o.Solution)
		if near := report.Nearest(name, names); near != "" {
			return err.WithHint("did you mean %s?", near)
		}
		return err.WithHint("'%s' shows the deployed components", report.Run("deploy components", o.Environment, o.Solution))
	}
	return nil
}

// componentOf returns the component in the release key of a node of the graph.
func componentOf(node string) string {
	if node == schema.NodeOperator || node == schema.NodeUI {
		return ""
	}
	return node
}

// Deployed returns the records of deployed releases, and the namespaces of the environments. Releases with a pending
// operation and those in a namespace that is being deleted are left out, with a notice.
func (v *Survey) Deployed(ctx context.Context, o Selection) (found []*record.State, inside map[string]metalk8s.Namespace, notices []string, err error) {
	var environments []metalk8s.Environment
	if o.Environment == "" {
		if environments, err = v.Records.Documents.Environments(ctx); err != nil {
			return nil, nil, nil, err
		}
	} else {
		var one *metalk8s.Environment
		if one, err = v.Records.Documents.Permitted(ctx, o.Environment, ""); err != nil {
			return nil, nil, nil, err
		}
		environments = append(environments, *one)
	}
	there := map[string]bool{"": true}
	inside = map[string]metalk8s.Namespace{}
	for _, e := range environments {
		for _, n := range e.Namespaces {
			inside[n.Name], there[n.Name] = n, !n.Terminating
		}
	}
	var states []*record.State
	if o.Environment == "" {
		states, err = v.Records.Engine.States(ctx)
	} else {
		states, err = v.Records.StatesIn(ctx, environments[0].Namespaces)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	states = slices.DeleteFunc(states, func(s *record.State) bool {
		return s.Current == nil && s.Pending == nil && s.Damage == nil || o.Solution != "" && s.Name != o.Solution
	})
	if len(states) == 0 && o.Solution != "" {
		return nil, nil, nil, records.NotDeployed(o.Solution)
	}
	if err = o.check(states); err != nil {
		return nil, nil, nil, err
	}
	states = slices.DeleteFunc(states, func(s *record.State) bool { return !o.Includes(s.Key) })
	for _, s := range states {
		if s.Damage != nil {
			if o.Solution != "" {
				return nil, nil, nil, s.Damage
			}
			notices = append(notices, records.UnreadText(s.Key, s.Damage))
			continue
		}
		if _, known := there[s.Namespace]; !known {
			namespace, err := v.Cluster.Get(ctx, cluster.NamespaceKind, "", s.Namespace)
			if err != nil {
				return nil, nil, nil, err
			}
			there[s.Namespace] = namespace != nil && namespace.GetDeletionTimestamp() == nil
		}
		switch {
		case s.Pending != nil && s.Pending.Operation != schema.VerbRepair:
			notices = append(notices, fmt.Sprintf("%s: the last %s was interrupted; run it again", s, s.Pending.Operation))
		case !there[s.Namespace]:
			notices = append(notices, fmt.Sprintf("%s: the namespace is gone, or being deleted", s))
		case s.Current != nil:
			found = append(found, s)
		}
	}
	return found, inside, notices, nil
}

// Drift plans the changes that restore the recorded state, without checking permissions for them. Releases with
// unreadable objects are left out; their errors are returned by key.
func (v *Survey) Drift(ctx context.Context, states []*record.State) ([]*engine.Plan, map[record.Key]error, error) {
	releases, unread, err := v.Records.Engine.Deployed(ctx, states)
	if err != nil {
		return nil, nil, err
	}
	plans, err := v.Records.Engine.PlanAll(ctx, releases, engine.PlanOptions{Restore: true, ReadOnly: true})
	return plans, unread, err
}
