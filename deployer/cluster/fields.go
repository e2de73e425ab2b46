package cluster

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// message has the fields of a message in protobuf that are read. Other fields are skipped.
type message []field

// field is a field of a message: its number in generated.proto of Kubernetes, how its value is written in JSON, and its name there.
type field struct {
	number protowire.Number
	form   form
	name   string
	of     message // of an object, and of each object in a list
}

func (m message) field(number protowire.Number) (field, bool) {
	for _, f := range m {
		if f.number == number {
			return f, true
		}
	}
	return field{}, false
}

type form int

const (
	text        form = iota // a string, left out when it is empty
	word                    // a string that many objects have, likewise
	number                  // left out when it is 0
	count                   // an integer that is also written when it is 0
	truth                   // a Boolean
	moment                  // a time, left out when it is zero
	microMoment             // the same with microseconds
	object                  // another message
	objects                 // a list of messages
	texts                   // a list of strings
	dictionary              // a map of strings
	data                    // a map of bytes, in base64
)

// partial returns the fields of a kind that [Cluster.ListPartial] reads in part, nil for other kinds.
func partial(kind schema.GroupVersionKind) message {
	if kind.GroupVersion() == DeploymentKind.GroupVersion() {
		switch kind.Kind {
		case "Deployment":
			return deployment
		case "StatefulSet":
			return statefulSet
		case "DaemonSet":
			return daemonSet
		case "ReplicaSet":
			return replicaSet
		}
	}
	switch kind {
	case EventKind:
		return event
	case PodKind:
		return pod
	case ConfigMapKind:
		return configMap
	case SecretKind:
		return secret
	}
	return nil
}

var (
	onlyHeader   = message{{1, object, "metadata", metadata}}
	onlyVersions = message{{1, object, "metadata", message{
		{1, text, "name", nil},
		{3, word, "namespace", nil},
		{5, text, "uid", nil},
		{6, text, "resourceVersion", nil},
		{7, number, "generation", nil},
		{9, moment, "deletionTimestamp", nil},
		{14, texts, "finalizers", nil},
	}}}
	configMap = message{{1, object, "metadata", metadata}, {2, dictionary, "data", nil}}
	secret    = message{{1, object, "metadata", metadata}, {2, data, "data", nil}, {3, word, "type", nil}}
	metadata  = message{
		{1, text, "name", nil},
		{2, text, "generateName", nil},
		{3, word, "namespace", nil},
		{5, text, "uid", nil},
		{6, text, "resourceVersion", nil},
		{7, number, "generation", nil},
		{8, moment, "creationTimestamp", nil},
		{9, moment, "deletionTimestamp", nil},
		{10, count, "deletionGracePeriodSeconds", nil},
		{11, dictionary, "labels", nil},
		{12, dictionary, "annotations", nil},
		{13, objects, "ownerReferences", owner},
		{14, texts, "finalizers", nil},
		{17, objects, "managedFields", manager},
	}
	owner = message{
		{1, word, "kind", nil},
		{3, text, "name", nil},
		{4, text, "uid", nil},
		{5, word, "apiVersion", nil},
		{6, truth, "controller", nil},
		{7, truth, "blockOwnerDeletion", nil},
	}
	manager     = message{{1, word, "manager", nil}, {2, word, "operation", nil}, {8, word, "subresource", nil}} // without its fields, half of an object
	selector    = message{{1, dictionary, "matchLabels", nil}, {2, objects, "matchExpressions", requirement}}
	requirement = message{{1, word, "key", nil}, {2, word, "operator", nil}, {3, texts, "values", nil}}
)

var (
	deployment     = message{{1, object, "metadata", metadata}, {2, object, "spec", deploymentSpec}, {3, object, "status", deploymentStatus}}
	deploymentSpec = message{
		{1, count, "replicas", nil}, {2, object, "selector", selector}, {9, count, "progressDeadlineSeconds", nil},
	}
	deploymentStatus = message{
		{1, number, "observedGeneration", nil},
		{2, number, "replicas", nil},
		{3, number, "updatedReplicas", nil},
		{4, number, "availableReplicas", nil},
		{5, number, "unavailableReplicas", nil},
		{6, objects, "conditions", condition},
		{7, number, "readyReplicas", nil},
	}
	statefulSet     = message{{1, object, "metadata", metadata}, {2, object, "spec", statefulSetSpec}, {3, object, "status", statefulSetStatus}}
	statefulSetSpec = message{
		{1, count, "replicas", nil}, {2, object, "selector", selector}, {7, object, "updateStrategy", updateStrategy},
	}
	updateStrategy    = message{{1, word, "type", nil}, {2, object, "rollingUpdate", message{{1, count, "partition", nil}}}}
	statefulSetStatus = message{
		{1, number, "observedGeneration", nil},
		{2, count, "replicas", nil},
		{3, number, "readyReplicas", nil},
		{4, number, "currentReplicas", nil},
		{5, number, "updatedReplicas", nil},
		{6, text, "currentRevision", nil},
		{7, text, "updateRevision", nil},
		{10, objects, "conditions", condition},
		{11, count, "availableReplicas", nil},
	}
	daemonSet       = message{{1, object, "metadata", metadata}, {2, object, "spec", daemonSetSpec}, {3, object, "status", daemonSetStatus}}
	daemonSetSpec   = message{{1, object, "selector", selector}, {3, object, "updateStrategy", message{{1, word, "type", nil}}}}
	daemonSetStatus = message{
		{1, count, "currentNumberScheduled", nil},
		{2, count, "numberMisscheduled", nil},
		{3, count, "desiredNumberScheduled", nil},
		{4, count, "numberReady", nil},
		{5, number, "observedGeneration", nil},
		{6, number, "updatedNumberScheduled", nil},
		{7, number, "numberAvailable", nil},
		{8, number, "numberUnavailable", nil},
		{10, objects, "conditions", condition},
	}
	replicaSet = message{
		{1, object, "metadata", metadata},
		{2, object, "spec", message{{2, object, "selector", selector}}},
		{3, object, "status", message{{6, objects, "conditions", condition}}},
	}
	// condition is that of a workload: Kubernetes gave its fields the same numbers in each of their kinds.
	condition = message{{1, word, "type", nil}, {2, word, "status", nil}, {4, word, "reason", nil}, {5, text, "message", nil}}
)

var (
	pod         = message{{1, object, "metadata", podMetadata}, {2, object, "spec", podSpec}, {3, object, "status", podStatus}}
	podMetadata = message{
		{1, text, "name", nil},
		{3, word, "namespace", nil},
		{5, text, "uid", nil},
		{6, text, "resourceVersion", nil},
		{9, moment, "deletionTimestamp", nil},
		{11, dictionary, "labels", nil},
		{13, objects, "ownerReferences", owner},
	}
	podSpec   = message{{2, objects, "containers", container}, {10, word, "nodeName", nil}, {20, objects, "initContainers", container}}
	container = message{
		{1, word, "name", nil}, {11, object, "readinessProbe", message{}}, {22, object, "startupProbe", message{}}, {24, word, "restartPolicy", nil},
	}
	podStatus = message{
		{1, word, "phase", nil}, {8, objects, "containerStatuses", containerStatus}, {10, objects, "initContainerStatuses", containerStatus},
	}
	containerStatus = message{
		{1, word, "name", nil},
		{2, object, "state", containerState},
		{3, object, "lastState", containerState},
		{4, truth, "ready", nil},
		{5, count, "restartCount", nil},
		{6, word, "image", nil},
		{9, truth, "started", nil},
	}
	containerState = message{{1, object, "waiting", waiting}, {2, object, "running", message{{1, moment, "startedAt", nil}}}, {3, object, "terminated", terminated}}
	waiting        = message{{1, word, "reason", nil}, {2, text, "message", nil}}
	terminated     = message{
		{1, count, "exitCode", nil},
		{2, number, "signal", nil},
		{3, word, "reason", nil},
		{4, text, "message", nil},
		{5, moment, "startedAt", nil},
		{6, moment, "finishedAt", nil},
	}
)

// podWithConditions returns more fields of a pod: its conditions alone are a quarter of what is read of it.
func podWithConditions() message {
	return message{
		{1, object, "metadata", slices.Concat(podMetadata, message{{14, texts, "finalizers", nil}})},
		{2, object, "spec", slices.Concat(podSpec, message{{28, objects, "readinessGates", message{{1, word, "conditionType", nil}}}})},
		{3, object, "status", slices.Concat(podStatus, message{{2, objects, "conditions", podCondition}, {3, text, "message", nil}, {4, word, "reason", nil}})},
	}
}

var podCondition = message{{1, word, "type", nil}, {2, word, "status", nil}, {5, word, "reason", nil}, {6, text, "message", nil}}

var event = message{
	{1, object, "metadata", message{{1, text, "name", nil}, {3, word, "namespace", nil}, {8, moment, "creationTimestamp", nil}}},
	{2, object, "involvedObject", message{{4, text, "uid", nil}}},
	{3, word, "reason", nil},
	{4, text, "message", nil},
	{7, moment, "lastTimestamp", nil},
	{9, word, "type", nil},
	{10, microMoment, "eventTime", nil},
	{11, object, "series", message{{2, microMoment, "lastObservedTime", nil}}},
}
