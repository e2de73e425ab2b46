package deployer

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Export is where custom resources are written before anything that they may not survive. It hands the place to a
// function, once, and makes what was written durable: unless both succeed, nothing is deleted or changed.
type Export func(write func(io.Writer) error) error

// scope are the objects of a definition in a namespace, or with "" all of them.
type scope struct {
	definition *unstructured.Unstructured
	namespace  string
}

// exportAll exports all objects of these scopes.
func (d *Deployer) exportAll(ctx context.Context, scopes []scope, export Export) error {
	var all []customResource
	for _, s := range scopes {
		list, err := d.customResources(ctx, []*unstructured.Unstructured{s.definition}, s.namespace)
		if err != nil {
			return err
		}
		all = append(all, list...)
	}
	_, err := d.export(ctx, all, export)
	return err
}

// export writes complete objects, without what only the API server may set, as one List that kubectl can create again. It
// returns what it has written, as it was then.
func (d *Deployer) export(ctx context.Context, list []customResource, export Export) ([]customResource, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if export == nil {
		return nil, report.Errorf(report.DataLoss, "%s would be lost without an export", countText(list)).
			WithHint("run the command itself that was begun: it exports them first")
	}
	var w *listWriter
	err := export(func(out io.Writer) error {
		w = &listWriter{out: out, separator: "\n"}
		_, err := io.WriteString(out, `{"apiVersion": "v1", "kind": "List", "items": [`)
		for _, group := range groups(list) {
			if err == nil {
				err = d.exportGroup(ctx, group, w)
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

// resourceGroup are custom resources of one kind in one namespace: they are read together.
type resourceGroup struct {
	kind      kube.GroupVersionKind
	namespace string
	uids      map[string]bool
}

func groups(list []customResource) []resourceGroup {
	var found []resourceGroup
	for _, one := range list {
		namespace := one.object.GetNamespace()
		at := slices.IndexFunc(found, func(g resourceGroup) bool { return g.kind == one.kind && g.namespace == namespace })
		if at < 0 {
			at = len(found)
			found = append(found, resourceGroup{one.kind, namespace, map[string]bool{}})
		}
		found[at].uids[string(one.object.GetUID())] = true
	}
	return found
}

func (d *Deployer) exportGroup(ctx context.Context, of resourceGroup, w *listWriter) error {
	for object, err := range d.Cluster.List(ctx, of.kind, of.namespace, metav1.ListOptions{}) {
		if err != nil {
			return err
		}
		if !of.uids[string(object.GetUID())] {
			continue
		}
		if err := w.add(of.kind, object); err != nil {
			return err
		}
	}
	return nil
}

// listWriter writes the items of a List.
type listWriter struct {
	out       io.Writer
	separator string
	written   []customResource
}

func (w *listWriter) add(kind kube.GroupVersionKind, object *unstructured.Unstructured) error {
	digest, err := digestOf(object)
	if err != nil {
		return err
	}
	w.written = append(w.written, customResource{kind: kind, object: identity(object), digest: digest})
	data, err := json.Marshal(exportable(object).Object)
	if err != nil {
		return err
	}
	_, err = w.out.Write(append([]byte(w.separator), data...))
	w.separator = ",\n"
	return err
}

// identity is what deleting an object takes.
func identity(object *unstructured.Unstructured) *unstructured.Unstructured {
	id := &unstructured.Unstructured{}
	id.SetGroupVersionKind(object.GroupVersionKind())
	id.SetNamespace(object.GetNamespace())
	id.SetName(object.GetName())
	id.SetUID(object.GetUID())
	id.SetResourceVersion(object.GetResourceVersion())
	return id
}

// exportable is an object as it can be made again. Owners are left out: they would be other objects by then, and the
// cluster deletes what belongs to an object that is not there.
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

// digestOf tells whether what people wrote into an object has changed: all but what operators keep there for themselves.
func digestOf(object *unstructured.Unstructured) ([sha256.Size]byte, error) {
	object = exportable(object)
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "finalizers")
	data, err := json.Marshal(object.Object)
	return sha256.Sum256(data), err
}
