package survey

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Scope names a part of what is deployed in an environment.
type Scope struct {
	Environment string
	Namespace   string // one of the environment's; "" is all of them that the user may see
	Solution    string // "" is every Solution
	Component   string // of the Solution; "" is all of it
}

// Owned are the objects that were deployed for a [Scope], and whatever belongs to them: the ReplicaSets and pods of a
// Deployment, and what an operator makes for the custom resources of its Solution. Its methods may be called by several goroutines.
type Owned struct {
	// Namespaces can have such objects. They are sorted.
	Namespaces []string

	cluster *cluster.Cluster
	uids    map[types.UID]bool
	names   map[record.ObjectKey]bool
	groups  map[string]bool // of the custom resources of the Solutions
	objects map[record.Key][]schema.DeployedObject

	mu     sync.Mutex
	owners map[ownerKey]bool // what is known of objects that own others
}

// ownerKey identifies a reference to an object. Its writer may have combined the UID with another name.
type ownerKey struct {
	kind            kube.GroupVersionKind
	namespace, name string
	uid             types.UID
}

// Owned finds what is deployed. It reads the records and, for users who are not allowed to read them, labels. The part of a
// Solution for the whole cluster is among it. A Solution that is not deployed is an error, [report.NotFound].
func (v *Survey) Owned(ctx context.Context, o Scope) (*Owned, error) {
	e, _, err := v.Records.Documents.Visible(ctx, o.Environment, o.Namespace)
	if err != nil {
		return nil, err
	}
	namespaces := e.Names()
	if o.Namespace != "" {
		n, ok := e.Namespace(o.Namespace)
		if !ok {
			return nil, report.Errorf(report.NotFound, "namespace %s is not part of environment %s", o.Namespace, o.Environment)
		}
		namespaces = []string{n.Name}
	}
	d := &Owned{cluster: v.Cluster, uids: map[types.UID]bool{}, names: map[record.ObjectKey]bool{}, groups: map[string]bool{}, objects: map[record.Key][]schema.DeployedObject{}, owners: map[ownerKey]bool{}}
	found, err := v.deployedStates(ctx, namespaces)
	if err != nil {
		return nil, err
	}
	there, components := map[string]bool{}, map[string]bool{}
	for key := range found {
		if key.Namespace != "" {
			there[key.Name] = true
		}
	}
	in := map[string]bool{}
	for key, objects := range found {
		if o.Solution == "" && !there[key.Name] || o.Solution != "" && key.Name != o.Solution {
			continue
		}
		components[key.Component] = true
		if o.Component != "" && key.Component != o.Component {
			continue
		}
		d.objects[key] = objects
		for _, object := range objects {
			d.add(object)
			in[object.Namespace] = true
		}
	}
	if err = o.check(there, components, namespaces, e); err != nil {
		return nil, err
	}
	if len(d.groups) > 0 {
		for _, namespace := range namespaces {
			in[namespace] = true
		}
	}
	delete(in, "")
	d.Namespaces = slices.Sorted(maps.Keys(in))
	return d, nil
}

// check refuses a selection of nothing.
func (o Scope) check(there, components map[string]bool, namespaces []string, e *metalk8s.Environment) error {
	switch {
	case o.Solution == "":
		return nil
	case len(components) == 0:
		err := report.Errorf(report.NotFound, "Solution %s is not deployed in environment %s", o.Solution, e.Name)
		if len(there) > 0 {
			return err.WithHint("deployed there: %s", strings.Join(slices.Sorted(maps.Keys(there)), ", "))
		}
		return err.WithHint("'%s' lists what is deployed", report.Run("deploy status"))
	case o.Component != "" && !components[o.Component]:
		delete(components, "")
		err := report.Errorf(report.NotFound, "Solution %s has no component %s in namespaces %s", o.Solution, o.Component, strings.Join(namespaces, ", "))
		if len(components) > 0 {
			return err.WithHint("it has: %s", strings.Join(slices.Sorted(maps.Keys(components)), ", "))
		}
		return err.WithHint("it has no components: leave out --component")
	}
	return nil
}

// deployedStates are the objects of the releases in namespaces and in the whole cluster.
func (v *Survey) deployedStates(ctx context.Context, namespaces []string) (map[record.Key][]schema.DeployedObject, error) {
	found := map[record.Key][]schema.DeployedObject{}
	states, err := v.Records.Engine.StatesIn(ctx, append(slices.Clone(namespaces), "")...)
	if err == nil {
		for _, s := range states {
			if _, deployed := records.DeployedVersion(s); deployed {
				found[s.Key] = inventory(s)
			}
		}
		return found, nil
	}
	if report.CodeOf(err) != report.Forbidden {
		return nil, err
	}
	labelled, err := v.Records.Engine.Labelled(ctx, workloads(), namespaces...)
	for _, f := range labelled {
		found[f.Key] = append(found[f.Key], f.Deployed())
	}
	return found, err
}

func (d *Owned) add(object schema.DeployedObject) {
	if object.UID != "" {
		d.uids[types.UID(object.UID)] = true
	}
	key := record.KeyOf(object.ObjectRef)
	d.names[key] = true
	if key.GroupKind == cluster.DefinitionKind.GroupKind() {
		_, group, _ := strings.Cut(object.Name, ".")
		d.groups[group] = true
	}
}

// Names reports whether an object of this name was deployed, or is a custom resource of the Solution.
func (d *Owned) Names(kind kube.GroupKind, namespace, name string) bool {
	return d.groups[kind.Group] || d.names[record.ObjectKey{GroupKind: kind, Namespace: namespace, Name: name}]
}

// maxOwners bounds how many owners of owners are looked at.
const maxOwners = 8

// Has reports whether an object was deployed or belongs to one that was. Owners that the user is not allowed to read belong to
// nothing.
func (d *Owned) Has(ctx context.Context, object *unstructured.Unstructured) (bool, error) {
	return d.has(ctx, object, maxOwners)
}

func (d *Owned) has(ctx context.Context, object *unstructured.Unstructured, depth int) (bool, error) {
	if d.uids[object.GetUID()] || d.Names(object.GroupVersionKind().GroupKind(), object.GetNamespace(), object.GetName()) {
		return true, nil
	}
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil || depth == 0 {
		return false, nil
	}
	return d.owns(ctx, owner, object.GetNamespace(), depth)
}

// owns reports whether an owner was deployed, or belongs to a deployed object.
func (d *Owned) owns(ctx context.Context, owner *metav1.OwnerReference, namespace string, depth int) (bool, error) {
	kind := kube.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
	if d.uids[owner.UID] || d.groups[kind.Group] {
		return true, nil
	}
	key := ownerKey{kind, namespace, owner.Name, owner.UID}
	d.mu.Lock()
	known, ok := d.owners[key]
	d.mu.Unlock()
	if ok {
		return known, nil
	}
	object, err := d.cluster.Get(ctx, kind, namespace, owner.Name)
	unknown := []report.Code{report.Forbidden, report.NotFound, report.Invalid} // the kind is gone, or cannot be read
	if err != nil && !slices.Contains(unknown, report.CodeOf(err)) {
		return false, fmt.Errorf("owner of an object: %w", err)
	}
	if err == nil && object != nil && object.GetUID() == owner.UID {
		if known, err = d.has(ctx, object, depth-1); err != nil {
			return false, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owners[key] = known
	return known, nil
}

// Convert reads an object of the cluster into its type.
func Convert(object *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return report.Errorf(report.Invalid, "%s: %w", cluster.NameOf(object), err)
	}
	return nil
}
