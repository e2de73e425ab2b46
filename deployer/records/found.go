package records

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// What is there of a Solution is what runs, not what is written down: a record can be lost, and MetalK8s deploys operators
// without one. This file finds both, ours by our label and MetalK8s' by the names and labels that it gives.

// Labels that MetalK8s, as this tool, puts on what belongs to an operator.
const (
	labelComponent = "app.kubernetes.io/component"
	labelPartOf    = "app.kubernetes.io/part-of"
	labelVersion   = "app.kubernetes.io/version"
	OperatorOf     = labelComponent + "=operator"
)

// OperatorName is the name of the Deployment of an operator, and of its account.
func OperatorName(solution string) string { return solution + "-operator" }

// OperatorsIn lists the Deployments of operators, whoever made them: in namespaces of environments, those that a selector of
// labels finds. A user who may not see the whole cluster sees those that they may.
func (r *Records) OperatorsIn(ctx context.Context, environments []metalk8s.Environment, selector string) (map[engine.Key]*unstructured.Unstructured, error) {
	inside := EnvironmentsByNamespace(environments)
	found := map[engine.Key]*unstructured.Unstructured{}
	list := func(namespace string) error {
		for object, err := range r.Cluster.ListMetadata(ctx, cluster.DeploymentKind, namespace, metav1.ListOptions{LabelSelector: selector}) {
			if err != nil {
				return err
			}
			solution, named := strings.CutSuffix(object.GetName(), "-operator")
			if _, ok := inside[object.GetNamespace()]; ok && named && object.GetLabels()[labelPartOf] == solution {
				found[engine.Key{Namespace: object.GetNamespace(), Name: solution}] = object
			}
		}
		return nil
	}
	err := list("")
	if report.CodeOf(err) != report.Forbidden {
		return found, err
	}
	for namespace := range inside {
		if err := list(namespace); err != nil && report.CodeOf(err) != report.Forbidden {
			return nil, err
		}
	}
	return found, nil
}

// VersionOn is the version that is written on an object, or else the one that its namespace asks for.
func VersionOn(object *unstructured.Unstructured, asked string) string {
	if v, err := schema.ParseVersion(object.GetLabels()[labelVersion]); err == nil {
		return v.String()
	}
	return asked
}

// Strays are the objects of a Solution in a namespace, or of its part for the whole cluster, that are on no record.
type Strays struct {
	engine.Key
	Ours    []engine.Found // that have our label, and that this program wrote
	Copies  []engine.Found // that have our label, and that another field manager wrote: they are not part of the Solution
	foreign []engine.Found // that MetalK8s' names and labels make an operator and what belongs to it
	rebuilt bool           // the record of some of what is ours can be rebuilt: it is lost
}

func (s *Strays) all() []engine.Found { return slices.Concat(s.Ours, s.foreign) }

// Empty tells that there are at most copies, for none as well.
func (s *Strays) Empty() bool { return s == nil || len(s.all()) == 0 }

// maxStrays bounds how many objects a sentence names.
const maxStrays = 20

// Text lists the objects, for a message.
func (s *Strays) Text() string { return textOf(s.all()) }

func textOf(objects []engine.Found) string {
	var names []string
	for _, f := range objects {
		if len(names) == maxStrays {
			names = append(names, fmt.Sprintf("and %d more", len(objects)-maxStrays))
			break
		}
		names = append(names, f.Deployed().String())
	}
	return strings.Join(names, ", ")
}

// CopiesText names the copies, and the command after which nothing takes them for a part of the Solution; "" without any.
func (s *Strays) CopiesText() string {
	if s == nil || len(s.Copies) == 0 {
		return ""
	}
	return fmt.Sprintf("kept, for they only have the label of Solution %s, and this program did not write them: %s ('%s' removes the label)",
		s.Name, textOf(s.Copies), unlabel(s.Copies))
}

// Unlabel is the command after which what this program wrote is not part of the Solution any more.
func (s *Strays) Unlabel() string { return unlabel(s.Ours) }

// unlabel is the command that takes the label of a release off objects of one namespace, or of the whole cluster.
func unlabel(objects []engine.Found) string {
	words := []string{"kubectl label"}
	if namespace := objects[0].Object.GetNamespace(); namespace != "" {
		words = append(words, "-n "+namespace)
	}
	for _, f := range objects[:min(len(objects), maxStrays)] {
		kind := f.Object.GroupVersionKind()
		words = append(words, strings.ToLower(kube.GroupKind{Group: kind.Group, Kind: kind.Kind}.String())+"/"+f.Object.GetName())
	}
	return strings.Join(append(words, engine.LabelRelease+"-"), " ")
}

// Lost finds what this program wrote for a release and is on no record, of some kinds: in namespaces, or without any in the whole
// cluster. What is there is looked for before the records are read, which read does: an object that is made meanwhile is on record
// before. A release of which there are only copies is not lost.
func (r *Records) Lost(ctx context.Context, kinds []kube.GroupVersionKind, namespaces []string, read func() ([]*engine.State, error)) (map[engine.Key]*Strays, error) {
	found, err := r.unrecorded(ctx, kinds, namespaces, read)
	maps.DeleteFunc(found, func(_ engine.Key, s *Strays) bool { return len(s.Ours) == 0 })
	return found, err
}

// unrecorded finds what has the label of a release and is on no record.
func (r *Records) unrecorded(ctx context.Context, kinds []kube.GroupVersionKind, namespaces []string, read func() ([]*engine.State, error)) (map[engine.Key]*Strays, error) {
	objects, err := r.Engine.Labelled(ctx, kinds, namespaces...)
	if err != nil {
		return nil, err
	}
	states, err := read()
	if err != nil {
		return nil, err
	}
	type place struct {
		kube.GroupKind
		namespace, name string
	}
	recorded := map[engine.Key]map[place]bool{}
	for _, s := range states {
		recorded[s.Key] = map[place]bool{}
		for _, o := range ObjectsOf(s) {
			recorded[s.Key][place{kube.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind(), o.Namespace, o.Name}] = true
		}
	}
	found := map[engine.Key]*Strays{}
	for _, f := range objects {
		kind := f.Object.GroupVersionKind()
		if recorded[f.Key][place{kind.GroupKind(), f.Object.GetNamespace(), f.Object.GetName()}] {
			continue
		}
		if found[f.Key] == nil { // the first one tells: it may have gone with its record meanwhile
			live, err := r.Cluster.GetMetadata(ctx, kind, f.Object.GetNamespace(), f.Object.GetName())
			if err != nil {
				return nil, err
			}
			if live == nil || live.GetUID() != f.Object.GetUID() || live.GetDeletionTimestamp() != nil {
				continue
			}
			found[f.Key] = &Strays{Key: f.Key}
		}
		if engine.IsManaged(f.Object) {
			found[f.Key].Ours = append(found[f.Key].Ours, f)
		} else {
			found[f.Key].Copies = append(found[f.Key].Copies, f)
		}
	}
	return found, nil
}

// StraysIn finds what there is of a Solution and its components in namespaces and on no record, and what only has its label. All kinds
// are looked through: what is left in a namespace is to be named.
func (r *Records) StraysIn(ctx context.Context, solution string, namespaces []metalk8s.Namespace) (map[string]*Strays, error) {
	names := metalk8s.NamesOf(namespaces)
	recorded := map[engine.Key]bool{}
	lost, err := r.unrecorded(ctx, engine.Kinds, names, func() ([]*engine.State, error) {
		states, err := r.looks(ctx, solution, names)
		for _, s := range states {
			_, recorded[s.Key] = DeployedVersion(s)
		}
		return states, err
	})
	if err != nil {
		return nil, err
	}
	found := map[string]*Strays{}
	for _, name := range names {
		key := engine.Key{Namespace: name, Name: solution}
		s := &Strays{Key: key}
		for _, of := range slices.SortedFunc(maps.Keys(lost), engine.CompareKeys) {
			if of.Namespace == name && of.Name == solution {
				s.Ours, s.Copies = append(s.Ours, lost[of].Ours...), append(s.Copies, lost[of].Copies...)
				s.rebuilt = s.rebuilt || len(lost[of].Ours) > 0 && !recorded[of]
			}
		}
		if s.foreign, err = r.byContract(ctx, key); err != nil {
			return nil, err
		}
		if len(s.all())+len(s.Copies) > 0 {
			found[name] = s
		}
	}
	return found, nil
}

// looks reads the records of a Solution and its components in namespaces, damaged ones as well. What should have one and has none
// is among them without anything.
func (r *Records) looks(ctx context.Context, solution string, namespaces []string) ([]*engine.State, error) {
	all, err := r.Engine.StatesIn(ctx, namespaces...)
	if err != nil {
		return nil, err
	}
	states := map[engine.Key]*engine.State{}
	for _, name := range namespaces {
		key := engine.Key{Namespace: name, Name: solution}
		states[key] = &engine.State{Key: key}
	}
	for _, s := range all {
		if s.Name != solution {
			continue
		}
		states[s.Key] = s
		for _, key := range componentKeys(s) {
			states[key] = cmp.Or(states[key], &engine.State{Key: key})
		}
	}
	return slices.SortedFunc(maps.Values(states), func(a, b *engine.State) int { return engine.CompareKeys(a.Key, b.Key) }), nil
}

// componentKeys are those of the components on the record of a Solution.
func componentKeys(s *engine.State) (keys []engine.Key) {
	for _, r := range s.Recent() {
		for _, c := range r.Components {
			keys = append(keys, engine.Key{Namespace: s.Namespace, Name: s.Name, Component: c.Name})
		}
	}
	return keys
}

// byContract finds the operator that MetalK8s deployed in a namespace and what it made for it, none where there is no such
// operator. ClusterRoles are not among it: MetalK8s shares them between environments.
func (r *Records) byContract(ctx context.Context, key engine.Key) ([]engine.Found, error) {
	name := OperatorName(key.Name)
	var found []engine.Found
	add := func(kind kube.GroupVersionKind, name string) error {
		object, err := r.Cluster.GetMetadata(ctx, kind, key.Namespace, name)
		if err == nil && object != nil && object.GetLabels()[engine.LabelRelease] == "" {
			object.SetGroupVersionKind(kind)
			found = append(found, engine.Found{Key: key, Object: object})
		}
		return err
	}
	if err := add(cluster.DeploymentKind, name); err != nil || len(found) == 0 {
		return nil, err
	}
	for _, more := range []struct {
		kind kube.GroupVersionKind
		name string
	}{
		{cluster.ConfigMapKind, name + "-config"}, {cluster.ServiceAccountKind, name}, {cluster.ServiceKind, name + "-metrics"},
	} {
		if err := add(more.kind, more.name); err != nil {
			return nil, err
		}
	}
	selector := fmt.Sprintf("%s,%s=%s,!%s", OperatorOf, labelPartOf, key.Name, engine.LabelRelease)
	for binding, err := range r.Cluster.List(ctx, roleBindingKind, key.Namespace, metav1.ListOptions{LabelSelector: selector}) {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(binding.GetName(), name+"-") {
			continue
		}
		binding.SetGroupVersionKind(roleBindingKind)
		found = append(found, engine.Found{Key: key, Object: binding})
		role, _, _ := unstructured.NestedStringMap(binding.Object, "roleRef")
		if role["kind"] == roleKind.Kind {
			if err := add(roleKind, role["name"]); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

var (
	roleKind        = kube.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}
	roleBindingKind = kube.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}
)

// Refuse is the error of a removal that would leave something running.
func (s *Strays) Refuse(environment string) error {
	refusal := report.Errorf(report.Conflict, "namespace %s has objects of Solution %s that are on no record: %s", s.Namespace, s.Name, s.Text())
	remove := report.Run("deploy remove", environment, s.Name).With("adopt")
	if len(s.Ours) == 0 {
		return refusal.WithHint("to remove all of it: %s", remove)
	}
	if !s.rebuilt {
		return refusal.WithHint("to remove all of it: %s\nto keep it, as no part of the Solution: %s", remove, s.Unlabel())
	}
	return refusal.WithHint("to remove all of it: %s\nto put on record again what this tool made: %s", remove, report.Run("deploy repair", environment, s.Name).With("records"))
}

// Deployed are the objects as a release takes them over.
func (s *Strays) Deployed() []schema.DeployedObject {
	if s == nil {
		return nil
	}
	var objects []schema.DeployedObject
	for _, f := range s.all() {
		objects = append(objects, f.Deployed())
	}
	return objects
}

// RefOf names an object that was read in a version of its kind.
func RefOf(kind kube.GroupVersionKind, object *unstructured.Unstructured) schema.ObjectRef {
	return schema.ObjectRef{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}
