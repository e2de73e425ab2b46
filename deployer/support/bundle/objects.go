package bundle

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/kube/pods"
	"github.com/solutionctl/solutionctl/schema"
)

func text(object *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(object.Object, path...) // one of another type is as good as none
	return s
}

func number(object *unstructured.Unstructured, path ...string) int64 {
	n, _, _ := unstructured.NestedInt64(object.Object, path...)
	return n
}

// nameOf is "Deployment shop/web".
func nameOf(object *unstructured.Unstructured) string {
	return schema.ObjectRef{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}.String()
}

// conditions returns the conditions in the status of an object, without their messages.
func conditions(object *unstructured.Unstructured) []schema.SupportCondition {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	taken := []schema.SupportCondition{}
	for _, item := range list[:min(len(list), maxItems)] {
		fields, _ := item.(map[string]any)
		kind, _ := fields["type"].(string)
		status, _ := fields["status"].(string)
		reason, _ := fields["reason"].(string)
		taken = append(taken, schema.SupportCondition{
			Type: word(conditionType, kind), Status: word(camelCase, status), Reason: word(camelCase, reason),
		})
	}
	return taken
}

func (c *collector) nodes() {
	for node := range c.objects(kube.GroupVersionKind{Version: "v1", Kind: "Node"}, "", metav1.ListOptions{}) {
		info := func(field string) string { return text(node, "status", "nodeInfo", field) }
		c.document.Nodes = append(c.document.Nodes, schema.SupportNode{
			Name: node.GetName(), Kubelet: info("kubeletVersion"), Runtime: info("containerRuntimeVersion"), System: info("osImage"), Kernel: info("kernelVersion"),
			Conditions: conditions(node),
		})
	}
}

// definitions copies the CRDs of Solutions.
func (c *collector) definitions() {
	for object := range c.objects(cluster.DefinitionKind, "", metav1.ListOptions{LabelSelector: schema.LabelRelease}) {
		taken := schema.SupportDefinition{
			Name: object.GetName(), Served: []string{}, Stored: []string{}, Conversion: text(object, "spec", "conversion", "strategy"),
			Leaving: object.GetDeletionTimestamp() != nil, Conditions: conditions(object),
		}
		versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
		for _, version := range versions {
			fields, _ := version.(map[string]any)
			if name, ok := fields["name"].(string); ok && fields["served"] == true {
				taken.Served = append(taken.Served, name)
			}
		}
		stored, _, _ := unstructured.NestedStringSlice(object.Object, "status", "storedVersions")
		taken.Stored = append(taken.Stored, stored...)
		c.document.Definitions = append(c.document.Definitions, taken)
	}
}

func (c *collector) workloads(namespace string) {
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		for object := range c.objects(kube.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}, namespace, metav1.ListOptions{}) {
			taken := schema.SupportWorkload{
				Object: nameOf(object), Images: []string{}, Desired: number(object, "spec", "replicas"), Ready: number(object, "status", "readyReplicas"),
				Conditions: conditions(object),
			}
			if kind == "DaemonSet" {
				taken.Desired, taken.Ready = number(object, "status", "desiredNumberScheduled"), number(object, "status", "numberReady")
			}
			for _, container := range pods.Containers(object.Object) {
				image, _ := container["image"].(string)
				taken.Images = append(taken.Images, image)
			}
			c.document.Workloads = append(c.document.Workloads, taken)
		}
	}
}

func (c *collector) pods(namespace string) {
	for object := range c.objects(cluster.PodKind, namespace, metav1.ListOptions{}) {
		var pod corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod); err != nil {
			c.missing("pod %s/%s: its status cannot be understood", object.GetNamespace(), object.GetName())
			continue
		}
		taken := schema.SupportPod{
			Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName, Phase: string(pod.Status.Phase), Reason: pod.Status.Reason,
			Created: text(object, "metadata", "creationTimestamp"), Leaving: pod.DeletionTimestamp != nil,
			Conditions: conditions(object), Containers: []schema.SupportContainer{},
		}
		for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			taken.Containers = append(taken.Containers, schema.SupportContainer{
				Name: s.Name, Image: s.Image, ImageID: s.ImageID, Ready: s.Ready, Restarts: int64(s.RestartCount),
				State: state(s.State), Last: state(s.LastTerminationState),
			})
		}
		c.document.Pods = append(c.document.Pods, taken)
	}
}

// state is that of a container, without its message: the program may have written it.
func state(s corev1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Waiting != nil:
		return "waiting: " + s.Waiting.Reason
	case s.Terminated != nil:
		return fmt.Sprintf("terminated: %s, exit code %d", s.Terminated.Reason, s.Terminated.ExitCode)
	default:
		return ""
	}
}

// stores copies the names and sizes of Secrets and ConfigMaps.
func (c *collector) stores(namespace string) {
	for _, kind := range []string{"ConfigMap", "Secret"} {
		for object := range c.objects(kube.GroupVersionKind{Version: "v1", Kind: kind}, namespace, metav1.ListOptions{}) {
			taken := schema.SupportStore{Object: nameOf(object), Type: text(object, "type")}
			for _, field := range []string{"data", "binaryData"} {
				values, _, _ := unstructured.NestedStringMap(object.Object, field)
				taken.Keys += len(values)
				for value := range maps.Values(values) {
					taken.Size += sizeOf(value, kind == "Secret" || field == "binaryData")
				}
			}
			c.document.Stores = append(c.document.Stores, taken)
		}
	}
}

func sizeOf(value string, encoded bool) int64 {
	if !encoded {
		return int64(len(value))
	}
	return int64(base64.StdEncoding.DecodedLen(len(value)) - strings.Count(value, "="))
}
