package definitions

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Export writes custom resources to a durable place before an operation that could lose them. It calls the function
// once with a writer. Unless both succeed, nothing is deleted or changed.
type Export func(write func(io.Writer) error) error

// Scope are the objects of a definition in a namespace, or with "" all of them.
type Scope struct {
	definition *unstructured.Unstructured
	namespace  string
}

// String names the scope in a plan.
func (s Scope) String() string { return strings.TrimSpace(s.definition.GetName() + " " + s.namespace) }

// ExportAll exports all objects of these scopes.
func (g *Guard) ExportAll(ctx context.Context, scopes []Scope, export Export) error {
	var all []Instance
	for _, s := range scopes {
		list, err := g.Instances(ctx, []*unstructured.Unstructured{s.definition}, s.namespace)
		if err != nil {
			return err
		}
		all = append(all, list...)
	}
	_, err := g.Export(ctx, all, export)
	return err
}

// Export writes complete objects, without the fields that only the API server sets, as one List that kubectl can create
// again. It returns the objects that it has written.
func (g *Guard) Export(ctx context.Context, list []Instance, export Export) ([]Instance, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if export == nil {
		return nil, report.Errorf(report.DataLoss, "%s would be lost without an export", CountText(list)).
			WithHint("run the command itself that was begun: it exports them first")
	}
	var w *listWriter
	err := export(func(out io.Writer) error {
		w = &listWriter{out: out, separator: "\n"}
		_, err := io.WriteString(out, `{"apiVersion": "v1", "kind": "List", "items": [`)
		for _, group := range groups(list) {
			if err == nil {
				err = g.exportGroup(ctx, group, w)
			}
		}
		if err == nil {
			_, err = io.WriteString(out, "\n]}\n")
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("export of custom resources: %w", err)
	}
	return w.written, nil
}

// instanceGroup holds the custom resources of one kind in one namespace: they are read together.
type instanceGroup struct {
	Kind      kube.GroupVersionKind
	Namespace string
	uids      map[string]bool
}

// groups puts instances of one kind in one namespace together.
func groups(list []Instance) []instanceGroup {
	var found []instanceGroup
	for _, one := range list {
		namespace := one.Object.GetNamespace()
		at := slices.IndexFunc(found, func(g instanceGroup) bool { return g.Kind == one.Kind && g.Namespace == namespace })
		if at < 0 {
			at = len(found)
			found = append(found, instanceGroup{one.Kind, namespace, map[string]bool{}})
		}
		found[at].uids[string(one.Object.GetUID())] = true
	}
	return found
}

// DeletePermissions returns the permissions to export instances, to delete them and to wait until they are deleted.
func DeletePermissions(ctx context.Context, c *cluster.Cluster, list []Instance) ([]cluster.Permission, error) {
	var required []cluster.Permission
	for _, group := range groups(list) {
		more, err := c.PermissionsOn(ctx, group.Kind, group.Namespace, "list", "get", "delete", "watch")
		if err != nil {
			return nil, err
		}
		required = append(required, more...)
	}
	return required, nil
}

func (g *Guard) exportGroup(ctx context.Context, of instanceGroup, w *listWriter) error {
	for object, err := range g.Cluster.List(ctx, of.Kind, of.Namespace, metav1.ListOptions{}) {
		if err != nil {
			return err
		}
		if !of.uids[string(object.GetUID())] {
			continue
		}
		if err := w.add(of.Kind, object); err != nil {
			return err
		}
	}
	return nil
}

// listWriter writes the items of a List.
type listWriter struct {
	out       io.Writer
	separator string
	written   []Instance
}

func (w *listWriter) add(kind kube.GroupVersionKind, object *unstructured.Unstructured) error {
	digest, err := digestOf(object)
	if err != nil {
		return err
	}
	w.written = append(w.written, Instance{Kind: kind, Object: identity(object), digest: digest})
	data, err := json.Marshal(exportable(object).Object)
	if err != nil {
		return err
	}
	_, err = w.out.Write(append([]byte(w.separator), data...))
	w.separator = ",\n"
	return err
}

// identity has the fields of an object that deleting it takes.
func identity(object *unstructured.Unstructured) *unstructured.Unstructured {
	id := cluster.NewObject(object.GroupVersionKind(), object.GetNamespace(), object.GetName())
	id.SetUID(object.GetUID())
	id.SetResourceVersion(object.GetResourceVersion())
	return id
}

// exportable is an object in a form that can be created again. Owners are left out: they would be other objects by
// then, and the cluster deletes objects whose owner does not exist.
func exportable(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	for _, field := range []string{
		"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink",
		"deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences",
	} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	return object
}

// digestOf is a digest of the fields that users write: all except those that operators maintain for themselves.
func digestOf(object *unstructured.Unstructured) ([sha256.Size]byte, error) {
	object = exportable(object)
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "finalizers")
	data, err := json.Marshal(object.Object)
	return sha256.Sum256(data), err
}
