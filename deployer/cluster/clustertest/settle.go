package clustertest

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// controller is the manager of what controllers write.
const controller = "controller"

// settle gives an object the status that its controller would, at once.
func settle(object *unstructured.Unstructured) {
	replicas, found, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	if !found {
		replicas = 1
	}
	status := map[string]any{"observedGeneration": object.GetGeneration()}
	switch object.GetKind() {
	case "Deployment":
		fill(status, replicas, "replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
		status["conditions"] = []any{condition("Available", "MinimumReplicasAvailable"), condition("Progressing", "NewReplicaSetAvailable")}
	case "ReplicaSet":
		fill(status, replicas, "replicas", "readyReplicas", "availableReplicas", "fullyLabeledReplicas")
	case "StatefulSet":
		fill(status, replicas, "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "currentReplicas")
		status["currentRevision"], status["updateRevision"] = "1", "1"
	case "DaemonSet":
		fill(status, 1, "desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberReady", "numberAvailable")
	case "Job":
		status = map[string]any{"succeeded": int64(1), "conditions": []any{condition("Complete", "CompletionsReached")}}
	case "PersistentVolumeClaim":
		status = map[string]any{"phase": "Bound"}
	case "Namespace":
		status = map[string]any{"phase": "Active"}
		if object.GetDeletionTimestamp() != nil {
			status["phase"] = "Terminating"
		}
	case "CustomResourceDefinition":
		status = establish(object)
	default:
		return
	}
	object.Object["status"] = status
}

func fill(status map[string]any, n int64, fields ...string) {
	for _, field := range fields {
		status[field] = n
	}
}

// condition is one that has been true for an hour.
func condition(kind, reason string) map[string]any {
	since := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	return map[string]any{"type": kind, "status": "True", "reason": reason, "message": reason, "lastTransitionTime": since, "lastUpdateTime": since}
}

// establish serves the kind of a definition, and remembers in which versions its instances were stored.
func establish(definition *unstructured.Unstructured) map[string]any {
	stored, _, _ := unstructured.NestedStringSlice(definition.Object, "status", "storedVersions")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		if version["storage"] == true && !slices.Contains(stored, name) {
			stored = append(stored, name)
		}
	}
	names, _, _ := unstructured.NestedMap(definition.Object, "spec", "names")
	list := make([]any, len(stored))
	for i, name := range stored {
		list[i] = name
	}
	return map[string]any{
		"storedVersions": list, "acceptedNames": names,
		"conditions": []any{condition("NamesAccepted", "NoConflicts"), condition("Established", "InitialNamesAccepted")},
	}
}
