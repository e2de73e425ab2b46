package preflight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	requests "k8s.io/component-helpers/resource"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// compared are the resources whose requests are compared with nodes.
var compared = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}

// fewNodes is the number of nodes that are compared with what runs on each before the pods of the whole cluster are listed.
const fewNodes = 8

// maxNodes bounds the clusters whose pods are listed for a plan.
const maxNodes = 1000

// running selects the pods that take room.
const running = "status.phase!=Succeeded,status.phase!=Failed"

// room checks that nodes have room for the pods. Most often the first nodes have it, and no others are read.
func room(ctx context.Context, c *cluster.Cluster, load *Load) (*schema.PreflightCheck, error) {
	if len(load.Pods) == 0 {
		return nil, nil
	}
	if check, err := roomOnFew(ctx, c, load); check != nil || err != nil {
		return check, err
	}
	var nodes []*corev1.Node
	for node, err := range each[corev1.Node](ctx, c, nodeKind, "", metav1.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		if nodes = append(nodes, node); len(nodes) > maxNodes && !load.isSurge() {
			return &schema.PreflightCheck{
				Name: schema.PreflightRoom, Result: schema.PreflightUnknown, Message: fmt.Sprintf("not checked: the cluster has more than %d nodes", maxNodes),
			}, nil
		}
	}
	r := newRooms(nodes)
	if load.isSurge() { // in most clusters, reading all pods takes longer than everything else about the plan
		return r.judge(load), nil
	}
	if err := r.occupyAll(ctx, c, running); err != nil {
		return nil, err
	}
	return r.judge(load), nil
}

// roomOnFew returns the check if a few of the first nodes have room for all pods, and else nil.
func roomOnFew(ctx context.Context, c *cluster.Cluster, load *Load) (*schema.PreflightCheck, error) {
	if slices.ContainsFunc(load.Pods, func(p Pods) bool { return p.OnEach }) {
		return nil, nil
	}
	var nodes rooms
	read := 0
	for node, err := range each[corev1.Node](ctx, c, nodeKind, "", metav1.ListOptions{Limit: 2 * fewNodes}) {
		if read++; err != nil || read > 2*fewNodes || len(nodes) == fewNodes {
			return nil, err
		}
		n := newRooms([]*corev1.Node{node})
		if !slices.ContainsFunc(load.Pods, func(p Pods) bool { return n[0].takes(&p) }) {
			continue
		}
		if !load.isSurge() {
			if err := n.occupyAll(ctx, c, "spec.nodeName="+node.Name+","+running); err != nil {
				return nil, err
			}
		}
		nodes = append(nodes, n...)
		if check := nodes.clone().judge(load); check.Result == schema.PreflightPass {
			return check, nil
		}
	}
	return nil, nil
}

// requesting returns a pod with the node and the requests of a running one. Reading all of thousands of pods takes ten times as long.
func requesting(spec map[string]any) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Spec.NodeName, _ = spec["nodeName"].(string)
	pod.Spec.Containers, pod.Spec.InitContainers = containersOf(spec["containers"]), containersOf(spec["initContainers"])
	pod.Spec.Overhead = quantitiesOf(spec["overhead"])
	if resources, whole := spec["resources"].(map[string]any); whole {
		pod.Spec.Resources = &corev1.ResourceRequirements{Requests: quantitiesOf(resources["requests"])}
	}
	return pod
}

func containersOf(list any) []corev1.Container {
	entries, _ := list.([]any)
	containers := make([]corev1.Container, len(entries))
	for i, entry := range entries {
		container, _ := entry.(map[string]any)
		resources, _ := container["resources"].(map[string]any)
		containers[i].Resources.Requests = quantitiesOf(resources["requests"])
		if policy, ok := container["restartPolicy"].(string); ok {
			containers[i].RestartPolicy = new(corev1.ContainerRestartPolicy(policy))
		}
	}
	return containers
}

// quantitiesOf reads those of the compared resources.
func quantitiesOf(list any) corev1.ResourceList {
	fields, _ := list.(map[string]any)
	quantities := corev1.ResourceList{}
	for _, name := range compared {
		if text, ok := fields[string(name)].(string); ok {
			if q, err := resource.ParseQuantity(text); err == nil {
				quantities[name] = q
			}
		}
	}
	return quantities
}

// rooms are the nodes with their free resources, by name.
type rooms []*nodeRoom

type nodeRoom struct {
	*corev1.Node
	free corev1.ResourceList
}

func newRooms(nodes []*corev1.Node) rooms {
	r := make(rooms, len(nodes))
	for i, node := range nodes {
		r[i] = &nodeRoom{node, node.Status.Allocatable.DeepCopy()}
	}
	slices.SortFunc(r, func(a, b *nodeRoom) int { return strings.Compare(a.Name, b.Name) })
	return r
}

// clone returns nodes with as much room.
func (r rooms) clone() rooms {
	copied := make(rooms, len(r))
	for i, n := range r {
		copied[i] = &nodeRoom{n.Node, n.free.DeepCopy()}
	}
	return copied
}

// occupyAll takes what the selected pods request from their nodes.
func (r rooms) occupyAll(ctx context.Context, c *cluster.Cluster, fields string) error {
	for object, err := range c.List(ctx, cluster.PodKind, "", metav1.ListOptions{FieldSelector: fields}) {
		if err != nil {
			return err
		}
		spec, _ := object.Object["spec"].(map[string]any)
		r.occupy(requesting(spec))
	}
	return nil
}

// occupy takes what a running pod requests from its node.
func (r rooms) occupy(pod *corev1.Pod) {
	i, found := slices.BinarySearchFunc(r, pod.Spec.NodeName, func(n *nodeRoom, name string) int { return strings.Compare(n.Name, name) })
	if found {
		r[i].take(requests.PodRequests(pod, requests.PodResourcesOptions{}))
	}
}

func (n *nodeRoom) take(list corev1.ResourceList) {
	for _, name := range compared {
		left, need := n.free[name], needOf(list, name)
		left.Sub(need)
		n.free[name] = left
	}
}

// needOf returns how much of a resource a pod takes.
func needOf(list corev1.ResourceList, name corev1.ResourceName) resource.Quantity {
	if name == corev1.ResourcePods {
		return *resource.NewQuantity(1, resource.DecimalSI)
	}
	return list[name]
}

// lacks returns the first resource of which there is less than a pod needs; "" if it fits.
func lacks(has, need corev1.ResourceList) corev1.ResourceName {
	for _, name := range compared {
		if left, wanted := has[name], needOf(need, name); wanted.Sign() > 0 && wanted.Cmp(left) > 0 {
			return name
		}
	}
	return ""
}

// takes reports whether the scheduler may put pods on a node at all: its state, its taints and the selector of the pods. Affinities are not
// looked at.
func (n *nodeRoom) takes(p *Pods) bool {
	if n.Spec.Unschedulable && !p.OnEach || p.Spec.NodeName != "" && p.Spec.NodeName != n.Name {
		return false
	}
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	if !ready && !p.OnEach || !labels.SelectorFromSet(p.Spec.NodeSelector).Matches(labels.Set(n.Labels)) {
		return false
	}
	return !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		ofNode := strings.HasPrefix(t.Key, "node.kubernetes.io/") // a DaemonSet tolerates these
		return t.Effect != corev1.TaintEffectPreferNoSchedule && (!p.OnEach || !ofNode) && !tolerates(p, &t)
	})
}

func tolerates(p *Pods, taint *corev1.Taint) bool {
	return slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool {
		switch {
		case t.Effect != "" && t.Effect != taint.Effect, t.Key != "" && t.Key != taint.Key, t.Key == "" && t.Operator != corev1.TolerationOpExists:
			return false
		default:
			return t.Operator == corev1.TolerationOpExists || t.Value == taint.Value
		}
	})
}

// judge places the pods, the largest first, each on the first node with room for it.
func (r rooms) judge(load *Load) *schema.PreflightCheck {
	check := &schema.PreflightCheck{Name: schema.PreflightRoom, Result: schema.PreflightPass}
	list := slices.Clone(load.Pods)
	slices.SortStableFunc(list, func(a, b Pods) int {
		return cmp.Or(-a.requests.Memory().Cmp(*b.requests.Memory()), -a.requests.Cpu().Cmp(*b.requests.Cpu()))
	})
	placed, left := 0, 0
	var problem string
	certain := false
	for i := range list {
		p := &list[i]
		done, why, never := r.place(p)
		placed += done
		if why == "" {
			continue
		}
		if !p.OnEach {
			left += p.Count - done
		}
		if problem == "" || never && !certain {
			problem, certain = why, never
		}
	}
	if problem == "" {
		check.Message = "room for " + report.Count(placed, "more pod")
		if load.isSurge() {
			check.Message = "nodes are large enough for the new pods"
		}
		return check
	}
	check.Result, check.Message = schema.PreflightWarning, problem
	switch {
	case certain:
		check.Result = schema.PreflightFail
	case left > 0:
		check.Message += fmt.Sprintf(": there is room for %d of %s", placed, report.Count(placed+left, "more pod"))
	}
	check.Hint = "free or add a node, or lower the requests with the values of the Solution"
	return check
}

// place puts pods on nodes and returns how many there is room for, and why not for more. Never is true when no node could take one, even if
// nothing else ran there.
func (r rooms) place(p *Pods) (placed int, why string, never bool) {
	var nodes rooms
	for _, n := range r {
		if n.takes(p) {
			nodes = append(nodes, n)
		}
	}
	switch {
	case len(nodes) == 0 && p.OnEach:
		return 0, "", false
	case len(nodes) == 0:
		return 0, p.Owner + ": no node takes its pods: none is ready, schedulable, and without taints that they do not tolerate", true
	case p.OnEach:
		return nodes.placeOnEach(p)
	}
	if !slices.ContainsFunc(nodes, func(n *nodeRoom) bool { return lacks(n.Status.Allocatable, p.requests) == "" }) {
		name := lacks(nodes[0].Status.Allocatable, p.requests)
		need := needOf(p.requests, name)
		return 0, fmt.Sprintf("%s: no node is large enough: a pod requests %s %s", p.Owner, need.String(), name), true
	}
	for placed < p.Count {
		i := slices.IndexFunc(nodes, func(n *nodeRoom) bool { return lacks(n.free, p.requests) == "" })
		if i < 0 {
			name := lacks(nodes[0].free, p.requests)
			need := needOf(p.requests, name)
			return placed, fmt.Sprintf("%s: no node has %s %s left", p.Owner, need.String(), name), false
		}
		nodes[i].take(p.requests)
		placed++
	}
	return placed, "", false
}

// placeOnEach puts one pod on each of the nodes.
func (r rooms) placeOnEach(p *Pods) (placed int, why string, never bool) {
	for _, n := range r {
		if name := lacks(n.free, p.requests); name != "" {
			need := needOf(p.requests, name)
			why = fmt.Sprintf("%s: node %s has no %s %s left", p.Owner, n.Name, need.String(), name)
			continue
		}
		n.take(p.requests)
		placed++
	}
	return placed, why, false
}
