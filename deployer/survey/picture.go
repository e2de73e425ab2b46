package survey

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// fewReads is the number of objects up to which each is read separately; more are listed.
const fewReads = 16

// findGone looks for the namespaces that are on the records and in no environment.
func (v *Survey) findGone(ctx context.Context, s *picture) error {
	s.gone = map[string]bool{"": false}
	for _, e := range s.environments {
		for _, n := range e.Namespaces {
			s.gone[n.Name] = false
		}
	}
	var others []string
	for _, key := range s.keys() {
		if _, known := s.gone[key.Namespace]; !known && s.states[key].Damage == nil {
			s.gone[key.Namespace] = true
			others = append(others, key.Namespace)
		}
	}
	if len(others) > fewReads {
		for namespace, err := range v.Cluster.ListMetadata(ctx, cluster.NamespaceKind, "", metav1.ListOptions{}) {
			if err != nil {
				return err
			}
			if s.gone[namespace.GetName()] {
				s.gone[namespace.GetName()] = false
			}
		}
		return nil
	}
	for _, name := range others {
		live, err := v.Cluster.Get(ctx, cluster.NamespaceKind, "", name)
		if err != nil {
			return err
		}
		s.gone[name] = live == nil
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
	maps.DeleteFunc(operators, func(key record.Key, _ *unstructured.Unstructured) bool {
		state := s.states[key]
		if state == nil {
			return false
		}
		_, deployed := records.DeployedVersion(state)
		return deployed || state.Damage != nil
	})
	found, err := v.operatorsOf(ctx, slices.SortedFunc(maps.Keys(operators), record.CompareKeys))
	for key, operator := range found {
		if operator.GetLabels()[schema.LabelRelease] == "" {
			s.foreign[key] = operator
		}
	}
	return err
}

// operatorsOf reads the Deployments with the names of operators. Of many it can leave out those with our label.
func (v *Survey) operatorsOf(ctx context.Context, keys []record.Key) (map[record.Key]*unstructured.Unstructured, error) {
	if len(keys) > fewReads {
		found, err := v.listOperators(ctx, keys)
		if report.CodeOf(err) != report.Forbidden {
			return found, err
		}
	}
	found := map[record.Key]*unstructured.Unstructured{}
	for _, key := range keys {
		operator, err := v.Cluster.Get(ctx, cluster.DeploymentKind, key.Namespace, records.OperatorName(key.Name))
		if err != nil {
			return found, err
		}
		if operator != nil {
			found[key] = operator
		}
	}
	return found, nil
}

func (v *Survey) listOperators(ctx context.Context, keys []record.Key) (map[record.Key]*unstructured.Unstructured, error) {
	wanted, found := map[[2]string]record.Key{}, map[record.Key]*unstructured.Unstructured{}
	for _, key := range keys {
		wanted[[2]string{key.Namespace, records.OperatorName(key.Name)}] = key
	}
	for object, err := range v.Cluster.ListPartial(ctx, cluster.DeploymentKind, "", metav1.ListOptions{LabelSelector: "!" + schema.LabelRelease}) {
		if err != nil {
			return nil, err
		}
		if key, ok := wanted[[2]string{object.GetNamespace(), object.GetName()}]; ok {
			found[key] = object
		}
	}
	return found, nil
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
	pending := map[string]bool{}
	for _, state := range s.states {
		if state.Pending != nil {
			pending[state.Namespace] = true
		}
	}
	if len(pending) > fewReads {
		leases, err := cluster.Collect(v.Cluster.List(ctx, cluster.LeaseKind, cluster.SystemNamespace, metav1.ListOptions{}))
		if report.CodeOf(err) == report.Forbidden {
			return nil
		}
		if err != nil {
			return err
		}
		ctx = cluster.WithMemory(ctx)
		cluster.Remember(ctx, cluster.LeaseKind, "", leases)
	}
	for namespace := range pending {
		work, err := v.Cluster.Work(ctx, cluster.LockOf(namespace))
		switch {
		case report.CodeOf(err) == report.Forbidden:
		case err != nil:
			return err
		default:
			s.work[namespace] = work
		}
	}
	return nil
}

// keys returns the keys of the records, sorted.
func (s *picture) keys() []record.Key {
	return slices.SortedFunc(maps.Keys(s.states), record.CompareKeys)
}
