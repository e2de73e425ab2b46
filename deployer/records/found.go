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
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// A record can be lost, and MetalK8s deploys operators without one. This file finds both by what runs in the cluster:
// ours by our label, those of MetalK8s by the names and labels of its contract.

// Labels of objects that belong to an operator, as MetalK8s and this program set them.
const (
	labelComponent = "app.kubernetes.io/component"
	labelPartOf    = "app.kubernetes.io/part-of"
	labelVersion   = "app.kubernetes.io/version"
	OperatorOf     = labelComponent + "=operator"
)

// OperatorName is the name of the Deployment of an operator, and of its account.
func OperatorName(solution string) string { return solution + "-operator" }

// OperatorsIn lists the Deployments of operators in namespaces of environments that match a label selector, those of
// MetalK8s included. A user without permission to list the whole cluster gets those of the namespaces that they can
// list.
func (r *Records) OperatorsIn(ctx context.Context, environments []metalk8s.Environment, selector string) (map[record.Key]*unstructured.Unstructured, error) {
	inside := EnvironmentsByNamespace(environments)
	found := map[record.Key]*unstructured.Unstructured{}
	list := func(namespace string) error {
		for object, err := range r.Cluster.ListMetadata(ctx, cluster.DeploymentKind, namespace, metav1.ListOptions{LabelSelector: selector}) {
			if err != nil {
				return err
			}
			solution, named := strings.CutSuffix(object.GetName(), "-operator")
			if _, ok := inside[object.GetNamespace()]; ok && named && object.GetLabels()[labelPartOf] == solution {
				found[record.Key{Namespace: object.GetNamespace(), Name: solution}] = object
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

// Unrecorded are the objects of a Solution in a namespace, or of its cluster-wide part, that are on no record.
type Unrecorded struct {
	record.Key
	Ours    []engine.Found // that have our label, and that this program wrote
	Copies  []engine.Found // that have our label, and that another field manager wrote: they are not part of the Solution
	foreign []engine.Found // an operator, and the objects that belong to it, by MetalK8s' names and labels
	shared  []engine.Found // cluster-wide objects that MetalK8s made for the operators of all environments: they are not part of the Solution here
	rebuilt bool           // the record of some of our objects is lost and can be rebuilt
}

func (s *Unrecorded) all() []engine.Found { return slices.Concat(s.Ours, s.foreign) }

// Empty reports whether there are no objects, except copies. A nil value is empty.
func (s *Unrecorded) Empty() bool { return s == nil || len(s.all()) == 0 }

// maxNamed bounds how many objects a sentence names.
const maxNamed = 20

// Text lists the objects, for a message.
func (s *Unrecorded) Text() string { return textOf(s.all()) }

func textOf(objects []engine.Found) string {
	var names []string
	for _, f := range objects {
		if len(names) == maxNamed {
			names = append(names, fmt.Sprintf("and %d more", len(objects)-maxNamed))
			break
		}
		names = append(names, f.Deployed().String())
	}
	return strings.Join(names, ", ")
}

// CopiesText names the copies, and the command after which nothing takes them for a part of the Solution; "" without any.
func (s *Unrecorded) CopiesText() string {
	if s == nil || len(s.Copies) == 0 {
		return ""
	}
	return fmt.Sprintf("kept, for they only have the label of Solution %s, and this program did not write them: %s ('%s' removes the label)",
		s.Name, textOf(s.Copies), unlabel(s.Copies))
}

// SharedText names the cluster-wide objects that stay, and the command that deletes them; "" without any.
func (s *Unrecorded) SharedText() string {
	if s == nil || len(s.shared) == 0 {
		return ""
	}
	words := []string{"kubectl delete"}
	for _, f := range s.shared {
		words = append(words, strings.ToLower(f.Object.GetKind())+"/"+f.Object.GetName())
	}
	return fmt.Sprintf("kept, for MetalK8s makes them once for all environments: %s (delete them after the last environment: '%s')",
		textOf(s.shared), strings.Join(words, " "))
}

// Unlabel is the command after which the objects of this program are not part of the Solution any more.
func (s *Unrecorded) Unlabel() string { return unlabel(s.Ours) }

// unlabel is the command that takes the label of a release off objects of one namespace, or of the whole cluster.
func unlabel(objects []engine.Found) string {
	words := []string{"kubectl label"}
	if namespace := objects[0].Object.GetNamespace(); namespace != "" {
		words = append(words, "-n "+namespace)
	}
	for _, f := range objects[:min(len(objects), maxNamed)] {
		kind := f.Object.GroupVersionKind()
		words = append(words, strings.ToLower(kube.GroupKind{Group: kind.Group, Kind: kind.Kind}.String())+"/"+f.Object.GetName())
	}
	return strings.Join(append(words, schema.LabelRelease+"-"), " ")
}

// Lost finds releases that this program wrote and that are on no record, among objects with the label of a release. They were listed before
// the records: an object that is created in between is recorded before it exists. A release of which only copies exist is not lost.
func (r *Records) Lost(ctx context.Context, objects []engine.Found, states []*record.State) (map[record.Key]*Unrecorded, error) {
	found, err := r.unrecorded(ctx, objects, states)
	maps.DeleteFunc(found, func(_ record.Key, s *Unrecorded) bool { return len(s.Ours) == 0 })
	return found, err
}

// unrecorded finds the objects with the label of a release that are on no record.
func (r *Records) unrecorded(ctx context.Context, objects []engine.Found, states []*record.State) (map[record.Key]*Unrecorded, error) {
	recorded := map[record.Key]map[record.ObjectKey]bool{}
	for _, s := range states {
		recorded[s.Key] = map[record.ObjectKey]bool{}
		for _, o := range ObjectsOf(s) {
			recorded[s.Key][record.KeyOf(o.ObjectRef)] = true
		}
	}
	found := map[record.Key]*Unrecorded{}
	for _, f := range objects {
		kind := f.Object.GroupVersionKind()
		if recorded[f.Key][record.KeyOf(RefOf(kind, f.Object))] {
			continue
		}
		if found[f.Key] == nil { // check the first object: it may have been deleted, together with its record, in the meantime
			live, err := r.Cluster.GetMetadata(ctx, kind, f.Object.GetNamespace(), f.Object.GetName())
			if err != nil {
				return nil, err
			}
			if live == nil || live.GetUID() != f.Object.GetUID() || live.GetDeletionTimestamp() != nil {
				continue
			}
			found[f.Key] = &Unrecorded{Key: f.Key}
		}
		if engine.IsManaged(f.Object) {
			found[f.Key].Ours = append(found[f.Key].Ours, f)
		} else {
			found[f.Key].Copies = append(found[f.Key].Copies, f)
		}
	}
	return found, nil
}

// ListUnrecorded lists, by namespace, the objects of a Solution and its components that are on no record, and copies.
// It looks through all kinds, because it names each remaining object.
func (r *Records) ListUnrecorded(ctx context.Context, solution string, namespaces []metalk8s.Namespace) (map[string]*Unrecorded, error) {
	names := metalk8s.NamesOf(namespaces)
	objects, err := r.Engine.Labelled(ctx, engine.Kinds, names...)
	if err != nil {
		return nil, err
	}
	states, err := r.recordsOf(ctx, solution, names)
	if err != nil {
		return nil, err
	}
	lost, err := r.unrecorded(ctx, objects, states)
	if err != nil {
		return nil, err
	}
	recorded := map[record.Key]bool{}
	for _, s := range states {
		_, recorded[s.Key] = DeployedVersion(s)
	}
	found := map[string]*Unrecorded{}
	for _, name := range names {
		key := record.Key{Namespace: name, Name: solution}
		s := &Unrecorded{Key: key}
		for _, of := range slices.SortedFunc(maps.Keys(lost), record.CompareKeys) {
			if of.Namespace == name && of.Name == solution {
				s.Ours, s.Copies = append(s.Ours, lost[of].Ours...), append(s.Copies, lost[of].Copies...)
				s.rebuilt = s.rebuilt || len(lost[of].Ours) > 0 && !recorded[of]
			}
		}
		if err = r.byContract(ctx, s); err != nil {
			return nil, err
		}
		if len(s.all())+len(s.Copies) > 0 {
			found[name] = s
		}
	}
	return found, nil
}

// recordsOf reads the records of a Solution and its components in namespaces, including damaged ones. A missing record is
// returned as an empty one.
func (r *Records) recordsOf(ctx context.Context, solution string, namespaces []string) ([]*record.State, error) {
	all, err := r.Engine.StatesIn(ctx, namespaces...)
	if err != nil {
		return nil, err
	}
	states := map[record.Key]*record.State{}
	for _, name := range namespaces {
		key := record.Key{Namespace: name, Name: solution}
		states[key] = &record.State{Key: key}
	}
	for _, s := range all {
		if s.Name != solution {
			continue
		}
		states[s.Key] = s
		for _, key := range componentKeys(s) {
			states[key] = cmp.Or(states[key], &record.State{Key: key})
		}
	}
	return slices.SortedFunc(maps.Values(states), func(a, b *record.State) int { return record.CompareKeys(a.Key, b.Key) }), nil
}

// componentKeys returns the keys of the components on the record of a Solution.
func componentKeys(s *record.State) (keys []record.Key) {
	for _, r := range s.Recent() {
		for _, c := range r.Components {
			keys = append(keys, record.Key{Namespace: s.Namespace, Name: s.Name, Component: c.Name})
		}
	}
	return keys
}

// byContract finds the operator that MetalK8s deployed in a namespace, and the objects that it made for the operator. Kinds of optional APIs and
// cluster-wide kinds that the user cannot read are left out. The ClusterRoles of role.yaml are not included: MetalK8s shares them between environments.
func (r *Records) byContract(ctx context.Context, s *Unrecorded) error {
	name := OperatorName(s.Name)
	add := func(list *[]engine.Found, kind kube.GroupVersionKind, namespace, name string) error {
		object, err := r.Cluster.GetMetadata(ctx, kind, namespace, name)
		if err == nil && object != nil && object.GetLabels()[schema.LabelRelease] == "" {
			*list = append(*list, engine.Found{Key: s.Key, Object: object})
		}
		return err
	}
	if err := add(&s.foreign, cluster.DeploymentKind, s.Namespace, name); err != nil || len(s.foreign) == 0 {
		return err
	}
	for _, more := range []struct {
		kind     kube.GroupVersionKind
		name     string
		list     *[]engine.Found
		optional bool
	}{
		{cluster.ConfigMapKind, name + "-config", &s.foreign, false},
		{cluster.ServiceAccountKind, name, &s.foreign, false},
		{cluster.ServiceKind, name + "-metrics", &s.foreign, false},
		{serviceMonitorKind, name, &s.foreign, true},
		{issuerKind, name + "-metrics-issuer", &s.foreign, true},
		{certificateKind, name + "-metrics-cert", &s.foreign, true},
		{clusterRoleBindingKind, name + "-metrics-auth", &s.shared, true},
		{clusterRoleKind, name + "-metrics-auth", &s.shared, true},
	} {
		namespace := s.Namespace
		if more.list == &s.shared {
			namespace = ""
		}
		if err := add(more.list, more.kind, namespace, more.name); err != nil && (!more.optional || report.CodeOf(err) != report.Forbidden) {
			return err
		}
	}
	selector := fmt.Sprintf("%s,%s=%s,!%s", OperatorOf, labelPartOf, s.Name, schema.LabelRelease)
	for binding, err := range r.Cluster.List(ctx, roleBindingKind, s.Namespace, metav1.ListOptions{LabelSelector: selector}) {
		if err != nil {
			return err
		}
		if !strings.HasPrefix(binding.GetName(), name+"-") {
			continue
		}
		s.foreign = append(s.foreign, engine.Found{Key: s.Key, Object: binding})
		role, _, _ := unstructured.NestedStringMap(binding.Object, "roleRef")
		if role["kind"] == roleKind.Kind {
			if err := add(&s.foreign, roleKind, s.Namespace, role["name"]); err != nil {
				return err
			}
		}
	}
	return nil
}

var (
	roleKind               = kube.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}
	roleBindingKind        = kube.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}
	clusterRoleKind        = kube.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	clusterRoleBindingKind = kube.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"}
	serviceMonitorKind     = kube.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}
	issuerKind             = kube.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Issuer"}
	certificateKind        = kube.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}
)

// Refuse is the error of a removal that would leave something running. The removal is from one namespace only, or for "" from all of them.
func (s *Unrecorded) Refuse(environment, only string) error {
	refusal := report.Errorf(report.Conflict, "namespace %s has objects of Solution %s that are on no record: %s", s.Namespace, s.Name, s.Text())
	remove := report.Run("deploy remove", environment, s.Name).In(only).With("adopt")
	if len(s.Ours) == 0 {
		return refusal.WithHint("to remove all of it: %s", remove)
	}
	if !s.rebuilt {
		return refusal.WithHint("to remove all of it: %s\nto keep it, as no part of the Solution: %s", remove, s.Unlabel())
	}
	return refusal.WithHint("to remove all of it: %s\nto put on record again what this tool made: %s", remove, report.Run("deploy repair", environment, s.Name).With("records"))
}

// Deployed lists the objects in the form in which a release adopts them.
func (s *Unrecorded) Deployed() []schema.DeployedObject {
	if s == nil {
		return nil
	}
	var objects []schema.DeployedObject
	for _, f := range s.all() {
		objects = append(objects, f.Deployed())
	}
	return objects
}

// RefOf returns the reference to an object, with the API version of kind.
func RefOf(kind kube.GroupVersionKind, object *unstructured.Unstructured) schema.ObjectRef {
	return schema.ObjectRef{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}
