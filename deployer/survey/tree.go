package survey

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/kube/pods"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Tree returns the objects of a Solution down to the containers of its pods. It lists nothing but the pods: other objects are taken
// from the records.
func (v *Survey) Tree(ctx context.Context, o Scope) (*schema.ObjectTree, error) {
	owned, err := v.Owned(ctx, o)
	if err != nil {
		return nil, err
	}
	t := newTree(owned)
	result := &schema.ObjectTree{Environment: o.Environment, Solution: o.Solution}
	for _, namespace := range owned.Namespaces {
		err := t.addPods(ctx, namespace)
		if report.CodeOf(err) == report.Forbidden {
			_, rules, _ := strings.Cut(strings.Join(report.Hints(err), "\n"), "\n")
			result.Unseen = append(result.Unseen, schema.Unseen{What: err.Error(), Rules: rules})
		} else if err != nil {
			return nil, err
		}
	}
	result.Groups = t.groups()
	return result, nil
}

// tree is an [schema.ObjectTree] that grows.
type tree struct {
	*Owned
	keys      []record.Key
	parts     map[record.Key][]*schema.TreeObject
	workloads map[workload]*schema.TreeObject
	operated  map[string][]*schema.TreeObject // that operators have made, by namespace
}

func newTree(owned *Owned) *tree {
	t := &tree{
		Owned: owned, keys: slices.SortedFunc(maps.Keys(owned.objects), record.CompareKeys),
		parts: map[record.Key][]*schema.TreeObject{}, workloads: map[workload]*schema.TreeObject{}, operated: map[string][]*schema.TreeObject{},
	}
	for _, key := range t.keys {
		for _, o := range owned.objects[key] {
			object := &schema.TreeObject{ObjectRef: o.ObjectRef}
			t.parts[key] = append(t.parts[key], object)
			if pods.IsWorkload(o.APIVersion, o.Kind) {
				t.workloads[workload{o.Kind, o.Namespace, o.Name}] = object
			}
		}
	}
	return t
}

func (t *tree) addPods(ctx context.Context, namespace string) error {
	for object, err := range t.cluster.List(ctx, cluster.PodKind, namespace, metav1.ListOptions{}) {
		if err != nil {
			return err
		}
		ours, err := t.Has(ctx, object)
		if err != nil {
			return err
		}
		if !ours {
			continue
		}
		var pod corev1.Pod
		if err = Convert(object, &pod); err != nil {
			return err
		}
		maker := t.makerOf(object)
		maker.Pods = append(maker.Pods, health.PodTree(&pod))
	}
	return nil
}

// makerOf returns the workload that has made a pod: one of the records, or one that an operator has made.
func (t *tree) makerOf(pod *unstructured.Unstructured) *schema.TreeObject {
	kind, name := health.WorkloadOf(pod)
	if kind == "" {
		kind, name = pod.GetKind(), pod.GetName()
	}
	at := workload{kind, pod.GetNamespace(), name}
	if maker := t.workloads[at]; maker != nil {
		return maker
	}
	if i := strings.LastIndex(name, "-"); kind == "Job" && i > 0 {
		if maker := t.workloads[workload{"CronJob", at.namespace, name[:i]}]; maker != nil {
			return maker
		}
	}
	maker := &schema.TreeObject{ObjectRef: schema.ObjectRef{APIVersion: "v1", Kind: kind, Namespace: at.namespace, Name: name}}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		maker.APIVersion = owner.APIVersion // that of a ReplicaSet is also that of its Deployment
	}
	t.workloads[at] = maker
	t.operated[at.namespace] = append(t.operated[at.namespace], maker)
	return maker
}

// groups are the sorted parts of the tree.
func (t *tree) groups() []schema.ObjectGroup {
	groups := []schema.ObjectGroup{}
	for _, key := range t.keys {
		groups = append(groups, schema.ObjectGroup{Namespace: key.Namespace, Component: key.Component, Objects: sorted(t.parts[key])})
	}
	for _, namespace := range slices.Sorted(maps.Keys(t.operated)) {
		groups = append(groups, schema.ObjectGroup{Namespace: namespace, Operated: true, Objects: sorted(t.operated[namespace])})
	}
	return groups
}

// sorted are objects, workloads first, with their pods by name.
func sorted(objects []*schema.TreeObject) []schema.TreeObject {
	list := []schema.TreeObject{}
	for _, o := range objects {
		slices.SortFunc(o.Pods, func(a, b schema.TreePod) int { return cmp.Compare(a.Name, b.Name) })
		list = append(list, *o)
	}
	rank := func(o schema.TreeObject) int {
		if pods.IsWorkload(o.APIVersion, o.Kind) {
			return 0
		}
		return 1
	}
	slices.SortFunc(list, func(a, b schema.TreeObject) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list
}
