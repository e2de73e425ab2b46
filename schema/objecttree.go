package schema

// ObjectTree has the objects of a Solution in an environment, down to the containers of its pods. The console shows it.
type ObjectTree struct {
	Environment string `json:"environment"`
	Solution    string `json:"solution"`
	// Groups are the parts of the Solution, those without a component first.
	Groups []ObjectGroup `json:"groups"`
	// Unseen lists the pods that the user is not allowed to read.
	Unseen []Unseen `json:"unseen,omitempty"`
}

// ObjectGroup has the objects of a component in a namespace, workloads first.
type ObjectGroup struct {
	// Namespace is absent for the part of the Solution that belongs to the whole cluster.
	Namespace string `json:"namespace,omitempty"`
	// Component is absent for the objects of the Solution itself.
	Component string `json:"component,omitempty"`
	// Operated marks the workloads that the operator has made for custom resources. They are on no record.
	Operated bool         `json:"operated,omitempty"`
	Objects  []TreeObject `json:"objects"`
}

// TreeObject is an object with the pods that it has made, by name.
type TreeObject struct {
	ObjectRef
	Pods []TreePod `json:"pods,omitempty"`
}

// TreePod is a pod with its containers, in the order in which they start.
type TreePod struct {
	Name  string      `json:"name"`
	Node  string      `json:"node,omitempty"`
	State ObjectState `json:"state"`
	// Reason is why the pod is not ready, absent where its containers have the reason.
	Reason     string          `json:"reason,omitempty"`
	Claims     []string        `json:"claims,omitempty"` // PersistentVolumeClaims that it uses
	Containers []TreeContainer `json:"containers"`
}

// TreeContainer is a container of a pod.
type TreeContainer struct {
	Name  string      `json:"name"`
	State ObjectState `json:"state"`
	// Reason is why it is not ready, or why it was restarted.
	Reason   string `json:"reason,omitempty"`
	Restarts int    `json:"restarts,omitempty" schema:"minimum=0"`
}

// ObjectState is the condition of a pod or a container.
type ObjectState string

// The states of pods and containers.
const (
	ObjectReady       ObjectState = "ready"
	ObjectProgressing ObjectState = "progressing"
	ObjectCompleted   ObjectState = "completed"
	ObjectFailed      ObjectState = "failed"
	ObjectDeleting    ObjectState = "deleting"
)
