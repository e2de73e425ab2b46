package survey

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Interface finds the user interface of a Solution: the URLs of its Ingresses, or when none has an address, the Service behind which it
// is. The name of a Service chooses one and leaves the Ingresses out.
func (v *Survey) Interface(ctx context.Context, o Scope, service string) (*schema.UserInterface, error) {
	owned, err := v.Owned(ctx, o)
	if err != nil {
		return nil, err
	}
	found := &schema.UserInterface{Environment: o.Environment, Solution: o.Solution, URLs: []string{}}
	has := func(ingress *unstructured.Unstructured) (bool, error) { return owned.Has(ctx, ingress) }
	if service == "" {
		if found.URLs, err = v.ingressURLs(ctx, owned.Namespaces, metav1.ListOptions{}, has); err != nil || len(found.URLs) > 0 {
			return found, err
		}
	}
	chosen, err := v.interfaceService(ctx, owned, o, service)
	if err != nil {
		return nil, err
	}
	found.Backend, err = v.backend(ctx, chosen)
	return found, err
}

// interfaceService chooses the Service with a name, or the one that is known as the user interface, or the only one.
func (v *Survey) interfaceService(ctx context.Context, owned *Owned, o Scope, name string) (*corev1.Service, error) {
	var all, known []*corev1.Service
	for _, namespace := range owned.Namespaces {
		for object, err := range v.Cluster.List(ctx, cluster.ServiceKind, namespace, metav1.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			ours, err := owned.Has(ctx, object)
			if err != nil {
				return nil, err
			}
			service := &corev1.Service{}
			if !ours || Convert(object, service) != nil || len(service.Spec.Selector) == 0 || len(service.Spec.Ports) == 0 || name != "" && name != service.Name {
				continue
			}
			all = append(all, service)
			if service.Labels["app.kubernetes.io/component"] == "ui" || service.Name == o.Solution+"-ui" {
				known = append(known, service)
			}
		}
	}
	for _, candidates := range [][]*corev1.Service{known, all} {
		if len(candidates) == 1 {
			return candidates[0], nil
		}
		if len(candidates) > 1 {
			var names []string
			for _, s := range candidates {
				names = append(names, s.Namespace+"/"+s.Name)
			}
			slices.Sort(names)
			return nil, report.Errorf(report.Usage, "Solution %s has no Ingress and several Services: %s", o.Solution, strings.Join(names, ", ")).
				WithHint("choose one with --service NAME, and its namespace with --namespace")
		}
	}
	if name != "" {
		return nil, report.Errorf(report.NotFound, "Solution %s has no Service %s with ports and pods in environment %s", o.Solution, name, o.Environment)
	}
	return nil, report.Errorf(report.NotFound, "Solution %s has no user interface in environment %s: no Ingress and no Service", o.Solution, o.Environment)
}

// backend finds a ready pod of a Service and the port of it that people want to see: the one that is called as a page is, or the first.
func (v *Survey) backend(ctx context.Context, service *corev1.Service) (*schema.ServiceBackend, error) {
	port := service.Spec.Ports[0]
	for _, name := range []string{"https", "http", "web", "ui"} {
		if i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == name }); i >= 0 {
			port = service.Spec.Ports[i]
			break
		}
	}
	selector := labels.SelectorFromSet(service.Spec.Selector).String()
	for object, err := range v.Cluster.List(ctx, cluster.PodKind, service.Namespace, metav1.ListOptions{LabelSelector: selector}) {
		if err != nil {
			return nil, err
		}
		var pod corev1.Pod
		if Convert(object, &pod) != nil || pod.DeletionTimestamp != nil || !health.IsTrue(object, "Ready") {
			continue
		}
		if number := targetPort(&pod, port); number > 0 {
			return &schema.ServiceBackend{
				Namespace: service.Namespace, Service: service.Name, Pod: pod.Name, Port: int(number),
				TLS: port.Name == "https" || port.Port == 443 || port.AppProtocol != nil && *port.AppProtocol == "https",
			}, nil
		}
	}
	return nil, report.Errorf(report.Unavailable, "no pod of Service %s/%s is ready", service.Namespace, service.Name).
		WithHint("'%s' shows why", report.Run("deploy status"))
}

// targetPort is the port of a pod that a port of its Service leads to; 0 when the pod does not have it.
func targetPort(pod *corev1.Pod, port corev1.ServicePort) int32 {
	if port.TargetPort.Type == intstr.Int {
		return cmp.Or(port.TargetPort.IntVal, port.Port)
	}
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == port.TargetPort.StrVal {
				return p.ContainerPort
			}
		}
	}
	return 0
}
