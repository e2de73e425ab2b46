package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/diff"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// decide reads the object of a step and chooses the action.
func (d *decider) decide(ctx context.Context, s *step) error {
	s.Action, s.Note, s.Fields, s.decision = "", "", nil, decision{}
	switch {
	case d.options.Unchanged && (s.taskStep != nil || s.desired == nil):
		return errOpen
	case s.taskStep != nil:
		return d.decideTask(ctx, s)
	case s.desired == nil:
		return d.decideRemoval(ctx, s)
	case d.options.Restore:
		return d.decideRestore(ctx, s)
	default:
		return d.decideWanted(ctx, s)
	}
}

func (d *decider) decideWanted(ctx context.Context, s *step) error {
	kind := s.desired.GroupVersionKind()
	if _, err := d.Cluster.Mapping(ctx, kind); errors.Is(err, cluster.ErrNoKind) {
		d.decideKindless(s, kind)
		return nil
	} else if err != nil {
		return err
	}
	if err := d.placeStep(ctx, s); err != nil { // its kind may be new
		return err
	}
	if done, err := d.decideEnded(ctx, s); done || err != nil {
		return err
	}
	if d.options.Unchanged {
		return errOpen
	}
	defer d.noteRerun(s)
	if s.known.Name == "" {
		// It is on no record, so it probably does not exist: one request checks whether it could be created.
		if done, err := d.tryCreate(ctx, s); done || err != nil {
			return err
		}
	}
	for attempt := range attempts {
		s.busy = s.busy || attempt >= attempts/2
		live, err := d.Cluster.Get(ctx, kind, s.Object.Namespace, s.Object.Name)
		if err != nil {
			return err
		}
		if live == nil {
			if done, err := d.tryCreate(ctx, s); done || err != nil {
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
			s.Note = "waits until no object is stored in version " + strings.Join(versions, ", ")
			return nil
		}
		if err := d.decideUpdate(ctx, s); !errors.Is(err, cluster.ErrChanged) {
			return err
		}
	}
	return contended(s)
}

// decideKindless decides on an object whose kind the cluster does not serve.
func (d *decider) decideKindless(s *step, kind kube.GroupVersionKind) {
	switch {
	case d.defines[kind]:
		s.Action, s.late, s.Note = schema.ActionCreate, true, "the same release defines its kind"
	case d.brings[kind]:
		s.Action, s.late, s.Note = schema.ActionCreate, true, "the same operation defines its kind"
	case d.release.Complete && !slices.Contains(d.release.OptionalKinds, kind.Group+"/"+kind.Kind):
		s.Action, s.late, s.Note = schema.ActionCreate, true, noKind(kind)+" yet"
	default:
		s.Action, s.Note = schema.ActionSkip, noKind(kind)
	}
}

func noKind(kind kube.GroupVersionKind) string {
	return fmt.Sprintf("the cluster has no %s of %s", kind.Kind, kind.GroupVersion())
}

// attempts limits how often an object is read again because it changes at the same time. Controllers write the status of new
// objects, so some repetitions are normal.
const attempts = 10

func contended(s *step) error {
	return report.Errorf(report.Conflict, "%s is changed by another process all the time", s.Object).WithHint("run the command again")
}

// namespaceTerminating is the cause with which the server refuses new objects in a namespace that is being deleted.
const namespaceTerminating metav1.CauseType = "NamespaceTerminating"

// tryCreate asks the server whether the object could be created. done is false if the object exists.
func (d *decider) tryCreate(ctx context.Context, s *step) (done bool, err error) {
	switch err = d.checkCreate(ctx, s.desired); {
	case err == nil:
		s.Action = schema.ActionCreate
		return true, nil
	case errors.Is(err, cluster.ErrExists):
		return false, nil
	case d.isCreatedFirst(s.desired, err):
		s.Action, s.late = schema.ActionCreate, true
		return true, nil
	case apierrors.IsNotFound(err) && s.Object.Namespace != "":
		return false, report.Errorf(report.NotFound, "%s: namespace %s does not exist", s.Object, s.Object.Namespace)
	default:
		return false, err
	}
}

// isCreatedFirst reports whether the server refused an object because something does not exist that the run creates before: the namespace,
// the role of a binding, or the ServiceAccount or the PriorityClass of a Pod.
func (d *decider) isCreatedFirst(object *unstructured.Unstructured, err error) bool {
	creates := func(kind kube.GroupKind, namespace, name string) bool {
		return d.makes[record.ObjectKey{GroupKind: kind, Namespace: namespace, Name: name}]
	}
	namespace := object.GetNamespace()
	switch {
	case err == nil:
		return false
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, namespaceTerminating):
		return creates(cluster.NamespaceKind.GroupKind(), "", namespace) || apierrors.IsNotFound(err) && bindsMissingRole(err)
	case !apierrors.IsForbidden(err) || object.GroupVersionKind().GroupKind() != podKind:
		return false
	}
	account, _, _ := unstructured.NestedString(object.Object, "spec", "serviceAccountName")
	class, _, _ := unstructured.NestedString(object.Object, "spec", "priorityClassName")
	return creates(cluster.ServiceAccountKind.GroupKind(), namespace, account) && strings.Contains(err.Error(), "error looking up service account ") ||
		creates(priorityClassKind, "", class) && strings.Contains(err.Error(), "no PriorityClass with name ")
}

// checkCreate asks the server, by a dry run, whether an object could be created. A run creates it by an apply, whose check costs the server more
// than that of a plain object as a whole. What the server refuses as a whole is checked again as it would be applied.
func (d *decider) checkCreate(ctx context.Context, object *unstructured.Unstructured) error {
	if isPlain(object) {
		_, err := d.Cluster.Create(ctx, object, cluster.WriteOptions{DryRun: true, Unread: true, Whole: true})
		if code := report.CodeOf(err); err == nil || errors.Is(err, cluster.ErrExists) || code == report.NotFound || code == report.Unavailable || ctx.Err() != nil {
			return err
		}
	}
	_, err := d.Cluster.Create(ctx, object, cluster.WriteOptions{DryRun: true, Unread: true})
	return err
}

// isPlain reports whether the server refuses an object as a whole if it would refuse to apply it. Only an apply refuses equal keys in a list, and
// entries of a ServiceAccount without a key; and null may differ.
func isPlain(object *unstructured.Unstructured) bool {
	return object.Object["secrets"] == nil && isSingle(object.Object)
}

// isSingle reports whether a value has no null, and no list of more than one value.
func isSingle(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case []any:
		return len(v) == 0 || len(v) == 1 && isSingle(v[0])
	case map[string]any:
		for _, field := range v {
			if !isSingle(field) {
				return false
			}
		}
	}
	return true
}

// bindsMissingRole reports whether the server refused because the role of a binding does not exist, which it reads to check that the
// user is allowed to grant it. The same release creates the role.
func bindsMissingRole(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.ErrStatus.Details != nil && status.ErrStatus.Details.Group == "rbac.authorization.k8s.io"
}

// decideUpdate compares the desired object with the existing one.
func (d *decider) decideUpdate(ctx context.Context, s *step) error {
	mine, err := d.owns(ctx, s)
	if err != nil {
		return err
	}
	written := s.known.ResourceVersion != "" // otherwise an interrupted revision might not have written it yet
	if mine && d.options.KeepEdits && s.known.Hash == s.hash && written {
		s.Action, s.live = schema.ActionNone, nil // the record keeps the deployed state, so that edits are detected
		return nil
	}
	s.Action, s.force = schema.ActionUpdate, d.options.Restore
	if s.adopted = d.adopted(s); !mine {
		s.Action, s.force = schema.ActionAdopt, d.options.Adopt || !d.adopts(s)
	}
	if changesRole(s.live, s.desired) {
		return d.replace(ctx, s, nil, nil)
	}
	result, err := d.try(ctx, s)
	if err != nil {
		return err
	}
	if result == nil {
		return nil // it is to be replaced
	}
	s.Fields, s.Definition = diff.Fields(s.live, result), diff.Definition(s.live, result)
	if err := d.checkRestart(s); err != nil {
		return err
	}
	if !mine {
		return d.adopt(s, isIdentical(s.live, result))
	}
	if len(s.Fields) == 0 {
		if s.adopted == nil && diff.SameApplied(s.live, result) {
			s.Action = schema.ActionNone
		} else {
			s.Note = "only the owners of its fields change"
		}
	}
	return nil
}

// owns reports whether the existing object belongs to this release.
func (d *decider) owns(ctx context.Context, s *step) (bool, error) {
	label := s.live.GetLabels()[schema.LabelRelease]
	switch {
	case d.belongs(s):
		return true, nil
	case label == "":
		return false, nil
	}
	states, err := d.States(ctx)
	if err != nil {
		return false, err
	}
	return false, heldByOther(d.release.Key, s.Object, label, states)
}

// heldByOther returns an error if a record confirms that an object belongs to the release of its label. The label alone may be a copy,
// or of a release that was removed.
func heldByOther(key record.Key, object schema.ObjectRef, label string, states []*record.State) error {
	for _, state := range states {
		if state.Damage != nil && state.ID() == label {
			return report.Errorf(report.Conflict, "%s belongs to %s: %w", object, state.Key, state.Damage)
		}
		if known, ok := state.Inventory()[record.KeyOf(object)]; ok && !known.Kept && state.ID() == label {
			err := report.Errorf(report.Conflict, "%s belongs to %s", object, state.Key)
			switch {
			case state.Namespace != key.Namespace || state.Name != key.Name:
				return err.WithHint("two Solutions cannot have the same object; remove %s first, or give the object another name", state.Key)
			case state.Component == "":
				return err.WithHint("an object cannot move from its Solution to a component; give it another name there")
			default:
				return err.WithHint("an object cannot move between components: give it another name, or first deselect component %s, which deletes it", state.Component)
			}
		}
	}
	return nil
}

// belongs reports whether the existing object belongs to this release: the record has its UID, or its label names the release and
// either solutionctl wrote it, or the record has an object of its name that was deleted and created again, as from a backup. The
// label alone is not enough: see [IsManaged].
func (d *decider) belongs(s *step) bool {
	recorded := s.known.UID != ""
	return recorded && s.known.UID == string(s.live.GetUID()) ||
		s.live.GetLabels()[schema.LabelRelease] == d.release.ID() && (recorded || IsManaged(s.live))
}

// adopt accepts an object of no release if the user has asked for that, or if it already is as desired.
func (d *decider) adopt(s *step, identical bool) error {
	s.Note = strings.TrimPrefix(s.Note+"; it exists: "+describe(s.live), "; ")
	if identical || d.options.Adopt || d.adopts(s) {
		return nil
	}
	refused := report.Errorf(report.Conflict, "%s exists and is not part of %s: %s", s.Object, d.release.Key, describe(s.live))
	about := s.Object.String() + ": " + describe(s.live)
	accept := report.Accept("adopt").About(about)
	if name := s.live.GetAnnotations()["meta.helm.sh/release-name"]; name != "" && d.release.Component != "" && !d.mayAdopt(s) {
		whole := report.Accept("adopt-helm", d.release.Component+"="+s.live.GetAnnotations()["meta.helm.sh/release-namespace"]+"/"+name).About(about)
		return refused.WithHint("adopt the Helm release with its values and passwords with %s, or only such objects with %s", whole, accept)
	}
	return refused.WithHint("adopt such objects with %s, or delete them first", accept)
}

// isIdentical reports whether an object would only get the label of the release.
func isIdentical(live, result *unstructured.Unstructured) bool {
	result = result.DeepCopy()
	labels := result.GetLabels()
	delete(labels, schema.LabelRelease)
	if result.SetLabels(labels); len(labels) == 0 {
		unstructured.RemoveNestedField(result.Object, "metadata", "labels")
	}
	return len(diff.Fields(live, result)) == 0
}

// try asks the server for the result of the update; nil if the object has to be replaced.
func (d *decider) try(ctx context.Context, s *step) (*unstructured.Unstructured, error) {
	object := update(s)
	result, err := d.Cluster.Apply(ctx, object, cluster.WriteOptions{DryRun: true, Force: s.force})
	if !s.force && conflicts(err) && (d.options.Force || onlyWith(err, d.former(s))) {
		s.force = true
		result, err = d.Cluster.Apply(ctx, object, cluster.WriteOptions{DryRun: true, Force: true})
	}
	if err == nil && s.adopted != nil {
		result, err = d.withoutFormer(ctx, s, result)
	}
	if apierrors.IsInvalid(err) {
		return d.decideImmutable(ctx, s, err)
	}
	return result, err
}

// update returns the object to apply, with the resource version that was read. For an object that changes all the time the
// version is left out, unless fields are forced: the server then checks the owners of the fields.
func update(s *step) *unstructured.Unstructured {
	object := s.desired.DeepCopy()
	object.SetUID(s.live.GetUID())
	if !s.busy || s.force {
		object.SetResourceVersion(s.live.GetResourceVersion())
	}
	if diff.IsScaled(cmp.Or(s.adopted, s.live)) {
		unstructured.RemoveNestedField(object.Object, "spec", "replicas")
	}
	return object
}

func isSelf(manager string) bool { return manager == cluster.FieldManager }

// conflicts reports whether the server refused because other managers own fields.
func conflicts(err error) bool {
	return err != nil && report.CodeOf(err) == report.Conflict && !errors.Is(err, cluster.ErrChanged)
}

// onlyWith reports whether the fields in conflict belong only to the given managers: solutionctl, which has not applied them, or those
// from which the object is adopted.
func onlyWith(err error, managers []string) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.ErrStatus.Details == nil {
		return false
	}
	return !slices.ContainsFunc(status.ErrStatus.Details.Causes, func(c metav1.StatusCause) bool {
		return !slices.ContainsFunc(managers, func(m string) bool { return strings.HasPrefix(c.Message, `conflict with "`+m+`"`) })
	})
}

// changesRole reports whether a binding is to refer to another role, which the server never allows.
func changesRole(live, desired *unstructured.Unstructured) bool {
	if phaseOf(live.GroupVersionKind().GroupKind()) != phaseBindings {
		return false
	}
	was, _, _ := unstructured.NestedStringMap(live.Object, "roleRef")
	is, _, _ := unstructured.NestedStringMap(desired.Object, "roleRef")
	return !maps.Equal(was, is)
}

// decideRemoval decides on an object that the release does not have any more. If it does not exist, the step keeps no action.
func (d *decider) decideRemoval(ctx context.Context, s *step) error {
	live, err := d.find(ctx, s)
	if err != nil || live == nil {
		return err
	}
	if s.live = live; !d.decideLive(s) {
		return nil
	}
	err = d.Cluster.Delete(ctx, live, cluster.DeleteOptions{DryRun: true, Propagation: metav1.DeletePropagationBackground})
	if errors.Is(err, cluster.ErrChanged) {
		return nil
	}
	return err
}

// decideLive decides on an existing object that is no longer desired, and reports whether to ask the server with a dry run.
func (d *decider) decideLive(s *step) (ask bool) {
	named := slices.Contains(d.release.Delete, s.Object)
	switch {
	case !d.belongs(s):
		return false // another object has the name now
	case d.options.Restore:
		s.Action = schema.ActionKeep
		return false
	case s.known.Stays && !named:
		s.Action, s.Note = schema.ActionKeep, "the release leaves it in the cluster"
		return false
	case protected[kindOfRef(s.Object).GroupKind()] && !named:
		s.Action, s.Note = schema.ActionKeep, "a "+s.Object.Kind+" is never deleted as a side effect"
		return false
	case s.live.GetDeletionTimestamp() != nil:
		s.Action, s.Note = schema.ActionDelete, terminating(s.live)
		return false
	}
	s.Action = schema.ActionDelete
	allowed := s.live.GetAnnotations()[AnnotationAllowDeletion]
	return allowed == "" || allowed == "true" || !named // the caller who names it lifts the protection first
}

// find returns the object of a step, which may have been recorded in a version of its API that is no longer served.
func (d *decider) find(ctx context.Context, s *step) (*unstructured.Unstructured, error) {
	kind := kindOfRef(s.Object)
	if _, missing := d.Cluster.Mapping(ctx, kind); errors.Is(missing, cluster.ErrNoKind) {
		kinds, err := d.Cluster.Kinds(ctx, kind.Group)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(kinds, func(m *meta.RESTMapping) bool { return m.GroupVersionKind.GroupKind() == kind.GroupKind() })
		if i < 0 {
			return nil, nil // without its kind the object does not exist
		}
		kind = kinds[i].GroupVersionKind
	} else if missing != nil {
		return nil, missing
	}
	return d.Cluster.Get(ctx, kind, s.Object.Namespace, s.Object.Name)
}
