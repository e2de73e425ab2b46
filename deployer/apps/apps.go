// Package apps makes, shows and changes instances: the applications that users of a Solution create, without knowing Kubernetes.
//
// [Apps.Kind] is a kind of instances that an environment offers, with the form that its definition's schema makes;
// [Apps.Create], [Apps.Set], [Apps.Scale] and [Apps.Delete] change an instance and wait until it is as it was asked for, and
// [Apps.Get] shows it with everything that belongs to it. All of it takes no more than rights on the instances themselves.
package apps

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Apps are the instances of one cluster. All fields are required.
type Apps struct {
	Cluster     *cluster.Cluster
	Records     *records.Records
	Definitions *definitions.Guard
	Sink        report.Sink
}

// Options name an instance in an environment. What is empty is found out where there is only one choice.
type Options struct {
	Environment, Namespace string
	Kind, Name             string
	Timeout                time.Duration
	NoWait                 bool
}

// List lists the instances in an environment: of one kind, or of all for "".
func (a *Apps) List(ctx context.Context, o Options) (*schema.AppList, error) {
	offered, err := a.kinds(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.Kind != "" && !slices.ContainsFunc(offered.kinds, func(k *Kind) bool { return k.isCalled(o.Kind) }) {
		_, err = offered.choose(o.Kind)
		return nil, err
	}
	apps := &schema.AppList{Apps: []schema.App{}}
	err = visible(offered.kinds, o, func(kind *Kind, namespace string) error {
		for object, err := range a.Cluster.List(ctx, kind.kind, namespace, metav1.ListOptions{}) {
			if err != nil {
				return err
			}
			apps.Apps = append(apps.Apps, app(o.Environment, kind, object))
		}
		return nil
	})
	return apps, err
}

// visible looks at the kinds that are asked for, each in its namespaces. What the user may not see is left out where nobody
// asked for it by its kind, unless nothing is left.
func visible(kinds []*Kind, o Options, look func(kind *Kind, namespace string) error) error {
	if o.Kind != "" {
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(k *Kind) bool { return !k.isCalled(o.Kind) })
	}
	var hidden error
	seen := false
	for _, kind := range kinds {
		for _, n := range kind.namespaces {
			err := look(kind, n.Name)
			switch {
			case report.CodeOf(err) == report.Forbidden && o.Kind == "":
				hidden = cmp.Or(hidden, err)
			case err != nil:
				return err
			default:
				seen = true
			}
		}
	}
	if seen {
		return nil
	}
	return hidden
}

func app(environment string, kind *Kind, object *unstructured.Unstructured) schema.App {
	a := schema.App{
		Environment: environment, Namespace: object.GetNamespace(), Solution: kind.Solution, APIVersion: object.GetAPIVersion(),
		Kind: object.GetKind(), Name: object.GetName(), Created: object.GetCreationTimestamp().UTC(), Reasons: []string{},
	}
	var reason string
	a.Health, reason = kind.health(object)
	if reason != "" {
		a.Reasons = append(a.Reasons, reason)
	}
	return a
}

func appHealth(object *unstructured.Unstructured) (schema.AppHealth, string) {
	status := health.Of(object)
	switch {
	case object.GetDeletionTimestamp() != nil:
		return schema.AppDeleting, "it is being deleted"
	case status.Ready:
		return schema.AppReady, ""
	case status.Failed:
		return schema.AppFailed, status.Message
	default:
		return schema.AppProgressing, status.Message
	}
}

// Get returns one instance with its values and everything that belongs to it.
func (a *Apps) Get(ctx context.Context, o Options) (*schema.App, error) {
	kind, object, err := a.find(ctx, o)
	if err != nil {
		return nil, err
	}
	return a.whole(ctx, o.Environment, kind, object)
}

func (a *Apps) whole(ctx context.Context, environment string, kind *Kind, object *unstructured.Unstructured) (*schema.App, error) {
	whole := app(environment, kind, object)
	whole.Values, _, _ = unstructured.NestedMap(object.Object, "spec")
	owned, err := a.owned(ctx, object)
	if err != nil {
		return nil, err
	}
	explained := 0
	var walk func(owner types.UID, depth int)
	walk = func(owner types.UID, depth int) {
		for _, one := range owned[owner] {
			state, reason := appHealth(one)
			if state != schema.AppReady && one.GetKind() == cluster.PodKind.Kind && explained < maxExplained {
				explained++
				reason = cmp.Or(strings.Join(podReasons(health.Explain(ctx, a.Cluster, one)), "; "), reason)
			}
			ref := schema.ObjectRef{APIVersion: one.GetAPIVersion(), Kind: one.GetKind(), Namespace: one.GetNamespace(), Name: one.GetName()}
			whole.Objects = append(whole.Objects, schema.AppObject{ObjectRef: ref, Depth: depth, Health: state, Reason: reason})
			if depth == 1 && state != schema.AppReady {
				whole.Reasons = append(whole.Reasons, health.Explain(ctx, a.Cluster, one)...)
			}
			if depth < maxTree {
				walk(one.GetUID(), depth+1)
			}
		}
	}
	walk(object.GetUID(), 1)
	return &whole, nil
}

// podReasons are what is wrong with a pod, without its name.
func podReasons(reasons []string) []string {
	for i, reason := range reasons {
		if who, why, found := strings.Cut(reason, ": "); found && strings.HasPrefix(who, "pod ") {
			reasons[i] = why
		}
	}
	return reasons
}

// maxExplained bounds the pods of an instance that are followed down to their containers: they are rarely ill of different things.
const maxExplained = 5

// maxTree bounds the depth of a tree of owners; objects that own each other must not lead round in circles.
const maxTree = 6

// ownedKinds are kinds of objects that operators make for an instance.
var ownedKinds = []kube.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "PersistentVolumeClaim"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	{Group: "batch", Version: "v1", Kind: "CronJob"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Version: "v1", Kind: "Pod"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
}

// owned returns the objects in the namespace of an instance by the UID of their owner. What the user may not list is left
// out. ReplicaSets without pods are the past of a Deployment.
func (a *Apps) owned(ctx context.Context, object *unstructured.Unstructured) (map[types.UID][]*unstructured.Unstructured, error) {
	owned := map[types.UID][]*unstructured.Unstructured{}
	for _, kind := range ownedKinds {
		for one, err := range a.Cluster.List(ctx, kind, object.GetNamespace(), metav1.ListOptions{}) {
			if code := report.CodeOf(err); code == report.Forbidden || errors.Is(err, cluster.ErrNoKind) {
				break
			}
			if err != nil {
				return nil, err
			}
			if wanted, found, _ := unstructured.NestedInt64(one.Object, "spec", "replicas"); kind.Kind == "ReplicaSet" && found && wanted == 0 {
				continue
			}
			for _, owner := range one.GetOwnerReferences() {
				owned[owner.UID] = append(owned[owner.UID], one)
			}
		}
	}
	return owned, nil
}

// find returns an instance by its name; of several with the same name the namespace or the kind has to be told.
func (a *Apps) find(ctx context.Context, o Options) (*Kind, *unstructured.Unstructured, error) {
	offered, err := a.kinds(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	type candidate struct {
		kind   *Kind
		object *unstructured.Unstructured
	}
	var found []candidate
	err = visible(offered.kinds, o, func(kind *Kind, namespace string) error {
		object, failure := a.Cluster.Get(ctx, kind.kind, namespace, o.Name)
		if object != nil {
			found = append(found, candidate{kind, object})
		}
		return failure
	})
	if err != nil {
		return nil, nil, err
	}
	switch len(found) {
	case 1:
		return found[0].kind, found[0].object, nil
	case 0:
		if offered.unread != nil {
			return nil, nil, offered.unread
		}
		return nil, nil, report.Errorf(report.NotFound, "environment %s has no instance %s", o.Environment, o.Name).
			WithHint("see: %s", report.Run("deploy app list", o.Environment))
	}
	var names []string
	for _, f := range found {
		names = append(names, cluster.NameOf(f.object))
	}
	return nil, nil, report.Errorf(report.Usage, "%s is the name of several instances: %s", o.Name, strings.Join(names, ", ")).
		WithHint("say which one with --kind and --namespace")
}

// New returns the kind of an instance that can be made, and the instance without any values.
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

// CreateOptions say which instance to make.
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
	spec, err := readSpec(o.Values)
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
		return nil, err
	}
	return a.await(ctx, o.Options, kind, created)
}

// readSpec reads a values file: the spec itself, or a custom resource with one.
func readSpec(values []byte) (map[string]any, error) {
	if len(values) == 0 {
		return map[string]any{}, nil
	}
	data, err := yaml.YAMLToJSONStrict(values)
	if err != nil {
		return nil, report.Errorf(report.Invalid, "values: %w", err)
	}
	var document map[string]any
	object := &unstructured.Unstructured{}
	if err = json.Unmarshal(data, &document); err != nil {
		return nil, report.Errorf(report.Invalid, "values: they are not a mapping")
	}
	if _, whole := document["kind"]; whole {
		if err = object.UnmarshalJSON(data); err != nil {
			return nil, report.Errorf(report.Invalid, "values: %w", err)
		}
	} else if err = object.UnmarshalJSON(fmt.Appendf(nil, `{"kind":"Values","spec":%s}`, data)); err != nil {
		return nil, report.Errorf(report.Invalid, "values: %w", err)
	}
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		return nil, report.Errorf(report.Invalid, "values: %w", err)
	}
	if spec == nil {
		spec = map[string]any{}
	}
	return spec, nil
}

// fill puts values into a spec, the spec into the object, and judges what is new in it.
func (k *Kind) fill(ctx context.Context, object *unstructured.Unstructured, spec map[string]any, assignments []string, values map[string]any) error {
	for _, assignment := range assignments {
		if err := k.Set(spec, assignment); err != nil {
			return err
		}
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
	return k.Check(ctx, before, object.Object)
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
			continue // somebody, most likely the operator, wrote it meanwhile
		}
		if err != nil {
			return nil, err
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

// ConfirmDeletion is what to ask before an application is deleted: its name, as nothing brings its data back.
func ConfirmDeletion(one *schema.App) report.Confirmation {
	return report.Confirmation{Question: fmt.Sprintf("delete %s %s in environment %s with %s that came of it",
		one.Kind, one.Name, one.Environment, report.Count(len(one.Objects), "object")), Name: one.Name}
}

// Delete deletes an instance and waits until it is gone; the garbage collector then removes what it owns. A foreground
// deletion would wait for that, too, but hangs for minutes after a kind is new, until the garbage collector knows it.
func (a *Apps) Delete(ctx context.Context, o Options) error {
	kind, object, err := a.find(ctx, o)
	if err != nil {
		return err
	}
	if err := a.mayAwait(ctx, o, kind, object.GetNamespace(), "delete"); err != nil {
		return err
	}
	if err := a.Cluster.Delete(ctx, object, cluster.DeleteOptions{}); err != nil {
		return err
	}
	if o.NoWait {
		return nil
	}
	return a.Definitions.AwaitGone(ctx, []definitions.Instance{{Kind: kind.kind, Object: object}}, o.Timeout, func(int, string) {})
}
