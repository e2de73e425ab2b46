// Package pods reads the pods that the workloads of Kubernetes create from a template.
package pods

import (
	"strings"

	"github.com/solutionctl/solutionctl/schema"
)

// templates are the paths to the template of a pod. A Pod is its own.
var templates = map[string][]string{
	"Pod": {}, "PodTemplate": {"template"}, "CronJob": {"spec", "jobTemplate", "spec", "template"},
	"Deployment": {"spec", "template"}, "DaemonSet": {"spec", "template"}, "StatefulSet": {"spec", "template"},
	"ReplicaSet": {"spec", "template"}, "ReplicationController": {"spec", "template"}, "Job": {"spec", "template"},
}

// IsWorkload reports whether objects of a kind create pods, or are pods.
func IsWorkload(apiVersion, kind string) bool {
	group, _, grouped := strings.Cut(apiVersion, "/")
	_, known := templates[kind]
	return known && (!grouped || schema.IsAPIServerGroup(group))
}

// Template returns the template of the pods of an object, and its path; nil if the object has none.
func Template(object map[string]any) (template map[string]any, path []string) {
	kind, _ := object["kind"].(string)
	version, _ := object["apiVersion"].(string)
	if !IsWorkload(version, kind) {
		return nil, nil
	}
	template, path = object, templates[kind]
	for _, field := range path {
		template, _ = template[field].(map[string]any)
	}
	return template, path
}

// Spec returns the spec of the pods of an object; nil if there is none.
func Spec(object map[string]any) map[string]any {
	template, _ := Template(object)
	spec, _ := template["spec"].(map[string]any)
	return spec
}

// Labels returns the labels of the pods of an object.
func Labels(object map[string]any) map[string]any {
	template, _ := Template(object)
	metadata, _ := template["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	return labels
}

// Containers returns the containers of the pods of an object, without init containers.
func Containers(object map[string]any) (containers []map[string]any) {
	list, _ := Spec(object)["containers"].([]any)
	for _, entry := range list {
		if container, ok := entry.(map[string]any); ok {
			containers = append(containers, container)
		}
	}
	return containers
}

// Annotate sets an annotation of the pods of an object. A workload replaces its pods for that.
func Annotate(object map[string]any, name, value string) {
	template, _ := Template(object)
	if template == nil {
		return
	}
	metadata := child(template, "metadata")
	child(metadata, "annotations")[name] = value
}

// child returns a map in a field, which it creates if there is none.
func child(of map[string]any, field string) map[string]any {
	inner, ok := of[field].(map[string]any)
	if !ok {
		inner = map[string]any{}
		of[field] = inner
	}
	return inner
}
