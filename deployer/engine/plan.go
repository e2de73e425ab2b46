package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Plan has the changes that make the cluster match a release. Apply refuses it if the record of the release has changed since.
type Plan struct {
	Release Release
	// Changes has one change for each object, in the order of Apply, including objects that stay as they are.
	Changes []schema.Change
	// Resumes is the pending revision of an earlier run; nil if there is none.
	Resumes *schema.DeploymentRevision
	// Begun is set when [Engine.ApplyAll] has recorded the plan, before its first change.
	Begun bool

	decider *decider
	state   *record.State
	steps   []*step     // of objects that are not tasks, in the order of Changes
	tasks   []*taskStep // the tasks, in the order in which they are run
}

// step is one change, with the data to make it.
type step struct {
	schema.Change
	phase   int
	desired *unstructured.Unstructured // nil if the release does not have it any more
	hash    string
	known   schema.DeployedObject // of the record; without a name if the record does not have it
	stays   bool                  // it is left in the cluster when the release does not have it any more
	busy    bool                  // other processes change it all the time
	done    atomic.Bool           // a Job that was observed to succeed

	conditions []*health.Condition // that its object has to meet before it is ready
	taskStep   *taskStep           // its task; nil for other objects
	decision
}

// decision is the internal part of the decision on a step; the public part is its [schema.Change].
type decision struct {
	live        *unstructured.Unstructured // as it was read; nil if it does not exist
	adopted     *unstructured.Unstructured // live as if the engine owned the fields of the tool from which it is adopted; nil otherwise
	force       bool                       // take fields from other managers
	late        bool                       // to be planned again at its turn: something that it needs does not exist yet
	cleared     [][]string                 // fields without an owner, which have to be removed explicitly
	replacing   bool                       // the user has asked to replace it
	propagation metav1.DeletionPropagation // of the deletion when it is replaced
	claims      []claim                    // to enlarge before it is replaced
	ended       bool                       // a Job that ended before, and is not run again
}

// Object is an object of a plan with its change.
type Object struct {
	schema.Change
	Existing *unstructured.Unstructured // nil if it does not exist, or was not read because it stays as it is
	Desired  *unstructured.Unstructured // nil if the release does not have it any more
}

// Objects returns the objects of the plan and those of its tasks. They must not be changed.
func (p *Plan) Objects() []Object {
	list := make([]Object, 0, len(p.steps)+len(p.tasks))
	for _, s := range slices.Concat(p.steps, stepsOf(p.tasks)) {
		list = append(list, Object{Change: s.Change, Existing: s.live, Desired: s.desired})
	}
	return list
}

// Unchanged returns the objects and tasks of the plan that the last completed revision has created with the same content.
func (p *Plan) Unchanged() (list []*unstructured.Unstructured) {
	for _, s := range p.steps {
		if known := p.decider.before[record.KeyOf(s.Object)]; s.desired != nil && known.UID != "" && known.Hash == s.hash {
			list = append(list, s.desired)
		}
	}
	if p.decider == nil || p.state.Current == nil {
		return list
	}
	for _, t := range p.decider.tasks {
		if slices.ContainsFunc(p.state.Current.Tasks, func(d schema.DeployedTask) bool { return d.ObjectRef == t.Object && d.Hash == t.hash }) {
			list = append(list, t.desired)
		}
	}
	return list
}

// Deployed returns the version of the release that was completed last; "" for none.
func (p *Plan) Deployed() string {
	if p.state == nil || p.state.Current == nil {
		return ""
	}
	return p.state.Current.Version
}

// Empty reports whether Apply would change no object and run no task.
func (p *Plan) Empty() bool {
	return !slices.ContainsFunc(p.steps, (*step).changes) && !slices.ContainsFunc(p.tasks, (*taskStep).changes)
}

// changes reports whether a step changes an object.
func (s *step) changes() bool {
	return s.Action != schema.ActionNone && s.Action != schema.ActionSkip && s.Action != schema.ActionKeep
}

// Idle reports whether Apply has nothing to write, not even to the record. A release without objects may still have a record, for its components.
func (p *Plan) Idle() bool {
	restores := p.decider != nil && p.decider.options.Restore && slices.ContainsFunc(p.tasks, (*taskStep).changes)
	if slices.ContainsFunc(p.steps, (*step).changes) || restores || p.Resumes != nil {
		return false
	}
	if p.state.Current == nil {
		return len(p.steps)+len(p.tasks)+len(p.Release.Components) == 0
	}
	return p.state.Current.Version == p.Release.Version && maps.Equal(p.state.Current.Settings, p.Release.Settings) &&
		slices.Equal(p.state.Current.Components, p.Release.Components) && p.decider.sameTasks(p.state.Current) && !slices.ContainsFunc(p.steps, (*step).unrecorded)
}

// unrecorded reports whether the record has to be changed although the object is not.
func (s *step) unrecorded() bool {
	switch s.Action {
	case schema.ActionNone:
		return s.known.Name == "" || s.known.Kept || s.known.Stays != s.stays
	case schema.ActionKeep:
		return s.desired == nil && !s.known.Kept
	default:
		return false
	}
}

// Plan compares a release with the cluster by dry runs and writes nothing. The error lists all problems: objects or fields of
// other owners (Conflict), missing permissions (Forbidden), changes that are impossible (Refused), and objects that the server
// rejects (Invalid).
func (e *Engine) Plan(ctx context.Context, r Release, o PlanOptions) (*Plan, error) {
	state, err := e.State(ctx, r.Key)
	if err != nil {
		return nil, err
	}
	plans, err := e.plan(ctx, []Release{r}, []*record.State{state}, o)
	if err != nil {
		return nil, err
	}
	return plans[0], nil
}

// PlanAll plans several releases with common reads. The plans come in the order of the releases.
func (e *Engine) PlanAll(ctx context.Context, releases []Release, o PlanOptions) ([]*Plan, error) {
	keys := make([]record.Key, len(releases))
	for i, r := range releases {
		keys[i] = r.Key
	}
	states, err := e.StatesOf(ctx, keys)
	if err != nil {
		return nil, err
	}
	return e.plan(ctx, releases, states, o)
}

func (e *Engine) plan(ctx context.Context, releases []Release, states []*record.State, o PlanOptions) ([]*Plan, error) {
	plans := make([]*Plan, len(releases))
	if err := cluster.All(len(releases), func(i int) (err error) {
		p := &Plan{Release: releases[i], Resumes: states[i].Pending, state: states[i]}
		plans[i] = p
		if p.Release.isRemoval() && len(p.Release.Tasks) == 0 {
			p.Release.Tasks, err = e.tasksOfRemoval(ctx, p.state)
		}
		if err == nil {
			p.decider, err = e.newDecider(ctx, p.Release, p.state, o)
		}
		if err == nil {
			p.tasks = filterTasks(p.decider.tasks, func(t *taskStep) bool { return t.chosen })
			p.steps, err = p.decider.steps()
		}
		if err != nil {
			return fmt.Errorf("plan %s: %w", p.Release.Key, err)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	shareKinds(plans)
	seen, err := e.readDeployed(ctx, plans)
	if err != nil {
		return nil, err
	}
	type item struct {
		plan *Plan
		step *step
	}
	var open []item
	for _, p := range plans {
		for _, t := range p.tasks {
			open = append(open, item{p, t.step})
		}
		for _, s := range p.steps {
			if p.decider.isNamed(s) || p.decider.mayAdopt(s) || !s.unchanged(seen[seenKey{p.Release.ID(), record.KeyOf(s.Object)}]) {
				open = append(open, item{p, s})
			}
		}
	}
	if err := cluster.All(len(open), func(i int) error {
		if err := open[i].plan.decider.decide(ctx, open[i].step); err != nil {
			return fmt.Errorf("plan %s: %w", open[i].plan.Release.Key, err)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if !o.ReadOnly {
		if err := e.mayWriteLate(ctx, plans); err != nil {
			return nil, err
		}
	}
	for _, p := range plans {
		p.listChanges()
	}
	return plans, nil
}

// errOpen is the error of a plan with [PlanOptions.Unchanged] that would have to ask about a single object.
var errOpen = errors.New("an object may have changed")

// shareKinds passes on to each plan which kinds the others define, and which objects the releases that it needs create.
func shareKinds(plans []*Plan) {
	brings := map[kube.GroupVersionKind]bool{}
	for _, p := range plans {
		maps.Copy(brings, p.decider.defines)
	}
	for _, p := range plans {
		p.decider.brings = brings
		for _, other := range plans {
			if slices.ContainsFunc(p.Release.Needs, func(n Need) bool { return n.Key == other.Release.Key }) {
				maps.Copy(p.decider.makes, other.decider.makes)
			}
		}
	}
}

// listChanges drops steps without an action and lists the changes.
func (p *Plan) listChanges() {
	p.steps = slices.DeleteFunc(p.steps, func(s *step) bool { return s.Action == "" })
	if p.Idle() {
		p.tasks = nil
	} else {
		p.Changes = p.decider.omitted()
	}
	wanted := slices.IndexFunc(p.steps, func(s *step) bool { return s.desired == nil })
	if wanted < 0 {
		wanted = len(p.steps)
	}
	for _, s := range slices.Concat(
		stepsOf(p.tasksAt(schema.MomentBefore)), p.steps[:wanted],
		stepsOf(p.tasksAt(schema.MomentApplied)), p.steps[wanted:], stepsOf(p.tasksAt(schema.MomentReady)),
	) {
		p.Changes = append(p.Changes, s.Change)
	}
}

// decider decides on the objects of one release: for a plan, and again during Apply if an object has changed since.
type decider struct {
	*Engine
	release   Release
	options   PlanOptions
	inventory map[record.ObjectKey]schema.DeployedObject
	before    map[record.ObjectKey]schema.DeployedObject // the inventory of the last completed revision
	past      map[record.ObjectKey][]string              // hashes of the Jobs that have ended in any recorded revision
	waiting   []schema.ObjectRef                         // objects that the last completed revision left out
	desired   []*step
	tasks     []*taskStep
	defines   map[kube.GroupVersionKind]bool // kinds that the release defines
	brings    map[kube.GroupVersionKind]bool // kinds that any release of the run defines
	makes     map[record.ObjectKey]bool      // objects of the release and of those that it needs
}

func (e *Engine) newDecider(ctx context.Context, r Release, state *record.State, o PlanOptions) (*decider, error) {
	if r.Name == "" || len(r.Label()) > 54 {
		return nil, report.Errorf(report.Invalid, "the name %q is empty or longer than 54 characters", r.Label())
	}
	d := &decider{
		Engine: e, release: r, options: o, inventory: state.Inventory(), before: state.Deployed(), past: state.Ended(),
		defines: map[kube.GroupVersionKind]bool{}, makes: map[record.ObjectKey]bool{},
	}
	if state.Current != nil {
		d.waiting = state.Current.Waiting
	}
	for _, object := range r.Found {
		if key := record.KeyOf(object.ObjectRef); d.inventory[key].Name == "" {
			d.inventory[key] = object
		}
	}
	if err := d.placeRecorded(ctx); err != nil {
		return nil, err
	}
	for _, object := range r.Objects {
		s, err := d.newStep(ctx, object)
		if err != nil {
			return nil, err
		}
		s.stays = slices.Contains(r.Stay, s.Object)
		d.desired = append(d.desired, s)
		if s.phase == phaseDefinitions || s.phase == phaseConversions {
			for _, kind := range definedKinds(s.desired) {
				d.defines[kind] = true
			}
		}
	}
	if err := d.addTasks(ctx, state); err != nil {
		return nil, err
	}
	for _, s := range slices.Concat(d.desired, stepsOf(d.tasks)) {
		d.makes[record.KeyOf(s.Object)] = true
	}
	if !r.isRemoval() { // a removal waits for nothing to become ready
		if err := addConditions(slices.Concat(d.desired, stepsOf(filterTasks(d.tasks, (*taskStep).runs))), r.Ready); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// newStep returns a step that applies an object.
func (d *decider) newStep(ctx context.Context, object *unstructured.Unstructured) (*step, error) {
	desired, err := prepare(d.release.Key, object)
	if err != nil {
		return nil, err
	}
	s := &step{desired: desired, phase: phaseOfObject(desired)}
	return s, d.placeStep(ctx, s)
}

// placeStep places the object of a step, and names it in the step.
func (d *decider) placeStep(ctx context.Context, s *step) (err error) {
	if err = d.place(ctx, s.desired); err != nil || s.hash != "" && s.Object.Namespace == s.desired.GetNamespace() {
		return err
	}
	s.Object = refOf(s.desired)
	s.hash, err = hashOf(s.desired)
	return err
}

// place removes the namespace of a cluster-wide object, and requires one for others. The place of an object of an unknown kind stays open.
func (d *decider) place(ctx context.Context, object *unstructured.Unstructured) error {
	mapping, err := d.Cluster.Mapping(ctx, object.GroupVersionKind())
	switch {
	case errors.Is(err, cluster.ErrNoKind):
		return nil
	case err != nil:
		return err
	case isRoot(mapping) && d.release.Confined && object.GetNamespace() != "" && d.options.Restore:
		return nil // it was never created, and is not restored
	case isRoot(mapping) && d.release.Confined && object.GetNamespace() != "":
		return report.Errorf(report.Refused, "%s: the kind is cluster-wide, and an environment cannot have an object of it", refOf(object)).
			WithHint("deploy a version of the Solution without it; only a component with scope: cluster can have it")
	case isRoot(mapping):
		object.SetNamespace("")
	case object.GetNamespace() == "":
		return report.Errorf(report.Invalid, "%s has no namespace", refOf(object))
	}
	return nil
}

// placeRecorded removes the namespaces of recorded objects whose kind is cluster-wide, which was unknown when they were recorded.
func (d *decider) placeRecorded(ctx context.Context) error {
	for key, known := range d.inventory {
		if known.Namespace == "" {
			continue
		}
		mapping, err := d.Cluster.Mapping(ctx, kindOfRef(known.ObjectRef))
		if errors.Is(err, cluster.ErrNoKind) || err == nil && !isRoot(mapping) {
			continue
		} else if err != nil {
			return err
		}
		delete(d.inventory, key)
		known.Namespace = ""
		if key = record.KeyOf(known.ObjectRef); d.inventory[key].UID == "" {
			d.inventory[key] = known
		}
	}
	return nil
}

func isRoot(m *meta.RESTMapping) bool { return m.Scope.Name() == meta.RESTScopeNameRoot }

// steps returns the steps of the release without actions: desired objects in the order of the phases, then objects to delete in the
// opposite order.
func (d *decider) steps() ([]*step, error) {
	wanted := map[record.ObjectKey]bool{}
	steps := slices.Clone(d.desired)
	for _, s := range steps {
		key := record.KeyOf(s.Object)
		if wanted[key] {
			return nil, report.Errorf(report.Invalid, "%s is in it twice", s.Object)
		}
		wanted[key] = true
		s.known = d.inventory[key]
	}
	for _, t := range d.tasks {
		if wanted[record.KeyOf(t.Object)] {
			return nil, report.Errorf(report.Invalid, "%s is in it twice, once as a task", t.Object)
		}
	}
	for _, t := range d.tasks {
		key := record.KeyOf(t.Object)
		wanted[key] = wanted[key] || d.keepsObject(t)
	}
	slices.SortStableFunc(steps, func(a, b *step) int { return cmp.Compare(a.phase, b.phase) })
	var unwanted []*step
	for key, known := range d.inventory {
		if !wanted[key] {
			s := &step{known: known, phase: known.Phase}
			s.Object = known.ObjectRef
			unwanted = append(unwanted, s)
		}
	}
	slices.SortFunc(unwanted, func(a, b *step) int {
		return cmp.Or(-cmp.Compare(a.phase, b.phase), cmp.Compare(a.Object.String(), b.Object.String()), cmp.Compare(a.Object.APIVersion, b.Object.APIVersion))
	})
	return append(steps, unwanted...), nil
}

// mayWriteLate checks the permissions for objects that no dry run could check, because their namespace does not exist yet.
func (e *Engine) mayWriteLate(ctx context.Context, plans []*Plan) error {
	wanted := map[cluster.Permission]bool{}
	for _, p := range plans {
		for _, s := range slices.Concat(p.steps, stepsOf(p.tasks)) {
			if !s.late {
				continue
			}
			mapping, err := e.Cluster.Mapping(ctx, kindOfRef(s.Object))
			if errors.Is(err, cluster.ErrNoKind) {
				continue
			}
			if err != nil {
				return err
			}
			on := cluster.Permission{Group: mapping.Resource.Group, Resource: mapping.Resource.Resource, Namespace: s.Object.Namespace}
			for _, p := range cluster.Only(s.Object.Name, on.Each("create", "patch")) {
				wanted[p] = true
			}
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	missing, err := e.Cluster.Missing(ctx, slices.Collect(maps.Keys(wanted))...)
	if err != nil || len(missing) == 0 {
		return err
	}
	return report.Errorf(report.Forbidden, "you do not have all permissions that the operation needs").
		WithHint("ask an administrator for these rules:\n%s", cluster.Rules(missing...))
}

// terminating describes an object that is being deleted, with its finalizers.
func terminating(object *unstructured.Unstructured) string {
	finalizers := slices.Clone(object.GetFinalizers())
	inner, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "finalizers") // of a Namespace
	finalizers = append(finalizers, inner...)
	switch {
	case len(finalizers) == 0:
		return "it is being deleted"
	case len(finalizers) == 1 && finalizers[0] == metav1.FinalizerDeleteDependents && runsPods[object.GroupVersionKind().GroupKind()]:
		return "it is being deleted, and its pods have not ended yet"
	}
	return "it is being deleted; finalizers: " + strings.Join(finalizers, ", ")
}
