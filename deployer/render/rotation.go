package render

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/kube/pods"
)

// annotationRotation of a pod template is the number of the last rotation of values that its pods read: another number
// replaces the pods. It reveals nothing of the generated values.
const annotationRotation = "solutionctl.io/rotation"

// Rotations have the number of the last rotation of each Secret and ConfigMap ("Secret NAMESPACE/NAME") whose values were generated again.
// Numbers are kept for good: pods would also start again if the annotation with the number went away.
type Rotations map[string]int

// note gives the next number to each Secret and ConfigMap whose values differ from those of before, and returns their names.
func (r *Rotations) note(before, now []*unstructured.Unstructured) (rotated []string) {
	values := map[string][]any{}
	for _, o := range before {
		values[configName(o)] = configValues(o)
	}
	for _, o := range now {
		name := configName(o)
		if earlier, there := values[name]; there && name != "" && !reflect.DeepEqual(earlier, configValues(o)) {
			rotated = append(rotated, name)
		}
	}
	if len(rotated) == 0 {
		return nil
	}
	next := 1 + slices.Max(append(slices.Collect(maps.Values(*r)), 0))
	if *r == nil {
		*r = Rotations{}
	}
	for _, name := range rotated {
		(*r)[name] = next
	}
	slices.Sort(rotated)
	return rotated
}

// configName is how [Rotations] name a Secret or a ConfigMap; "" for anything else.
func configName(o *unstructured.Unstructured) string {
	if o.GetAPIVersion() != "v1" || o.GetKind() != "Secret" && o.GetKind() != "ConfigMap" {
		return ""
	}
	return fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
}

func configValues(o *unstructured.Unstructured) []any {
	return []any{o.Object["data"], o.Object["stringData"], o.Object["binaryData"]}
}

// Restart annotates the pod templates that read rotated values. Of the workloads that read objects in recent, it returns those that replace
// their pods (started) and those that do not, such as a bare Pod (left).
func (r Rotations) Restart(objects []*unstructured.Unstructured, recent []string) (started, left []string) {
	for _, o := range objects {
		reads, number, isRecent := podReads(o), 0, false
		for _, name := range reads {
			number = max(number, r[name])
			isRecent = isRecent || slices.Contains(recent, name)
		}
		if number == 0 {
			continue
		}
		rolls := rollsOut(o)
		if rolls {
			pods.Annotate(o.Object, annotationRotation, fmt.Sprint(number))
		}
		name := fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
		switch {
		case isRecent && rolls:
			started = append(started, name)
		case isRecent && o.GetKind() != "Job" && o.GetKind() != "CronJob": // the next run reads it
			left = append(left, name)
		}
	}
	return started, left
}

// rollsOut reports whether a workload replaces its pods when their template changes.
func rollsOut(o *unstructured.Unstructured) bool {
	switch o.GroupVersionKind().Group + "/" + o.GetKind() {
	case "apps/Deployment":
		return true
	case "apps/StatefulSet", "apps/DaemonSet":
		strategy, _, _ := unstructured.NestedString(o.Object, "spec", "updateStrategy", "type")
		return strategy != "OnDelete"
	}
	return false
}

// podReads names the Secrets and ConfigMaps that the pods of an object mount or have in their environment, as [Rotations] do.
func podReads(o *unstructured.Unstructured) (names []string) {
	spec := pods.Spec(o.Object)
	add := func(kind string, from map[string]any, path ...string) {
		if name, _, _ := unstructured.NestedString(from, path...); name != "" {
			names = append(names, fmt.Sprintf("%s %s/%s", kind, o.GetNamespace(), name))
		}
	}
	items := func(from map[string]any, path ...string) []map[string]any {
		list, _, _ := unstructured.NestedSlice(from, path...)
		return listOf(list)
	}
	for _, volume := range items(spec, "volumes") {
		add("Secret", volume, "secret", "secretName")
		add("ConfigMap", volume, "configMap", "name")
		for _, source := range items(volume, "projected", "sources") {
			add("Secret", source, "secret", "name")
			add("ConfigMap", source, "configMap", "name")
		}
	}
	for _, container := range slices.Concat(items(spec, "initContainers"), items(spec, "containers")) {
		for _, variable := range items(container, "env") {
			add("Secret", variable, "valueFrom", "secretKeyRef", "name")
			add("ConfigMap", variable, "valueFrom", "configMapKeyRef", "name")
		}
		for _, source := range items(container, "envFrom") {
			add("Secret", source, "secretRef", "name")
			add("ConfigMap", source, "configMapRef", "name")
		}
	}
	return names
}
