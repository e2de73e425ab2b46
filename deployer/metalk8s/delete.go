package metalk8s

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/schema/report"
)

// DeleteOptions say for how long to wait until namespaces are gone.
type DeleteOptions struct {
	Timeout time.Duration // 0 is ten minutes
	NoWait  bool          // does not wait at all
}

const defaultTimeout = 10 * time.Minute

// Select returns the namespaces of an environment, or one of them, to delete them. The error has the code NotFound when there
// are none.
func (d *Documents) Select(ctx context.Context, environment, namespace string) ([]Namespace, error) {
	e, err := d.Environment(ctx, environment)
	if err != nil {
		return nil, err
	}
	selected := e.Namespaces
	if namespace != "" {
		n, ok := e.Namespace(namespace)
		if !ok {
			return nil, report.Errorf(report.NotFound, "environment %s has no namespace %q", environment, namespace).
				WithHint("it has %s", strings.Join(e.Names(), ", "))
		}
		selected = []Namespace{n}
	}
	return selected, Deletable(selected)
}

// Deletable refuses namespaces that the cluster needs for itself.
func Deletable(namespaces []Namespace) error {
	for _, n := range namespaces {
		if slices.Contains(reserved, n.Name) {
			return report.Errorf(report.Refused, "namespace %s is part of environment %s, but the cluster needs it for itself", n.Name, n.Environment).
				WithHint("take it out of the environment: kubectl label namespace %s %s-", n.Name, EnvironmentLabel)
		}
	}
	return nil
}

// DeleteNamespaces deletes the namespaces that were read, with everything in them, and waits until they are gone. It
// does not check for uses, see [Documents.Usage]. The error has the code Timeout when something holds a namespace; it
// names the finalizers and the remaining objects.
func (d *Documents) DeleteNamespaces(ctx context.Context, namespaces []Namespace, o DeleteOptions) error {
	for _, n := range namespaces {
		if err := d.Cluster.Delete(ctx, identityOf(n.object), cluster.DeleteOptions{}); err != nil {
			return err
		}
	}
	if o.NoWait {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, cmp.Or(o.Timeout, defaultTimeout))
	defer cancel()
	for _, n := range namespaces {
		if err := d.awaitDeletion(ctx, waiting, n); err != nil {
			return err
		}
	}
	return nil
}

// AwaitGone waits until a namespace that is being deleted is gone, like [Documents.DeleteNamespaces].
func (d *Documents) AwaitGone(ctx context.Context, namespace *unstructured.Unstructured, o DeleteOptions) error {
	waiting, cancel := context.WithTimeout(ctx, cmp.Or(o.Timeout, defaultTimeout))
	defer cancel()
	return d.awaitDeletion(ctx, waiting, newNamespace(namespace))
}

// identityOf copies only the fields that identify an object: a namespace is deleted in its present state.
func identityOf(object *unstructured.Unstructured) *unstructured.Unstructured {
	identity := cluster.NewObject(object.GroupVersionKind(), object.GetNamespace(), object.GetName())
	identity.SetUID(object.GetUID())
	return identity
}

// awaitDeletion returns when the namespace is gone, or another one has its name. The context waiting ends when it takes
// too long.
func (d *Documents) awaitDeletion(ctx, waiting context.Context, n Namespace) error {
	d.emit(report.Event{Step: "delete", Name: "namespace " + n.Name, State: report.Started})
	one := metav1.ListOptions{FieldSelector: "metadata.name=" + n.Name}
	last := n.object
	for {
		live, err := d.Cluster.Get(ctx, cluster.NamespaceKind, "", n.Name)
		switch {
		case err == nil && (live == nil || live.GetUID() != n.object.GetUID()):
			d.emit(report.Event{Step: "delete", Name: "namespace " + n.Name, State: report.Done})
			return nil
		case err == nil:
			last = live
		}
		if waiting.Err() != nil { // also when ctx has ended and nothing could be read
			d.emit(report.Event{Step: "delete", Name: "namespace " + n.Name, State: report.Failed})
			return d.stuck(ctx, last)
		}
		if err != nil {
			return err
		}
		if last, err = d.followNamespace(waiting, live, one); err != nil {
			return err
		}
	}
}

// followNamespace watches a namespace that is being deleted until it is gone or the context ends. It reports the
// objects that hold it, and returns the last state.
func (d *Documents) followNamespace(ctx context.Context, last *unstructured.Unstructured, o metav1.ListOptions) (*unstructured.Unstructured, error) {
	o.ResourceVersion = last.GetResourceVersion()
	for change, err := range d.Cluster.Watch(ctx, cluster.NamespaceKind, "", o, last) {
		if err != nil {
			return last, err
		}
		last = change.Object
		if change.Type == watch.Deleted {
			break
		}
		if len(holding(last)) > 0 {
			d.emit(report.Event{
				Step: "delete", Name: "namespace " + last.GetName(), State: report.Running,
				Note: strings.Join(health.Explain(ctx, d.Cluster, last), "; "),
			})
		}
	}
	return last, nil
}

// stuck is the error for a namespace that does not go away.
func (d *Documents) stuck(ctx context.Context, namespace *unstructured.Unstructured) error {
	if ctx.Err() != nil {
		text := cmp.Or(strings.Join(holding(namespace), "; "), notYet)
		return report.Errorf(report.Interrupted, "namespace %s is being deleted: %s: %w", namespace.GetName(), text, context.Cause(ctx)).
			WithHint("the cluster continues to delete it; run the same command again to wait for the end")
	}
	text := notYet
	if len(holding(namespace)) > 0 {
		text = strings.Join(health.Explain(ctx, d.Cluster, namespace), "\n  ")
	}
	return report.Errorf(report.Timeout, "namespace %s does not go away:\n  %s", namespace.GetName(), text).
		WithHint("remove the named obstacle, then run the same command again: it continues where this one ended")
}

const notYet = "the cluster has not looked at it yet"

// holding returns the conditions that hold a namespace that is being deleted, in the words of the cluster: remaining
// objects, their finalizers, and kinds that cannot even be listed. Nothing when it is not being deleted.
func holding(namespace *unstructured.Unstructured) []string {
	if namespace.GetDeletionTimestamp() == nil {
		return nil
	}
	var reasons []string
	conditions, _, err := unstructured.NestedSlice(namespace.Object, "status", "conditions")
	if err != nil {
		return nil
	}
	for _, entry := range conditions {
		condition, ok := entry.(map[string]any)
		if !ok || condition["status"] != "True" {
			continue
		}
		if message, ok := condition["message"].(string); ok && message != "" {
			reasons = append(reasons, message)
		}
	}
	for _, finalizer := range namespace.GetFinalizers() {
		reasons = append(reasons, "the namespace itself has the finalizer "+finalizer)
	}
	return reasons
}

// Use is one thing that deleting a namespace would destroy.
type Use struct {
	Namespace string
	// Solution and Version are an entry of ConfigMap metalk8s-environment; empty for custom resources.
	Solution, Version string
	// Kind is that of custom resources or volume claims, whose metadata is in Objects; empty for a Solution.
	Kind    kube.GroupVersionKind
	Objects []*unstructured.Unstructured
}

// maxNames bounds how many objects a sentence names.
const maxNames = 3

func (u Use) String() string {
	if u.Solution != "" {
		return fmt.Sprintf("Solution %s %s in namespace %s", u.Solution, u.Version, u.Namespace)
	}
	count := len(u.Objects)
	if !u.IsClaim() { // the user needs to know which data is lost
		count = min(count, maxNames)
	}
	var names []string
	for _, object := range u.Objects[:count] {
		names = append(names, object.GetName())
	}
	text := u.Kind.Kind + " " + strings.Join(names, ", ")
	if more := len(u.Objects) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + " in namespace " + u.Namespace
}

// IsClaim reports whether this is about volume claims: they go with their namespace, after the pods that use them.
func (u Use) IsClaim() bool { return u.Kind == cluster.ClaimKind }

// Usage lists the uses that deleting the namespaces would destroy: deployed Solutions, custom resources of any kind,
// which users created, and volume claims. Objects with an owner are not counted. Volume claims are read completely, and all of them are
// returned besides.
func (d *Documents) Usage(ctx context.Context, namespaces []Namespace) (usage []Use, claims []*unstructured.Unstructured, err error) {
	for _, n := range namespaces {
		for _, solution := range slices.Sorted(maps.Keys(n.Versions)) {
			usage = append(usage, Use{Namespace: n.Name, Solution: solution, Version: n.Versions[solution]})
		}
	}
	kinds, err := d.customKinds(ctx)
	if err != nil {
		return nil, nil, err
	}
	kinds = append(kinds, cluster.ClaimKind)
	found := make([][]*unstructured.Unstructured, len(namespaces)*len(kinds))
	err = cluster.Each(len(found), func(i int) (err error) {
		namespace, kind, list := namespaces[i/len(kinds)].Name, kinds[i%len(kinds)], d.Cluster.ListMetadata
		if kind == cluster.ClaimKind {
			list = d.Cluster.List
		}
		found[i], err = cluster.Collect(list(ctx, kind, namespace, metav1.ListOptions{}))
		if errors.Is(err, cluster.ErrNoKind) { // its definition went while this looked, and every object with it
			found[i], err = nil, nil
		}
		if err != nil {
			return fmt.Errorf("look for %s in namespace %s: %w", kind.Kind, namespace, err)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	for i, objects := range found {
		kind := kinds[i%len(kinds)]
		if kind == cluster.ClaimKind {
			claims = append(claims, objects...)
		}
		objects = slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return len(o.GetOwnerReferences()) > 0 })
		if len(objects) > 0 {
			usage = append(usage, Use{Namespace: namespaces[i/len(kinds)].Name, Kind: kind, Objects: objects})
		}
	}
	return usage, claims, nil
}

// customKinds are the kinds of custom resources that live in namespaces, each in a version that is served.
func (d *Documents) customKinds(ctx context.Context) ([]kube.GroupVersionKind, error) {
	custom, _, err := d.kinds(ctx)
	return custom, err
}

// PlainKinds are the kinds of objects that live in namespaces and that [Documents.Usage] does not look at.
func (d *Documents) PlainKinds(ctx context.Context) ([]kube.GroupVersionKind, error) {
	_, plain, err := d.kinds(ctx)
	return slices.DeleteFunc(plain, func(kind kube.GroupVersionKind) bool { return kind == cluster.ClaimKind }), err
}

func (d *Documents) kinds(ctx context.Context) (custom, plain []kube.GroupVersionKind, err error) {
	defined := map[string]bool{}
	var groups []string
	definitions, err := d.Cluster.Definitions(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, object := range definitions {
		defined[object.GetName()] = true
		_, group, _ := strings.Cut(object.GetName(), ".")
		groups = append(groups, group)
	}
	served, err := d.Cluster.Kinds(ctx, groups...)
	if err != nil {
		return nil, nil, err
	}
	custom, plain = sortKinds(served, defined)
	return custom, plain, nil
}

// sortKinds separates the kinds of CRDs, by their names, from built-in and aggregated kinds. Cluster-scoped kinds are
// neither.
func sortKinds(served []*meta.RESTMapping, defined map[string]bool) (custom, plain []kube.GroupVersionKind) {
	for _, m := range served {
		switch {
		case m.Scope != meta.RESTScopeNamespace:
		case defined[m.Resource.GroupResource().String()]: // a CRD has the name of its resource
			custom = append(custom, m.GroupVersionKind)
		default:
			plain = append(plain, m.GroupVersionKind)
		}
	}
	return custom, plain
}
