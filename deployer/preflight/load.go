package preflight

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	requests "k8s.io/component-helpers/resource"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/kube/pods"
	"github.com/solutionctl/solutionctl/schema"
)

// Load has the pods and claims that plans add to a cluster.
type Load struct {
	Pods   []Pods
	Claims []Claim
	Frees  bool // pods end, which need less afterwards
}

// Pods are equal pods of a workload.
type Pods struct {
	Owner     string // Deployment prod/web
	Namespace string
	Count     int
	OnEach    bool // one on each node that they tolerate
	Surge     bool // beside those that they replace, for a moment
	Spec      corev1.PodSpec
	requests  corev1.ResourceList
	limits    corev1.ResourceList
}

// Claim is for equal volumes.
type Claim struct {
	Owner     string
	Namespace string
	Count     int
	Class     *string // nil for the default one
	Size      resource.Quantity
}

func (c Claim) class() string {
	if c.Class == nil {
		return ""
	}
	return *c.Class
}

// LoadOf returns what the objects of plans add: pods and claims of new workloads, and of those that change one pod more where Kubernetes
// starts a new pod before it ends an old one.
func LoadOf(objects []engine.Object) *Load {
	l := &Load{}
	for i := range objects {
		l.add(&objects[i])
	}
	return l
}

// add adds what an object needs. An object that Kubernetes would not read as its kind has been refused by the dry run.
func (l *Load) add(o *engine.Object) {
	creates := o.Action == schema.ActionCreate
	switch {
	case o.Desired == nil, o.Action == schema.ActionReplace:
		l.Frees = true
		return
	case !creates && o.Action != schema.ActionUpdate:
		return
	}
	if creates && o.Object.Kind == "PersistentVolumeClaim" && o.Object.APIVersion == "v1" {
		var claim corev1.PersistentVolumeClaim
		if convert(o.Desired.Object, &claim) {
			l.claim(o, &claim.Spec, 1)
		}
		return
	}
	template, path := pods.Template(o.Desired.Object)
	if template == nil || o.Object.Kind == "CronJob" || o.Object.Kind == "PodTemplate" {
		return
	}
	var pod corev1.PodTemplateSpec
	if !convert(template, &pod) || !creates && (len(path) == 0 || !changesPods(o)) {
		return
	}
	setRequests(&pod.Spec)
	p := Pods{Owner: o.Object.String(), Namespace: o.Object.Namespace, Count: countOf(o, creates), Spec: pod.Spec}
	p.OnEach, p.Surge = creates && o.Object.Kind == "DaemonSet", !creates
	if p.Count == 0 {
		return
	}
	whole := &corev1.Pod{Spec: pod.Spec}
	p.requests, p.limits = requests.PodRequests(whole, requests.PodResourcesOptions{}), requests.PodLimits(whole, requests.PodResourcesOptions{})
	l.Pods = append(l.Pods, p)
	if creates {
		l.claimsOf(o, &pod.Spec, p.Count)
	}
}

// changesPods reports whether a change is one of the template of a Deployment, which starts pods before it ends others.
func changesPods(o *engine.Object) bool {
	return o.Object.Kind == "Deployment" && slices.ContainsFunc(o.Fields, func(f schema.FieldChange) bool {
		return len(f.Path) > len(templatePath) && f.Path[:len(templatePath)] == templatePath
	})
}

const templatePath = "spec.template."

// countOf returns how many pods a new workload has, or how many more a changed Deployment needs before any of its pods ends.
func countOf(o *engine.Object, creates bool) int {
	spec, _, _ := unstructured.NestedMap(o.Desired.Object, "spec")
	n := int64(1)
	for _, field := range []string{"replicas", "parallelism"} {
		if value, found, err := unstructured.NestedInt64(spec, field); found && err == nil {
			n = value
		}
	}
	if creates {
		return int(n)
	}
	strategy, _, _ := unstructured.NestedMap(spec, "strategy", "rollingUpdate")
	kind, _, _ := unstructured.NestedString(spec, "strategy", "type")
	if n == 0 || kind == "Recreate" || share(strategy["maxUnavailable"], int(n), false) > 0 {
		return 0
	}
	return 1
}

// share is a number of pods, or a percentage of them, that a strategy names: 25 % by default.
func share(value any, of int, up bool) int {
	v := intstr.FromString("25%")
	switch value := value.(type) {
	case int64:
		v = intstr.FromInt32(int32(min(value, 1<<30)))
	case string:
		v = intstr.FromString(value)
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, of, up)
	if err != nil {
		return 0
	}
	return n
}

// claimsOf adds the claims that a new workload makes.
func (l *Load) claimsOf(o *engine.Object, spec *corev1.PodSpec, count int) {
	for _, volume := range spec.Volumes {
		if volume.Ephemeral != nil && volume.Ephemeral.VolumeClaimTemplate != nil {
			l.claim(o, &volume.Ephemeral.VolumeClaimTemplate.Spec, count)
		}
	}
	if o.Object.Kind != "StatefulSet" {
		return
	}
	templates, _, _ := unstructured.NestedSlice(o.Desired.Object, "spec", "volumeClaimTemplates")
	for _, template := range templates {
		var claim corev1.PersistentVolumeClaim
		if fields, ok := template.(map[string]any); ok && convert(fields, &claim) {
			l.claim(o, &claim.Spec, count)
		}
	}
}

func (l *Load) claim(o *engine.Object, spec *corev1.PersistentVolumeClaimSpec, count int) {
	if spec.VolumeName != "" {
		return
	}
	l.Claims = append(l.Claims, Claim{
		Owner: o.Object.String(), Namespace: o.Object.Namespace, Count: count, Class: spec.StorageClassName, Size: *spec.Resources.Requests.Storage(),
	})
}

// isSurge reports whether no pods are added for good.
func (l *Load) isSurge() bool {
	return !slices.ContainsFunc(l.Pods, func(p Pods) bool { return !p.Surge })
}

// claims returns how many claims there are.
func (l *Load) claims() (n int) {
	for _, c := range l.Claims {
		n += c.Count
	}
	return n
}

// namespaces returns the namespaces that get something, sorted.
func (l *Load) namespaces() []string { return slices.Sorted(maps.Keys(l.needs())) }

// needs returns what is added to each namespace, by the names that quotas have for it.
func (l *Load) needs() map[string]corev1.ResourceList {
	needs := map[string]corev1.ResourceList{}
	add := func(namespace string, name corev1.ResourceName, value resource.Quantity, times int) {
		if needs[namespace] == nil {
			needs[namespace] = corev1.ResourceList{}
		}
		total := needs[namespace][name]
		value = value.DeepCopy()
		value.Mul(int64(times))
		total.Add(value)
		needs[namespace][name] = total
	}
	one := *resource.NewQuantity(1, resource.DecimalSI)
	for _, p := range l.Pods {
		add(p.Namespace, corev1.ResourcePods, one, p.Count)
		for name, value := range p.requests {
			if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
				add(p.Namespace, name, value, p.Count)
			}
			add(p.Namespace, "requests."+name, value, p.Count)
		}
		for name, value := range p.limits {
			add(p.Namespace, "limits."+name, value, p.Count)
		}
	}
	for _, c := range l.Claims {
		add(c.Namespace, corev1.ResourcePersistentVolumeClaims, one, c.Count)
		add(c.Namespace, corev1.ResourceRequestsStorage, c.Size, c.Count)
	}
	return needs
}

// setRequests sets requests that are left out to the limits, as the API server does.
func setRequests(spec *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			c := &containers[i].Resources
			for name, limit := range c.Limits {
				if _, set := c.Requests[name]; set {
					continue
				}
				if c.Requests == nil {
					c.Requests = corev1.ResourceList{}
				}
				c.Requests[name] = limit
			}
		}
	}
}

// convert reads an object as a type.
func convert(object map[string]any, into any) bool {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object, into) == nil
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(list))
}
