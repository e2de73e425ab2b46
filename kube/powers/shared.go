package powers

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solutionctl/solutionctl/schema"
)

// judgedKinds are the kinds of the API server that are judged one by one, or that have no effect outside of their namespace. A kind that
// is not listed, such as one of a newer Kubernetes, is a power.
var judgedKinds = map[string][]string{
	"": {
		"ConfigMap", "Endpoints", "Event", "LimitRange", "Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim", "Pod", "PodTemplate",
		"ReplicationController", "ResourceQuota", "Secret", "Service", "ServiceAccount",
	},
	"apps":  {"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"},
	"batch": {"CronJob", "Job"}, "autoscaling": {"HorizontalPodAutoscaler"}, "policy": {"PodDisruptionBudget"},
	admissionGroup: {
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	},
	"apiextensions.k8s.io": {"CustomResourceDefinition"}, "apiregistration.k8s.io": {"APIService"},
	"coordination.k8s.io": {"Lease", "LeaseCandidate"}, "discovery.k8s.io": {"EndpointSlice"}, "events.k8s.io": {"Event"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"networking.k8s.io":            {"Ingress", "IngressClass", "NetworkPolicy"}, "node.k8s.io": {"RuntimeClass"},
	rbacGroup:           {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
	"resource.k8s.io":   {"ResourceClaim", "ResourceClaimTemplate"},
	"scheduling.k8s.io": {"PriorityClass"},
	"storage.k8s.io":    {"CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment"},
}

// setting judges kinds of the API server that are not judged by themselves.
func (j *judgement) setting(o Object) {
	group := groupOf(o)
	if !isBuiltIn(group) || group == "certificates.k8s.io" || slices.Contains(judgedKinds[group], o.GetKind()) {
		return
	}
	j.place(o, "").add(schema.PowerChangeOthers, schema.ReachEveryone, "change the cluster for others ("+o.GetKind()+")", group+"/"+o.GetKind())
}

// owners judges owners that the Solution does not have: one that waits for its parts cannot be deleted.
func (j *judgement) owners(o Object) {
	var owners []string
	for _, reference := range nested(o.Object, "metadata", "ownerReferences") {
		group, _, grouped := strings.Cut(stringIn(reference, "apiVersion"), "/")
		if !grouped || !j.ownsKind(group, stringIn(reference, "kind")) {
			owners = append(owners, stringIn(reference, "kind")+"/"+stringIn(reference, "name"))
		}
	}
	if len(owners) > 0 {
		owners = set(owners)
		j.place(o, "metadata.ownerReferences").add(schema.PowerChangeOthers, schema.ReachNamespaces, "be a part of objects that it does not own ("+enumerate(owners)+")", owners...)
	}
}

// selected are the pods that a selector is about.
type selected int

const (
	ownPods selected = iota
	foreignPods
	everyPod
)

// selects returns which pods of a namespace a selector is about. One that only excludes pods, or asks for a label with any value, is
// about those of others.
func (j *judgement) selects(o Object, content map[string]any) selected {
	selector, err := selectorOf(content)
	if err != nil || isOpen(selector) {
		return everyPod
	}
	own := j.podLabels[o.GetNamespace()]
	if !j.spend(refOf(o), len(own)) {
		return ownPods
	}
	matching, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return foreignPods
	}
	found := slices.DeleteFunc(slices.Clone(own), func(pod labels.Set) bool { return !matching.Matches(pod) })
	for _, r := range selector.MatchExpressions {
		for _, value := range r.Values { // each is one of its own, not only one of several
			if !j.spend(refOf(o), len(found)) {
				return ownPods
			}
			if r.Operator == metav1.LabelSelectorOpIn && !slices.ContainsFunc(found, func(pod labels.Set) bool { return pod[r.Key] == value }) {
				return foreignPods
			}
		}
	}
	if len(found) == 0 {
		return foreignPods
	}
	return ownPods
}

func selectorOf(content map[string]any) (*metav1.LabelSelector, error) {
	selector := &metav1.LabelSelector{}
	return selector, runtime.DefaultUnstructuredConverter.FromUnstructured(content, selector)
}

// isOpen reports whether a selector asks for no value of a label.
func isOpen(selector *metav1.LabelSelector) bool {
	names := func(r metav1.LabelSelectorRequirement) bool { return r.Operator == metav1.LabelSelectorOpIn }
	return len(selector.MatchLabels) == 0 && !slices.ContainsFunc(selector.MatchExpressions, names)
}

// selection adds the power of a selector, except in the namespace that only the Solution has.
func (p place) selection(name schema.PowerName, reach schema.Reach, what string, selector map[string]any) {
	namespace := p.o.GetNamespace()
	if namespace == p.owner.Solution+"-system" {
		return
	}
	switch p.selects(p.o, selector) {
	case everyPod:
		p.add(name, reach, what+" of every pod of namespace "+namespace, namespace)
	case foreignPods:
		p.show(name, reach, what+" of pods that the archive does not bring, in namespace "+namespace, namespace)
	case ownPods:
	}
}

// shared judges what is about pods and workloads by their labels or names.
func (j *judgement) shared(o Object) {
	switch o.GetKind() {
	case "PodDisruptionBudget":
		if selector := nestedMap(o.Object, "spec", "selector"); selector != nil { // without one it is about no pod
			j.place(o, "spec.selector").selection(schema.PowerDefaultForEveryone, schema.ReachEveryone, "hold back evictions", selector)
		}
	case "HorizontalPodAutoscaler", "VerticalPodAutoscaler":
		field := map[string]string{"HorizontalPodAutoscaler": "scaleTargetRef", "VerticalPodAutoscaler": "targetRef"}[o.GetKind()]
		target := nestedMap(o.Object, "spec", field)
		kind, name := stringIn(target, "kind"), stringIn(target, "name")
		group, _, grouped := strings.Cut(stringIn(target, "apiVersion"), "/")
		if !grouped {
			group = ""
		}
		if !j.ownsKind(group, kind) && !j.brings(group, kind, o.GetNamespace(), name) {
			j.place(o, "spec."+field).show(schema.PowerChangeOthers, schema.ReachNamespaces, "scale what the archive does not bring ("+kind+"/"+name+")", kind+"/"+name)
		}
	}
}
