package apps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// New returns the kind of a new instance, and the instance without values.
func (a *Apps) New(ctx context.Context, o Options) (*Kind, *unstructured.Unstructured, error) {
	kind, err := a.Kind(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	namespace, err := kind.place(o)
	if err != nil {
		return nil, nil, err
	}
	existing, err := a.Cluster.Get(ctx, kind.kind, namespace, o.Name)
	if err != nil {
		return nil, nil, err
	}
	if existing != nil {
		return nil, nil, errExists(o, existing)
	}
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(kind.kind)
	object.SetNamespace(namespace)
	object.SetName(o.Name)
	return kind, object, nil
}

func errExists(o Options, object *unstructured.Unstructured) error {
	return report.Errorf(report.Conflict, "%s exists already", cluster.NameOf(object)).
		WithHint("change it with: %s", report.Run("deploy app set", o.Environment, o.Name, "FIELD=VALUE"))
}

// CreateOptions describe the instance to create.
type CreateOptions struct {
	Options
	Values []byte         // a spec in YAML, or a whole custom resource
	Set    []string       // assignments that are put into it: FIELD=VALUE
	Fields map[string]any // values that are put into it, by the paths of their fields: see [form.Form.Put]
}

// Create makes an instance and waits until it is ready.
func (a *Apps) Create(ctx context.Context, o CreateOptions) (*schema.App, error) {
	kind, object, err := a.New(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	spec, err := readSpec(o.Values, object)
	if err != nil {
		return nil, err
	}
	if err = kind.fill(ctx, object, spec, o.Set, o.Fields); err != nil {
		return nil, err
	}
	if err = a.mayAwait(ctx, o.Options, kind, object.GetNamespace(), "create", "patch"); err != nil {
		return nil, err
	}
	created, err := a.Cluster.Create(ctx, object, cluster.WriteOptions{})
	if errors.Is(err, cluster.ErrExists) {
		return nil, errExists(o.Options, object)
	}
	if err != nil {
		return nil, kind.HideSecrets(err, spec)
	}
	return a.await(ctx, o.Options, kind, created)
}

// readSpec reads a values file for an object: the spec itself, or a custom resource of its kind with one.
func readSpec(values []byte, object *unstructured.Unstructured) (map[string]any, error) {
	documents, err := schema.ParseKubernetes("values", values)
	if err != nil {
		return nil, err
	}
	documents = slices.DeleteFunc(documents, func(d *schema.Document) bool { return d.Value() == nil })
	switch len(documents) {
	case 0:
		return map[string]any{}, nil
	case 1:
	default:
		return nil, report.Errorf(report.Invalid, "values: there is more than one document")
	}
	data, err := documents[0].JSON()
	if err != nil {
		return nil, report.Errorf(report.Invalid, "values: %w", err)
	}
	given := &unstructured.Unstructured{}
	if err = kubejson.Unmarshal(data, &given.Object); err != nil {
		return nil, report.Errorf(report.Invalid, "values: they are not a mapping")
	}
	if given.GetAPIVersion() == "" || given.GetKind() == "" {
		return given.Object, nil
	}
	name := cmp.Or(given.GetName(), object.GetName())
	if given.GroupVersionKind().GroupKind() != object.GroupVersionKind().GroupKind() || name != object.GetName() {
		return nil, report.Errorf(report.Invalid, "values: want the spec of %s %s, or the whole resource: they are %s %s of %s",
			object.GetKind(), object.GetName(), given.GetKind(), name, given.GetAPIVersion())
	}
	spec, found, err := unstructured.NestedMap(given.Object, "spec")
	if err == nil && !found {
		err = errors.New("the resource has no spec")
	}
	if err != nil {
		return nil, report.Errorf(report.Invalid, "values: %w", err)
	}
	return spec, nil
}

// fill sets values in a spec, puts the spec into the object, and validates the fields that changed.
func (k *Kind) fill(ctx context.Context, object *unstructured.Unstructured, spec map[string]any, assignments []string, values map[string]any) error {
	if err := k.SetAll(spec, assignments); err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(values)) {
		if err := k.Put(spec, path, values[path]); err != nil {
			return err
		}
	}
	var before map[string]any
	if object.GetUID() != "" {
		before = object.DeepCopy().Object
	}
	if err := unstructured.SetNestedMap(object.Object, spec, "spec"); err != nil {
		return err
	}
	return k.HideSecrets(k.Check(ctx, before, object.Object), spec)
}

// SetOptions say which values of an instance to change.
type SetOptions struct {
	Options
	Set    []string       // FIELD=VALUE, or FIELD- to take a value away
	Fields map[string]any // values by the paths of their fields: see [form.Form.Put]
}

// Set changes values of an instance and waits until it is ready with them.
func (a *Apps) Set(ctx context.Context, o SetOptions) (*schema.App, error) {
	for {
		kind, object, err := a.find(ctx, o.Options)
		if err != nil {
			return nil, err
		}
		spec, _, err := unstructured.NestedMap(object.Object, "spec")
		if err != nil {
			return nil, err
		}
		before := runtime.DeepCopyJSON(spec)
		if spec == nil {
			spec = map[string]any{}
		}
		if err = kind.fill(ctx, object, spec, o.Set, o.Fields); err != nil {
			return nil, err
		}
		if err = a.mayAwait(ctx, o.Options, kind, object.GetNamespace(), "update"); err != nil {
			return nil, err
		}
		changed, err := a.Cluster.Update(ctx, object, cluster.WriteOptions{})
		if errors.Is(err, cluster.ErrChanged) && ctx.Err() == nil {
			continue // another client, most likely the operator, changed it
		}
		if err != nil {
			return nil, kind.HideSecrets(err, spec, before)
		}
		return a.await(ctx, o.Options, kind, changed)
	}
}

// ScaleOptions say how many replicas an instance is to have.
type ScaleOptions struct {
	Options
	Replicas int64
}

// Scale changes how many replicas an instance has, through the scale of its kind.
func (a *Apps) Scale(ctx context.Context, o ScaleOptions) (*schema.App, error) {
	kind, object, err := a.find(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	if !kind.scales {
		return nil, report.Errorf(report.Refused, "a %s cannot be scaled", kind.Kind).
			WithHint("see what can be changed: %s", report.Run("deploy app fields", o.Environment, kind.Kind))
	}
	scale, err := a.Cluster.PermissionsOn(ctx, kind.kind, object.GetNamespace(), "patch")
	if err != nil {
		return nil, err
	}
	scale[0].Subresource = "scale"
	if err = cmp.Or(a.Cluster.Require(ctx, scale), a.mayAwait(ctx, o.Options, kind, object.GetNamespace())); err != nil {
		return nil, err
	}
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, o.Replicas)
	if _, err = a.Cluster.PatchScale(ctx, object, types.MergePatchType, patch, cluster.WriteOptions{}); err != nil {
		return nil, err
	}
	changed, err := a.Cluster.Get(ctx, kind.kind, object.GetNamespace(), object.GetName())
	if err != nil {
		return nil, err
	}
	if changed == nil {
		return nil, report.Errorf(report.Conflict, "%s was deleted meanwhile", cluster.NameOf(object))
	}
	return a.await(ctx, o.Options, kind, changed)
}

// mayAwait asks whether the user may change an instance, and then see how it comes along.
func (a *Apps) mayAwait(ctx context.Context, o Options, kind *Kind, namespace string, verbs ...string) error {
	if !o.NoWait {
		verbs = append(verbs, "get", "list", "watch")
	}
	wanted, err := a.Cluster.PermissionsOn(ctx, kind.kind, namespace, verbs...)
	if err != nil {
		return err
	}
	return a.Cluster.Require(ctx, wanted)
}

// await waits until an instance is ready.
func (a *Apps) await(ctx context.Context, o Options, kind *Kind, object *unstructured.Unstructured) (*schema.App, error) {
	if o.NoWait {
		return a.whole(ctx, o.Environment, kind, object)
	}
	waiting, cancel := context.WithTimeout(ctx, cmp.Or(o.Timeout, records.DefaultTimeout))
	defer cancel()
	event := report.Event{Step: "wait", Name: cluster.NameOf(object), State: report.Started}
	a.Sink.Emit(event)
	last, err := a.follow(waiting, kind, object, func(message string) {
		event.State, event.Note = report.Running, message
		a.Sink.Emit(event)
	})
	event.State, event.Note = report.Done, ""
	if err != nil {
		event.State = report.Failed
	}
	a.Sink.Emit(event)
	if err == nil {
		return a.whole(ctx, o.Environment, kind, last)
	}
	if ctx.Err() != nil {
		return nil, report.Errorf(report.Interrupted, "%s was changed; waiting for it was interrupted", cluster.NameOf(object)).
			WithHint("see: %s", report.Run("deploy app get", o.Environment, o.Name))
	}
	if waiting.Err() == nil {
		return nil, err
	}
	whole, failed := a.whole(ctx, o.Environment, kind, last)
	if failed != nil {
		return nil, failed
	}
	return nil, report.Errorf(report.Timeout, "%s did not become ready in time:\n  %s", cluster.NameOf(object), report.Some(whole.Reasons)).
		WithHint("see: %s", report.Run("deploy app get", o.Environment, o.Name))
}

// follow returns the instance when it is ready, or the last that was seen of it with the reason why it will not be.
func (a *Apps) follow(ctx context.Context, kind *Kind, object *unstructured.Unstructured, tell func(string)) (*unstructured.Unstructured, error) {
	last := object
	one := metav1.ListOptions{FieldSelector: "metadata.name=" + object.GetName()}
	for change, err := range a.Cluster.Watch(ctx, kind.kind, object.GetNamespace(), one) {
		if err != nil {
			return last, err
		}
		if change.Type == watch.Deleted {
			return last, report.Errorf(report.Conflict, "%s was deleted meanwhile", cluster.NameOf(object))
		}
		last = change.Object
		state, message := kind.health(last)
		if state == schema.AppReady && last.GetGeneration() >= object.GetGeneration() {
			return last, nil
		}
		tell(message)
	}
	return last, ctx.Err()
}

// ConfirmDeletion is the confirmation for deleting an application: the user types its name, because its data is lost.
func ConfirmDeletion(one *schema.App) report.Confirmation {
	return report.Confirmation{Question: fmt.Sprintf("delete %s %s in environment %s with %s that came of it",
		one.Kind, one.Name, one.Environment, report.Count(len(one.Objects), "object")), Name: one.Name}
}

// Delete deletes an instance and waits until it is gone; the garbage collector then removes the objects that it owns. A
// foreground deletion would wait for these as well, but hangs for minutes for a new kind, until the garbage collector
// knows it.
func (a *Apps) Delete(ctx context.Context, o Options) error {
	kind, object, err := a.find(ctx, o)
	if err != nil {
		return err
	}
	if o.UID != "" && o.UID != string(object.GetUID()) {
		return report.Errorf(report.Conflict, "%s was deleted and created again", cluster.NameOf(object)).WithHint("run the command again")
	}
	if err := a.mayAwait(ctx, o, kind, object.GetNamespace(), "delete"); err != nil {
		return err
	}
	object.SetResourceVersion("") // its operator may write the status meanwhile
	if err := a.Cluster.Delete(ctx, object, cluster.DeleteOptions{}); err != nil {
		return err
	}
	if o.NoWait {
		return nil
	}
	return a.Definitions.AwaitGone(ctx, []definitions.Instance{{Kind: kind.kind, Object: object}}, o.Timeout, func(int, string) {})
}
