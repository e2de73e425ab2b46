package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Plan is what has to be done to get from what a cluster has to a release. It belongs to what was read: when the record
// of the release has changed since, Apply refuses it.
type Plan struct {
	Release Release
	// Changes are those of all objects, also of those that stay as they are, in the order in which they are made.
	Changes []schema.Change
	// Resumes is the revision that an earlier run began and did not complete, nil otherwise.
	Resumes *schema.DeploymentRevision

	judge *judge
	state *State
	steps []*step // one for each change, in the same order
}

// step is one change, with what is needed to make it.
type step struct {
	schema.Change
	phase   int
	desired *unstructured.Unstructured // nil for what is not wanted any more
	hash    string
	known   schema.DeployedObject      // what the record says; without a name when it says nothing
	live    *unstructured.Unstructured // as it was read; nil when it is not there
	force   bool                       // take fields over from others
	late    bool                       // to be judged again when it is its turn: what it needs is not there yet
}

// Empty tells whether the cluster has what is wanted already, so that Apply would change no object.
func (p *Plan) Empty() bool {
	return !slices.ContainsFunc(p.Changes, func(c schema.Change) bool {
		return c.Action != schema.ActionNone && c.Action != schema.ActionSkip && c.Action != schema.ActionKeep
	})
}

// idle tells whether Apply has nothing to write, not even into the record.
func (p *Plan) idle() bool {
	if !p.Empty() || p.Resumes != nil {
		return false
	}
	if p.state.Current == nil {
		return len(p.steps) == 0
	}
	return p.state.Current.Version == p.Release.Version && maps.Equal(p.state.Current.Settings, p.Release.Settings) &&
		!slices.ContainsFunc(p.steps, (*step).unrecorded)
}

// unrecorded tells whether the record does not know yet what an object is to the release.
func (s *step) unrecorded() bool {
	switch s.Action {
	case schema.ActionNone:
		return s.known.Name == "" || s.known.Kept
	case schema.ActionKeep:
		return !s.known.Kept
	default:
		return false
	}
}

// Plan compares a release with the cluster. Nothing is written; the server is asked to check what would be. The error
// lists everything that stands against the plan: objects of somebody else (Conflict), fields of somebody else
// (Conflict), what the user may not do (Forbidden), what cannot be changed (Refused), what the server finds invalid.
func (e *Engine) Plan(ctx context.Context, r Release, o PlanOptions) (*Plan, error) {
	state, err := e.State(ctx, r.Key)
	if err != nil {
		return nil, err
	}
	plans, err := e.plan(ctx, []Release{r}, []*State{state}, o)
	if err != nil {
		return nil, err
	}
	return plans[0], nil
}

// PlanAll plans several releases and reads the cluster once for all of them. The plans come in the order of the releases.
func (e *Engine) PlanAll(ctx context.Context, releases []Release, o PlanOptions) ([]*Plan, error) {
	all, err := e.States(ctx)
	if err != nil {
		return nil, err
	}
	byKey := map[Key]*State{}
	for _, state := range all {
		byKey[state.Key] = state
	}
	states := make([]*State, len(releases))
	for i, r := range releases {
		if states[i] = byKey[r.Key]; states[i] == nil {
			states[i] = &State{Key: r.Key}
		}
	}
	return e.plan(ctx, releases, states, o)
}

func (e *Engine) plan(ctx context.Context, releases []Release, states []*State, o PlanOptions) ([]*Plan, error) {
	plans := make([]*Plan, len(releases))
	if err := each(len(releases), false, func(i int) (err error) {
		p := &Plan{Release: releases[i], Resumes: states[i].Pending, state: states[i]}
		plans[i] = p
		if p.judge, err = e.newJudge(ctx, p.Release, p.state, o); err == nil {
			p.steps, err = p.judge.steps()
		}
		if err != nil {
			return fmt.Errorf("plan %s: %w", p.Release.Key, err)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	seen, err := e.look(ctx, plans)
	if err != nil {
		return nil, err
	}
	type item struct {
		plan *Plan
		step *step
	}
	var open []item
	for _, p := range plans {
		for _, s := range p.steps {
			if !s.unchanged(seen[seenKey{p.Release.ID(), keyOfRef(s.Object)}]) {
				open = append(open, item{p, s})
			}
		}
	}
	if err := each(len(open), false, func(i int) error {
		if err := open[i].plan.judge.decide(ctx, open[i].step); err != nil {
			return fmt.Errorf("plan %s: %w", open[i].plan.Release.Key, err)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if err := e.mayWriteLate(ctx, plans); err != nil {
		return nil, err
	}
	for _, p := range plans {
		p.arrange()
	}
	return plans, nil
}

// arrange drops what needs nothing and lists the changes.
func (p *Plan) arrange() {
	p.steps = slices.DeleteFunc(p.steps, func(s *step) bool { return s.Action == "" })
	for _, s := range p.steps {
		p.Changes = append(p.Changes, s.Change)
	}
}

// judge decides what is done to the objects of one release. It is used to plan, and again in the middle of carrying a plan
// out where something turns out to be different.
type judge struct {
	*Engine
	release   Release
	options   PlanOptions
	inventory map[objectKey]schema.DeployedObject
	desired   []*step
	defines   map[kube.GroupVersionKind]bool // kinds whose CustomResourceDefinition is part of the release
	makes     map[string]bool                // namespaces that are part of the release
}

func (e *Engine) newJudge(ctx context.Context, r Release, state *State, o PlanOptions) (*judge, error) {
	if len(r.Solution) > 54 || r.Solution == "" {
		return nil, report.Errorf(report.Invalid, "the name %q of the Solution is empty or longer than 54 characters", r.Solution)
	}
	j := &judge{
		Engine: e, release: r, options: o, inventory: state.inventory(),
		defines: map[kube.GroupVersionKind]bool{}, makes: map[string]bool{},
	}
	for _, object := range r.Objects {
		desired, err := prepare(r.Key, object)
		if err != nil {
			return nil, err
		}
		if err = j.place(ctx, desired); err != nil {
			return nil, err
		}
		s := &step{desired: desired, phase: phaseOfObject(desired)}
		if s.hash, err = hashOf(desired); err != nil {
			return nil, err
		}
		s.Object = refOf(desired)
		j.desired = append(j.desired, s)
		switch s.phase {
		case phaseNamespaces:
			j.makes[desired.GetName()] = true
		case phaseDefinitions, phaseConversions:
			for _, kind := range definedKinds(desired) {
				j.defines[kind] = true
			}
		}
	}
	return j, nil
}

// place makes sure that an object has a namespace if and only if its kind has.
func (j *judge) place(ctx context.Context, object *unstructured.Unstructured) error {
	mapping, err := j.Cluster.Mapping(ctx, object.GroupVersionKind())
	switch {
	case errors.Is(err, cluster.ErrNoKind):
		return nil
	case err != nil:
		return err
	case mapping.Scope.Name() == meta.RESTScopeNameRoot:
		object.SetNamespace("")
	case object.GetNamespace() == "":
		return report.Errorf(report.Invalid, "%s has no namespace", refOf(object))
	}
	return nil
}

// steps returns the steps of the release without their actions, in the order in which they are taken: what is wanted by
// phases, then what is not wanted any more by phases backwards.
func (j *judge) steps() ([]*step, error) {
	wanted := map[objectKey]bool{}
	steps := slices.Clone(j.desired)
	for _, s := range steps {
		key := keyOfRef(s.Object)
		if wanted[key] {
			return nil, report.Errorf(report.Invalid, "%s is in it twice", s.Object)
		}
		wanted[key] = true
		s.known = j.inventory[key]
	}
	slices.SortStableFunc(steps, func(a, b *step) int { return cmp.Compare(a.phase, b.phase) })
	var unwanted []*step
	for key, known := range j.inventory {
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

// seenKey identifies what a list has shown: an object with the label of a release.
type seenKey struct {
	release string
	object  objectKey
}

// manyNamespaces is how many namespaces are asked for one by one; beyond that, one list goes over all of them.
const manyNamespaces = 3

// look lists the metadata of what the records say is there. What it does not find is asked for one by one later: an
// object without our label, in a namespace or of a kind that the user may not list, or none at all.
func (e *Engine) look(ctx context.Context, plans []*Plan) (map[seenKey]*unstructured.Unstructured, error) {
	namespaces := map[kube.GroupVersionKind]map[string]bool{}
	for _, p := range plans {
		for _, s := range p.steps {
			if s.known.Name == "" || s.desired == nil {
				continue
			}
			kind := kindOfRef(s.Object)
			if namespaces[kind] == nil {
				namespaces[kind] = map[string]bool{}
			}
			namespaces[kind][s.Object.Namespace] = true
		}
	}
	selector := LabelRelease
	if len(plans) == 1 {
		selector += "=" + plans[0].Release.ID()
	}
	type query struct {
		kind      kube.GroupVersionKind
		namespace string
	}
	var queries []query
	for kind, in := range namespaces {
		if len(in) > manyNamespaces {
			in = map[string]bool{"": true}
		}
		for namespace := range in {
			queries = append(queries, query{kind, namespace})
		}
	}
	var (
		mu   sync.Mutex
		seen = map[seenKey]*unstructured.Unstructured{}
	)
	err := each(len(queries), true, func(i int) error {
		q := queries[i]
		objects, err := e.listMetadata(ctx, q.kind, q.namespace, selector)
		if report.CodeOf(err) == report.Forbidden {
			return nil
		}
		if err != nil {
			return fmt.Errorf("what is deployed: %w", err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, object := range objects {
			key := objectKey{q.kind.GroupKind(), object.GetNamespace(), object.GetName()}
			seen[seenKey{object.GetLabels()[LabelRelease], key}] = object
		}
		return nil
	})
	return seen, err
}

// generations are kinds whose generation grows with every change of anything but metadata and status. That is a matter of
// each kind: PriorityClass, for one, keeps its generation when its description changes.
var generations = map[kube.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}:                               true,
	{Group: "apps", Kind: "StatefulSet"}:                              true,
	{Group: "apps", Kind: "DaemonSet"}:                                true,
	{Group: "batch", Kind: "Job"}:                                     true,
	{Group: "batch", Kind: "CronJob"}:                                 true,
	{Group: "networking.k8s.io", Kind: "Ingress"}:                     true,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:               true,
	{Group: "policy", Kind: "PodDisruptionBudget"}:                    true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true,
}

// unchanged tells from the metadata alone that an object needs nothing, and then says so in the step.
//
// It is sound, because the record holds what the server answered to our last apply: what was wanted (the hash), which
// object it became (the UID) and in which state it was then. An equal resource version means that not one byte was
// written since, so applying the same again would change nothing. Where controllers write the status, the resource version moves
// on; there an equal generation means the same for everything but the metadata, and of the metadata we compare what we
// set. Anything else, a webhook that changed its mind included, costs a dry run and no more.
func (s *step) unchanged(live *unstructured.Unstructured) bool {
	if s.desired == nil || live == nil || live.GetDeletionTimestamp() != nil {
		return false
	}
	known := s.known
	if known.Hash != s.hash || known.UID != string(live.GetUID()) || known.ResourceVersion == "" || known.Leaving || known.Kept ||
		known.APIVersion != s.Object.APIVersion {
		return false
	}
	if known.ResourceVersion != live.GetResourceVersion() {
		if !generations[kindOfRef(s.Object).GroupKind()] || known.Generation == 0 || known.Generation != live.GetGeneration() {
			return false
		}
		if len(s.desired.GetOwnerReferences())+len(s.desired.GetFinalizers()) > 0 ||
			!contains(live.GetLabels(), s.desired.GetLabels()) || !contains(live.GetAnnotations(), s.desired.GetAnnotations()) {
			return false
		}
	}
	s.Action, s.live = schema.ActionNone, live
	return true
}

func contains(all, some map[string]string) bool {
	for key, value := range some {
		if got, ok := all[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// decide looks at the object of a step and says what is to be done with it.
func (j *judge) decide(ctx context.Context, s *step) error {
	s.Action, s.Note, s.Fields, s.live, s.force, s.late = "", "", nil, nil, false, false
	if s.desired == nil {
		return j.decideRemoval(ctx, s)
	}
	kind := s.desired.GroupVersionKind()
	if _, err := j.Cluster.Mapping(ctx, kind); errors.Is(err, cluster.ErrNoKind) {
		if j.defines[kind] {
			s.Action, s.late, s.Note = schema.ActionCreate, true, "its kind is made by the same release"
			return nil
		}
		s.Action, s.Note = schema.ActionSkip, fmt.Sprintf("the cluster has no %s of %s", kind.Kind, kind.GroupVersion())
		return nil
	} else if err != nil {
		return err
	}
	if s.known.Name == "" {
		// Nothing is known of it: most likely it is not there, and the server checks in one request whether it could be made.
		if done, err := j.tryCreate(ctx, s); done || err != nil {
			return err
		}
	}
	for range attempts {
		live, err := j.get(ctx, kind, s.Object.Namespace, s.Object.Name)
		if err != nil {
			return err
		}
		if live == nil {
			if done, err := j.tryCreate(ctx, s); done || err != nil {
				return err
			}
			continue
		}
		s.live = live
		if live.GetDeletionTimestamp() != nil {
			s.Action, s.late, s.Note = schema.ActionCreate, true, terminating(live)
			return nil
		}
		if versions := storedBefore(live, s.desired); len(versions) > 0 {
			s.Action, s.late = schema.ActionUpdate, true
			s.Note = "once no object is stored in version " + strings.Join(versions, ", ") + " any more"
			return nil
		}
		if err := j.decideUpdate(ctx, s); !errors.Is(err, cluster.ErrChanged) {
			return err
		}
	}
	return restless(s)
}

// attempts is how often an object is looked at again that somebody else changes at the same time. Controllers write the
// status of objects that are young, so this is nothing special.
const attempts = 10

func restless(s *step) error {
	return report.Errorf(report.Conflict, "%s is changed by somebody else all the time", s.Object).WithHint("run the command again")
}

// namespaceTerminating is the cause that the server names when it takes nothing new into a namespace.
const namespaceTerminating metav1.CauseType = "NamespaceTerminating"

// tryCreate asks the server whether the object could be made. It is not done when the object exists.
func (j *judge) tryCreate(ctx context.Context, s *step) (done bool, err error) {
	_, err = j.create(ctx, s.desired, cluster.WriteOptions{DryRun: true})
	switch {
	case err == nil:
		s.Action = schema.ActionCreate
		return true, nil
	case errors.Is(err, cluster.ErrExists):
		return false, nil
	case (apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, namespaceTerminating)) && j.makes[s.Object.Namespace]:
		s.Action, s.late = schema.ActionCreate, true
		return true, nil
	case apierrors.IsNotFound(err) && s.Object.Namespace != "":
		return false, report.Errorf(report.NotFound, "%s: namespace %s does not exist", s.Object, s.Object.Namespace)
	default:
		return false, err
	}
}

// decideUpdate compares what is wanted with an object that is there.
func (j *judge) decideUpdate(ctx context.Context, s *step) error {
	mine, err := j.owns(ctx, s)
	if err != nil {
		return err
	}
	s.Action, s.force = schema.ActionUpdate, false
	if !mine {
		s.Action, s.force = schema.ActionAdopt, true
	}
	if changesRole(s.live, s.desired) {
		return j.replace(s, "its role cannot be changed in place")
	}
	result, err := j.try(ctx, s)
	if err != nil {
		return err
	}
	if result == nil {
		return nil // it is to be replaced
	}
	s.Fields = fieldChanges(s.live, result)
	if !mine {
		return j.adopt(s, isIdentical(s.live, result))
	}
	if len(s.Fields) == 0 {
		if ownFields(s.live) == ownFields(result) {
			s.Action = schema.ActionNone
		} else {
			s.Note = "only who owns its fields changes"
		}
	}
	return nil
}

// owns tells whether the object that is there belongs to this release.
func (j *judge) owns(ctx context.Context, s *step) (bool, error) {
	label := s.live.GetLabels()[LabelRelease]
	switch {
	case label == j.release.ID(), s.known.UID != "" && s.known.UID == string(s.live.GetUID()):
		return true, nil
	case label == "":
		return false, nil
	}
	states, err := j.States(ctx)
	if err != nil {
		return false, err
	}
	for _, state := range states {
		if known, ok := state.inventory()[keyOfRef(s.Object)]; ok && !known.Kept && state.ID() == label {
			return false, report.Errorf(report.Conflict, "%s belongs to %s", s.Object, state.Key).
				WithHint("two Solutions cannot have the same object; remove %s first, or give the object another name", state.Key)
		}
	}
	return false, nil
}

// adopt accepts an object that is there and belongs to no release if that was asked for, or if it is as it is wanted.
func (j *judge) adopt(s *step, identical bool) error {
	s.Note = "it exists: " + describe(s.live)
	if identical || j.options.Adopt {
		return nil
	}
	return report.Errorf(report.Conflict, "%s exists and is not part of %s: %s", s.Object, j.release.Key, describe(s.live)).
		WithHint("take such objects over with --adopt, or remove them first")
}

// isIdentical tells whether an object would get nothing but the label of the release.
func isIdentical(live, result *unstructured.Unstructured) bool {
	result = result.DeepCopy()
	labels := result.GetLabels()
	delete(labels, LabelRelease)
	if result.SetLabels(labels); len(labels) == 0 {
		unstructured.RemoveNestedField(result.Object, "metadata", "labels")
	}
	return len(fieldChanges(live, result)) == 0
}

// try asks the server what would become of the object. The result is nil when the object has to be replaced.
func (j *judge) try(ctx context.Context, s *step) (*unstructured.Unstructured, error) {
	object := update(s)
	result, err := j.apply(ctx, object, cluster.WriteOptions{DryRun: true, Force: s.force})
	if !s.force && conflicts(err) && (j.options.Force || onlyWithOurselves(err)) {
		s.force = true
		result, err = j.apply(ctx, object, cluster.WriteOptions{DryRun: true, Force: true})
	}
	switch {
	case err == nil:
		return result, nil
	case immutable(err):
		return nil, j.replace(s, "what changes in it cannot be changed in place")
	default:
		return nil, err
	}
}

// update is the object as it is sent to change the one that was read, in the state in which it was read.
func update(s *step) *unstructured.Unstructured {
	object := s.desired.DeepCopy()
	object.SetUID(s.live.GetUID())
	object.SetResourceVersion(s.live.GetResourceVersion())
	if managedByOthers(s.live, "spec", "replicas") {
		// Somebody scales it: an autoscaler, or an administrator in need.
		unstructured.RemoveNestedField(object.Object, "spec", "replicas")
	}
	return object
}

// conflicts tells whether the server refused because of fields that others own.
func conflicts(err error) bool {
	return err != nil && report.CodeOf(err) == report.Conflict && !errors.Is(err, cluster.ErrChanged)
}

// onlyWithOurselves tells whether the fields in conflict were set by this program in another way than by applying.
func onlyWithOurselves(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.ErrStatus.Details == nil {
		return false
	}
	return !slices.ContainsFunc(status.ErrStatus.Details.Causes, func(c metav1.StatusCause) bool {
		return !strings.HasPrefix(c.Message, `conflict with "`+cluster.FieldManager+`"`)
	})
}

// immutable tells whether the server refused because a field cannot change. It has no reason of its own for that.
func immutable(err error) bool {
	if !apierrors.IsInvalid(err) {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "immutable") || strings.Contains(text, "may not change") || strings.Contains(text, "are forbidden") ||
		strings.Contains(text, "cannot change")
}

// changesRole tells whether a binding is to refer to another role, which the server never allows.
func changesRole(live, desired *unstructured.Unstructured) bool {
	if phaseOf(live.GroupVersionKind().GroupKind()) != phaseBindings {
		return false
	}
	was, _, _ := unstructured.NestedStringMap(live.Object, "roleRef")
	is, _, _ := unstructured.NestedStringMap(desired.Object, "roleRef")
	return !maps.Equal(was, is)
}

// replace decides whether an object that cannot be changed in place may be deleted and made anew.
func (j *judge) replace(s *step, why string) error {
	if s.Action == schema.ActionAdopt && !j.options.Adopt {
		return j.adopt(s, false)
	}
	kind := s.desired.GroupVersionKind().GroupKind()
	isJob := kind == kube.GroupKind{Group: "batch", Kind: "Job"}
	switch {
	case phaseOf(kind) == phaseBindings, isJob && finished(s.live):
		s.Action, s.Note = schema.ActionReplace, why
		return nil
	case isJob:
		return report.Errorf(report.Refused, "%s: %s, and it is still running", s.Object, why).
			WithHint("wait until it has finished, or delete it")
	default:
		return report.Errorf(report.Refused, "%s: %s, and deleting it would stop what depends on it", s.Object, why).
			WithHint("delete it yourself when that is acceptable, and run the same command again")
	}
}

func finished(job *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return (condition["type"] == "Complete" || condition["type"] == "Failed") && condition["status"] == "True"
	})
}

// decideRemoval says what is to be done with an object that is not wanted any more. Nothing is to be done, and the step
// has no action, when it is gone.
func (j *judge) decideRemoval(ctx context.Context, s *step) error {
	live, err := j.find(ctx, s)
	if err != nil || live == nil {
		return err
	}
	s.live = live
	ours := live.GetLabels()[LabelRelease] == j.release.ID()
	switch {
	case !ours && s.known.UID != string(live.GetUID()):
		return nil // another object has the name now
	case protected[kindOfRef(s.Object).GroupKind()] && !slices.Contains(j.release.Delete, s.Object):
		s.Action, s.Note = schema.ActionKeep, "a "+s.Object.Kind+" is never deleted as a side effect"
		return nil
	case live.GetDeletionTimestamp() != nil:
		s.Action, s.Note = schema.ActionDelete, terminating(live)
		return nil
	}
	s.Action = schema.ActionDelete
	err = j.delete(ctx, live, cluster.DeleteOptions{DryRun: true, Propagation: metav1.DeletePropagationBackground})
	if errors.Is(err, cluster.ErrChanged) {
		return nil
	}
	return err
}

// find returns the object of a step, which may have been recorded in a version of its API that is no longer served.
func (j *judge) find(ctx context.Context, s *step) (*unstructured.Unstructured, error) {
	kind := kindOfRef(s.Object)
	if _, missing := j.Cluster.Mapping(ctx, kind); errors.Is(missing, cluster.ErrNoKind) {
		kinds, err := j.Cluster.Kinds(ctx)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(kinds, func(m *meta.RESTMapping) bool { return m.GroupVersionKind.GroupKind() == kind.GroupKind() })
		if i < 0 {
			return nil, nil // its kind is gone, and so is the object
		}
		kind = kinds[i].GroupVersionKind
	} else if missing != nil {
		return nil, missing
	}
	return j.get(ctx, kind, s.Object.Namespace, s.Object.Name)
}

// mayWriteLate asks whether the user may make what the server could not check yet, because its namespace or its kind does
// not exist.
func (e *Engine) mayWriteLate(ctx context.Context, plans []*Plan) error {
	wanted := map[cluster.Permission]bool{}
	for _, p := range plans {
		for _, s := range p.steps {
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
			for _, verb := range []string{"create", "patch"} {
				wanted[cluster.Permission{
					Verb: verb, Group: mapping.Resource.Group, Resource: mapping.Resource.Resource, Namespace: s.Object.Namespace,
				}] = true
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
	return report.Errorf(report.Forbidden, "the user may not do all that is needed").
		WithHint("what is missing:\n%s", cluster.Rules(missing...))
}

// terminating says what keeps an object that is being deleted.
func terminating(object *unstructured.Unstructured) string {
	finalizers := slices.Clone(object.GetFinalizers())
	inner, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "finalizers") // of a Namespace
	finalizers = append(finalizers, inner...)
	if len(finalizers) == 0 {
		return "it is being deleted"
	}
	return "it is being deleted; finalizers: " + strings.Join(finalizers, ", ")
}
