// Package apps makes, shows and changes instances: the applications that users of a Solution create, without knowing Kubernetes.
//
// [Apps.Kind] is a kind of instances that an environment offers, with the form that its definition's schema makes;
// [Apps.Create], [Apps.Set], [Apps.Scale] and [Apps.Delete] change an instance and wait until it is as it was asked for, and
// [Apps.Get] shows it with everything that belongs to it. All of it takes no more than rights on the instances themselves.
package apps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
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

// Options identify an instance in an environment. An empty field is derived where there is only one candidate.
type Options struct {
	Environment, Namespace string
	Kind, Name             string
	// UID is that of the instance, only for [Apps.Delete]; "" is any.
	UID     string
	Timeout time.Duration
	NoWait  bool
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
			if errors.Is(err, cluster.ErrNoKind) {
				break // its CustomResourceDefinition was deleted since it was read, and every object with it
			}
			if err != nil {
				return err
			}
			apps.Apps = append(apps.Apps, app(o.Environment, kind, object))
		}
		return nil
	})
	if err != nil {
		return apps, err
	}
	apps.Notices, err = a.kept(ctx, o)
	return apps, err
}

// kept names the custom resources that removals have kept in an environment. Users without the permission to read the records, or the
// definitions, are shown none.
func (a *Apps) kept(ctx context.Context, o Options) ([]string, error) {
	if o.Kind != "" {
		return nil, nil
	}
	notices, err := a.keptIn(ctx, o)
	switch report.CodeOf(err) {
	case report.Forbidden, report.Corrupt, report.Invalid:
		return nil, nil
	default:
		return notices, err
	}
}

func (a *Apps) keptIn(ctx context.Context, o Options) (notices []string, err error) {
	namespaces, err := a.namespaces(ctx, o.Environment, o.Namespace)
	if err != nil {
		return nil, err
	}
	states, err := a.Records.Engine.StatesIn(ctx, metalk8s.NamesOf(namespaces)...)
	if err != nil {
		return nil, err
	}
	var catalog *records.Catalog
	for _, s := range states {
		if s.Component != "" || s.Pending != nil || s.Current == nil || s.Current.Version != "" {
			continue // it is there
		}
		if catalog == nil {
			if catalog, err = a.Records.Catalog(ctx); err != nil {
				return nil, err
			}
		}
		crds, err := a.Definitions.Of(ctx, catalog, s.Name)
		if err != nil {
			return nil, err
		}
		list, err := a.Definitions.Instances(ctx, crds, s.Namespace)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			notices = append(notices, fmt.Sprintf("Solution %s was removed from namespace %s, and its custom resources were kept: %s; '%s' brings their operator back",
				s.Name, s.Namespace, definitions.CountText(list), report.Run("deploy add", o.Environment, s.Name).In(s.Namespace)))
		}
	}
	return notices, nil
}

// visible calls look for the given kinds, each in its namespaces. It skips kinds that the user is not allowed to read,
// unless the user requested the kind by name or none remains.
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
		Kind: object.GetKind(), Name: object.GetName(), UID: string(object.GetUID()), Created: object.GetCreationTimestamp().UTC(), Reasons: []string{},
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
	whole.Shown = kind.Shown(whole.Values)
	owned, err := a.owned(ctx, object)
	if err != nil {
		return nil, err
	}
	explained := 0
	seen := map[types.UID]bool{object.GetUID(): true}
	listed := func(one *unstructured.Unstructured) bool {
		before := seen[one.GetUID()]
		seen[one.GetUID()] = true
		return before
	}
	var walk func(owner types.UID, depth int)
	walk = func(owner types.UID, depth int) {
		for _, one := range slices.DeleteFunc(owned[owner], listed) {
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

// podReasons removes the name of the pod from the reasons why it is not ready.
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

// maxTree bounds the depth of a tree of owners.
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

// owned returns the objects in the namespace of an instance by the UID of their owner. Objects that the user is not
// allowed to list are left out, and so are ReplicaSets without pods, which are former revisions of a Deployment.
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

// find returns an instance by its name. If the name is ambiguous, o has to specify the namespace or the kind.
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
