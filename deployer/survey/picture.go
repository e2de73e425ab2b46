package survey

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// picture is everything that a status is made of, read once.
type picture struct {
	closely      bool // whether every object was compared with the deployed one
	environments []metalk8s.Environment
	solutions    *metalk8s.Solutions
	catalog      *records.Catalog
	states       map[record.Key]*record.State
	findings     map[record.Key]*finding
	operators    map[record.Key]*unstructured.Unstructured // of environments, without our label
	foreign      map[record.Key]*unstructured.Unstructured // operators that this program did not deploy
	lost         map[record.Key]*records.Unrecorded        // unrecorded objects with our label
	there        map[string][]record.Key                   // by namespace; see in
	work         map[string]cluster.Work                   // by namespace, where something was begun; who works on it
	gone         map[string]bool                           // namespaces on the records that are not there
	dim          map[string]bool                           // namespaces whose deployed objects the user is not allowed to read
	quiet        map[string]bool                           // namespaces whose requested versions the user is not allowed to read
}

// look looks at namespaces, or without any at the whole cluster. What does not depend on each other is read at once.
func (v *Survey) look(ctx context.Context, environments func() ([]metalk8s.Environment, error), namespaces []string, o StatusOptions) (*picture, error) {
	s := &picture{closely: o.Drift, states: map[record.Key]*record.State{}, foreign: map[record.Key]*unstructured.Unstructured{}}
	if err := v.readImported(ctx, s); err != nil {
		return nil, err // a user who is not allowed to see it asks for no more
	}
	err := together(
		func() (err error) {
			if s.environments, err = environments(); err != nil {
				return err
			}
			if o.Preview != nil {
				o.Preview(s.preview())
			}
			s.operators, err = v.unlabelledOperators(ctx, s.environments)
			return err
		},
		func() error { return v.readDeployed(ctx, s, namespaces) },
	)
	if err == nil {
		err = v.findGone(ctx, s)
	}
	if err == nil {
		err = v.findWork(ctx, s)
	}
	if err == nil {
		err = v.findForeign(ctx, s)
	}
	return s, err
}

// preview is the part of a status that is known before the records and the deployed objects were read.
func (s *picture) preview() *schema.Status {
	status := &schema.Status{Solutions: []schema.SolutionStatus{}, Environments: []schema.EnvironmentStatus{}}
	for _, name := range s.imported() {
		one := s.solutionStatus(name)
		if one.Active != "" {
			one.Deployment = &schema.DeploymentStatus{Solution: name, Wanted: one.Active}
		}
		status.Solutions = append(status.Solutions, one)
	}
	for _, e := range s.environments {
		one := schema.EnvironmentStatus{Name: e.Name, Description: e.Description}
		for _, n := range e.Namespaces {
			space := schema.NamespaceStatus{Name: n.Name, Terminating: n.Terminating}
			for _, solution := range slices.Sorted(maps.Keys(n.Versions)) {
				space.Deployments = append(space.Deployments, schema.DeploymentStatus{Solution: solution, Wanted: n.Versions[solution]})
			}
			one.Namespaces = append(one.Namespaces, space)
		}
		status.Environments = append(status.Environments, one)
	}
	return status
}

// together calls functions at once, and returns the first error in their order.
func together(reads ...func() error) error {
	errs := make([]error, len(reads))
	_ = cluster.All(len(reads), func(i int) error {
		errs[i] = reads[i]()
		return nil
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// readDeployed reads the records of namespaces, or without any of the whole cluster, and the objects on them. It lists objects before the records:
// an object that is created in between is recorded before it exists.
func (v *Survey) readDeployed(ctx context.Context, s *picture, namespaces []string) error {
	found, err := v.Records.Engine.Labelled(ctx, engine.CommonKinds, namespaces...)
	if err != nil {
		return err
	}
	var states []*record.State
	if len(namespaces) == 0 {
		states, err = v.Records.Engine.States(ctx)
	} else {
		states, err = v.Records.Engine.StatesIn(ctx, namespaces...)
	}
	if err != nil {
		return err
	}
	if s.lost, err = v.Records.Lost(ctx, found, states); err != nil {
		return err
	}
	for _, state := range states {
		s.states[state.Key] = state
	}
	s.findings, err = v.examine(ctx, states, observeAll(found), s.closely)
	return err
}

// findGone looks for the namespaces that are on the records and in no environment.
func (v *Survey) findGone(ctx context.Context, s *picture) error {
	s.gone = map[string]bool{"": false}
	for _, e := range s.environments {
		for _, n := range e.Namespaces {
			s.gone[n.Name] = false
		}
	}
	for _, key := range s.keys() {
		if _, known := s.gone[key.Namespace]; known || s.states[key].Damage != nil {
			continue
		}
		live, err := v.Cluster.Get(ctx, cluster.NamespaceKind, "", key.Namespace)
		if err != nil {
			return err
		}
		s.gone[key.Namespace] = live == nil
	}
	return nil
}

// unlabelledOperators lists the operators in environments that do not have our label.
func (v *Survey) unlabelledOperators(ctx context.Context, environments []metalk8s.Environment) (map[record.Key]*unstructured.Unstructured, error) {
	return v.Records.OperatorsIn(ctx, environments, records.OperatorOf+",!"+schema.LabelRelease)
}

// findForeign looks for operators in environments that are neither on our records nor have our label: MetalK8s may have
// deployed them.
func (v *Survey) findForeign(ctx context.Context, s *picture) error {
	operators := s.operators
	for _, e := range s.environments {
		for _, n := range e.Namespaces {
			for solution := range n.Versions {
				key := record.Key{Namespace: n.Name, Name: solution}
				if _, known := operators[key]; !known {
					operators[key] = nil // found by the name alone, without the labels
				}
			}
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(operators), record.CompareKeys) {
		if state := s.states[key]; state != nil {
			if _, deployed := records.DeployedVersion(state); deployed || state.Damage != nil {
				continue
			}
		}
		operator, err := v.Cluster.Get(ctx, cluster.DeploymentKind, key.Namespace, records.OperatorName(key.Name))
		if err != nil {
			return err
		}
		if operator != nil && operator.GetLabels()[schema.LabelRelease] == "" {
			s.foreign[key] = operator
		}
	}
	return nil
}

// in returns the keys of a namespace, "" for the cluster-wide ones, for which there is a readable record, an unreadable
// record, or an unrecorded object. Call it when everything was read.
func (s *picture) in(namespace string) []record.Key {
	if s.there == nil {
		keys := slices.Concat(slices.Collect(maps.Keys(s.lost)), slices.Collect(maps.Keys(s.foreign)))
		for key, state := range s.states {
			if _, deployed := records.DeployedVersion(state); deployed || state.Damage != nil {
				keys = append(keys, key)
			}
		}
		s.there = map[string][]record.Key{}
		for _, key := range keys {
			s.there[key.Namespace] = append(s.there[key.Namespace], key)
		}
	}
	return s.there[namespace]
}

// findWork reads which processes work on pending operations. For a user without the permission this is unknown.
func (v *Survey) findWork(ctx context.Context, s *picture) error {
	s.work = map[string]cluster.Work{}
	for _, state := range s.states {
		if _, read := s.work[state.Namespace]; read || state.Pending == nil {
			continue
		}
		work, err := v.Cluster.Work(ctx, cluster.LockOf(state.Namespace))
		switch {
		case report.CodeOf(err) == report.Forbidden:
		case err != nil:
			return err
		default:
			s.work[state.Namespace] = work
		}
	}
	return nil
}

// keys returns the keys of the records, sorted.
func (s *picture) keys() []record.Key {
	return slices.SortedFunc(maps.Keys(s.states), record.CompareKeys)
}
