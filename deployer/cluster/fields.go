package cluster

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// message has the fields of a message in protobuf that are read, by their numbers in generated.proto of Kubernetes. Other fields are skipped.
type message map[uint64]field

// field is a field of a message: its name in JSON, and how its value is written there.
type field struct {
	name string
	form form
	of   message // of an object, and of each object in a list
}

type form int

const (
	text       form = iota // a string, left out when it is empty
	word                   // a string that many objects have, likewise
	number                 // left out when it is 0
	count                  // an integer that is also written when it is 0
	truth                  // a Boolean
	moment                 // a time, left out when it is zero
	object                 // another message
	objects                // a list of messages
	texts                  // a list of strings
	dictionary             // a map of strings
	data                   // a map of bytes, in base64
)

var (
	metadata = message{
		1: {"name", text, nil}, 2: {"generateName", text, nil}, 3: {"namespace", word, nil}, 5: {"uid", text, nil}, 6: {"resourceVersion", text, nil},
		7: {"generation", number, nil}, 8: {"creationTimestamp", moment, nil}, 9: {"deletionTimestamp", moment, nil},
		10: {"deletionGracePeriodSeconds", count, nil}, 11: {"labels", dictionary, nil}, 12: {"annotations", dictionary, nil},
		13: {"ownerReferences", objects, owner}, 14: {"finalizers", texts, nil}, 17: {"managedFields", objects, manager},
	}
	owner = message{
		1: {"kind", word, nil}, 3: {"name", text, nil}, 4: {"uid", text, nil}, 5: {"apiVersion", word, nil}, 6: {"controller", truth, nil},
		7: {"blockOwnerDeletion", truth, nil},
	}
	manager     = message{1: {"manager", word, nil}, 2: {"operation", word, nil}, 8: {"subresource", word, nil}} // without the fields, which are half of an object
	onlyHeader  = message{1: {"metadata", object, metadata}}
	selector    = message{1: {"matchLabels", dictionary, nil}, 2: {"matchExpressions", objects, requirement}}
	requirement = message{1: {"key", word, nil}, 2: {"operator", word, nil}, 3: {"values", texts, nil}}
)

// partial has the fields of the kinds that [Cluster.ListPartial] reads in part.
var partial = map[schema.GroupVersionKind]message{
	ConfigMapKind: {1: {"metadata", object, metadata}, 2: {"data", dictionary, nil}},
	SecretKind:    {1: {"metadata", object, metadata}, 2: {"data", data, nil}, 3: {"type", word, nil}},
	PodKind:       {1: {"metadata", object, podMetadata}, 2: {"spec", object, podSpec}, 3: {"status", object, podStatus}},
	DeploymentKind: {1: {"metadata", object, metadata}, 2: {"spec", object, message{
		1: {"replicas", count, nil}, 2: {"selector", object, selector}, 9: {"progressDeadlineSeconds", count, nil},
	}}, 3: {"status", object, message{
		1: {"observedGeneration", number, nil}, 2: {"replicas", number, nil}, 3: {"updatedReplicas", number, nil}, 4: {"availableReplicas", number, nil},
		5: {"unavailableReplicas", number, nil}, 6: {"conditions", objects, condition}, 7: {"readyReplicas", number, nil},
	}}},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"}: {1: {"metadata", object, metadata}, 2: {"spec", object, message{
		1: {"replicas", count, nil}, 2: {"selector", object, selector}, 7: {"updateStrategy", object, message{
			1: {"type", word, nil}, 2: {"rollingUpdate", object, message{1: {"partition", count, nil}}},
		}},
	}}, 3: {"status", object, message{
		1: {"observedGeneration", number, nil}, 2: {"replicas", count, nil}, 3: {"readyReplicas", number, nil}, 4: {"currentReplicas", number, nil},
		5: {"updatedReplicas", number, nil}, 6: {"currentRevision", text, nil}, 7: {"updateRevision", text, nil}, 10: {"conditions", objects, condition},
		11: {"availableReplicas", count, nil},
	}}},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"}: {1: {"metadata", object, metadata}, 2: {"spec", object, message{
		1: {"selector", object, selector}, 3: {"updateStrategy", object, message{1: {"type", word, nil}}},
	}}, 3: {"status", object, message{
		1: {"currentNumberScheduled", count, nil}, 2: {"numberMisscheduled", count, nil}, 3: {"desiredNumberScheduled", count, nil},
		4: {"numberReady", count, nil}, 5: {"observedGeneration", number, nil}, 6: {"updatedNumberScheduled", number, nil},
		7: {"numberAvailable", number, nil}, 8: {"numberUnavailable", number, nil}, 10: {"conditions", objects, condition},
	}}},
}

var (
	// condition is that of a workload: Kubernetes gave its fields the same numbers in each of their kinds.
	condition   = message{1: {"type", word, nil}, 2: {"status", word, nil}, 4: {"reason", word, nil}, 5: {"message", text, nil}}
	podMetadata = message{
		1: metadata[1], 3: metadata[3], 5: metadata[5], 6: metadata[6], 9: metadata[9], 11: metadata[11], 13: metadata[13],
	}
	podSpec   = message{2: {"containers", objects, container}, 10: {"nodeName", word, nil}, 20: {"initContainers", objects, container}}
	container = message{
		1: {"name", word, nil}, 11: {"readinessProbe", object, message{}}, 22: {"startupProbe", object, message{}}, 24: {"restartPolicy", word, nil},
	}
	podStatus = message{
		1: {"phase", word, nil}, 8: {"containerStatuses", objects, containerStatus}, 10: {"initContainerStatuses", objects, containerStatus},
	}
	containerStatus = message{
		1: {"name", word, nil}, 2: {"state", object, containerState}, 3: {"lastState", object, containerState}, 4: {"ready", truth, nil},
		5: {"restartCount", count, nil}, 6: {"image", word, nil}, 9: {"started", truth, nil},
	}
	containerState = message{
		1: {"waiting", object, message{1: {"reason", word, nil}, 2: {"message", text, nil}}},
		2: {"running", object, message{1: {"startedAt", moment, nil}}},
		3: {"terminated", object, message{
			1: {"exitCode", count, nil}, 2: {"signal", number, nil}, 3: {"reason", word, nil}, 4: {"message", text, nil}, 5: {"startedAt", moment, nil},
			6: {"finishedAt", moment, nil},
		}},
	}
)
