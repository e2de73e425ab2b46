package render

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/kube/pods"
	"github.com/solutionctl/solutionctl/schema"
)

// ui renders the user interface: the objects of ui/, and those that every user interface needs and the archive leaves out.
func (r *renderer) ui() error {
	objects, err := r.read("ui")
	if err != nil || len(objects) == 0 {
		return err
	}
	for _, o := range objects {
		if err := r.place(o); err != nil {
			return err
		}
	}
	name := r.name + "-ui"
	if !has(objects, "", "ConfigMap") {
		if err := r.add(generated, r.uiConfig(name)); err != nil {
			return err
		}
	}
	service := first(objects, "", "Service")
	if service == nil {
		if workload := first(objects, "apps", "Deployment", "StatefulSet", "DaemonSet"); workload != nil {
			service = r.uiService(name, workload)
			if err := r.add(generated, service); err != nil {
				return err
			}
		}
	}
	if service == nil || has(objects, "networking.k8s.io", "Ingress") || has(objects, "gateway.networking.k8s.io", "HTTPRoute") {
		return nil
	}
	return r.add(generated, r.uiIngress(name, service))
}

// read returns the objects of a directory with the registry and the digests of images filled in.
func (r *renderer) read(dir string) ([]object, error) { return r.readFiles(r.p.manifests(dir)) }

func (r *renderer) readFiles(files []string) ([]object, error) {
	objects, err := r.p.objectsIn(files, r.repository(r.p))
	if err != nil || len(objects) == 0 {
		return nil, err
	}
	pinner := r.newPinner()
	for _, o := range objects {
		if err := pinner.pin(o); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

func has(objects []object, group string, kinds ...string) bool {
	return first(objects, group, kinds...) != nil
}

func first(objects []object, group string, kinds ...string) *unstructured.Unstructured {
	i := slices.IndexFunc(objects, func(o object) bool { return o.is(group, kinds...) })
	if i < 0 {
		return nil
	}
	return objects[i].Unstructured
}

// uiPath returns the path of the user interface behind the cluster's proxy.
func (r *renderer) uiPath() string {
	path := "/env/" + r.environmentName()
	if r.environmentName() != r.s.Namespace { // an environment may have the Solution in several namespaces
		path += "/" + r.s.Namespace
	}
	return path + "/" + r.name
}

// uiConfig is the configuration that user interfaces of MetalK8s read: where the API server is and how things look.
func (r *renderer) uiConfig(name string) *unstructured.Unstructured {
	config := compactJSON(map[string]any{
		"url": "/api/kubernetes", "environment": r.environmentName(), "namespace": r.s.Namespace, "path": r.uiPath(),
		"solution": r.name, "version": r.p.Solution.Spec.Version,
	})
	theme := compactJSON(map[string]any{"brand": map[string]any{"primary": "#2b3a4a", "secondary": "#d9822b"}})
	return newKubernetesObject("v1", "ConfigMap", r.s.Namespace, name, r.labels(name, "ui"),
		map[string]any{"data": map[string]any{"config.json": config, "theme.json": theme}})
}

func (r *renderer) uiService(name string, workload *unstructured.Unstructured) *unstructured.Unstructured {
	selector, _, _ := unstructured.NestedMap(workload.Object, "spec", "selector", "matchLabels")
	return newKubernetesObject("v1", "Service", r.s.Namespace, name, r.labels(name, "ui"), map[string]any{
		"spec": map[string]any{"type": "ClusterIP", "selector": selector, "ports": servicePorts(workload)},
	})
}

// servicePorts offers every port of the pods' containers; the first one is the page and has port 80.
func servicePorts(workload *unstructured.Unstructured) []any {
	var ports []any
	used := map[int64]bool{}
	for _, container := range pods.Containers(workload.Object) {
		list, _, _ := unstructured.NestedSlice(container, "ports")
		for _, entry := range list {
			p, _ := entry.(map[string]any)
			number, _ := p["containerPort"].(int64)
			port, target := number, any(number)
			if len(ports) == 0 {
				port = 80
			}
			name, _ := p["name"].(string)
			if name == "" {
				name = "port-" + index(int(number))
			} else {
				target = name
			}
			if protocol, ok := p["protocol"].(string); number == 0 || used[port] || ok && protocol != "TCP" {
				continue
			}
			used[port] = true
			ports = append(ports, map[string]any{"name": name, "port": port, "targetPort": target, "protocol": "TCP"})
		}
	}
	if ports == nil {
		ports = []any{map[string]any{"name": "http", "port": int64(80), "targetPort": int64(80), "protocol": "TCP"}}
	}
	return ports
}

// uiIngress routes the path of the user interface. Only for nginx it also removes the path prefix from requests; behind
// another controller the user interface sees the whole path, which is in its configuration.
func (r *renderer) uiIngress(name string, service *unstructured.Unstructured) *unstructured.Unstructured {
	path := map[string]any{
		"path": r.uiPath(), "pathType": "Prefix",
		"backend": map[string]any{"service": map[string]any{"name": service.GetName(), "port": pagePort(service)}},
	}
	spec := map[string]any{"rules": []any{map[string]any{"http": map[string]any{"paths": []any{path}}}}}
	o := newKubernetesObject("networking.k8s.io/v1", "Ingress", r.s.Namespace, name, r.labels(name, "ui"), map[string]any{"spec": spec})
	if r.s.IngressClass != "" {
		spec["ingressClassName"] = r.s.IngressClass
	}
	if strings.Contains(r.s.IngressClass, "nginx") {
		path["path"], path["pathType"] = r.uiPath()+"(/|$)(.*)", "ImplementationSpecific"
		o.SetAnnotations(map[string]string{
			"nginx.ingress.kubernetes.io/rewrite-target": "/$2", "nginx.ingress.kubernetes.io/use-regex": "true",
			"nginx.ingress.kubernetes.io/backend-protocol": "HTTP",
		})
	}
	return o
}

// pagePort refers to the port that serves the page: the one with the name http, else the first.
func pagePort(service *unstructured.Unstructured) map[string]any {
	ports, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports")
	number := int64(80)
	for i, port := range ports {
		p, _ := port.(map[string]any)
		if p["name"] == "http" {
			return map[string]any{"name": "http"}
		}
		if n, ok := p["port"].(int64); ok && i == 0 {
			number = n
		}
	}
	return map[string]any{"number": number}
}

func compactJSON(value map[string]any) string {
	data, err := schema.MarshalStored(value)
	if err != nil {
		panic(err) // only texts
	}
	return string(data)
}
