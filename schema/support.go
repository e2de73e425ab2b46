package schema

import "time"

// SupportBundle is bundle.json in what `solutionctl deploy support-bundle` writes: states, versions and events of a
// cluster, put together field by field. It has no value of a Secret or ConfigMap, no environment, arguments or command of
// a container, no annotation, no part of a custom resource, and no text that a program of a Solution has written.
type SupportBundle struct {
	Collected    time.Time            `json:"collected"`
	Tool         string               `json:"tool"`       // version of solutionctl
	Kubernetes   string               `json:"kubernetes"` // version of the API server
	Nodes        []SupportNode        `json:"nodes"`
	Imports      []SupportImport      `json:"imports"`
	Archives     []SupportArchive     `json:"archives"`
	Environments []SupportEnvironment `json:"environments"`
	Deployments  []SupportDeployment  `json:"deployments"`
	Releases     []SupportRelease     `json:"releases"`
	Definitions  []SupportDefinition  `json:"definitions"`
	Workloads    []SupportWorkload    `json:"workloads"`
	Pods         []SupportPod         `json:"pods"`
	Events       []SupportEvent       `json:"events"`
	Loader       *SupportLoader       `json:"loader,omitempty"` // absent where it never ran
	// Stores are Secrets and ConfigMaps, without their content.
	Stores []SupportStore `json:"stores"`
	// Missing lists what could not be collected or was left out, and why.
	Missing []string `json:"missing"`
}

// SupportNode is a node of the cluster.
type SupportNode struct {
	Name       string             `json:"name"`
	Kubelet    string             `json:"kubelet"`
	Runtime    string             `json:"runtime"`
	System     string             `json:"system"`
	Kernel     string             `json:"kernel"`
	Conditions []SupportCondition `json:"conditions"`
}

// SupportCondition is a condition in the status of an object, without its message.
type SupportCondition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// SupportImport is an imported version, as the cluster knows it.
type SupportImport struct {
	ID         string    `json:"id"`
	ImportedAt time.Time `json:"importedAt"`
	ImportedBy string    `json:"importedBy"`
	SHA256     string    `json:"sha256"`
	Size       int64     `json:"size"`
	Payload    string    `json:"payload"` // digest
}

// SupportArchive is an archive in the store of the host.
type SupportArchive struct {
	ID      string `json:"id"`
	Path    string `json:"path"`
	SHA256  string `json:"sha256"`
	Size    int64  `json:"size"`
	InPlace bool   `json:"inPlace"`
}

// SupportEnvironment is a namespace of an environment, and the versions that MetalK8s' document asks for.
type SupportEnvironment struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Terminating bool              `json:"terminating"`
	Versions    map[string]string `json:"versions"`
}

// SupportDeployment is the state of a deployed Solution without the reasons, which quote fields and programs.
type SupportDeployment struct {
	Namespace string           `json:"namespace,omitempty"`
	Solution  string           `json:"solution"`
	Wanted    string           `json:"wanted,omitempty"`
	Version   string           `json:"version,omitempty"`
	Health    DeploymentHealth `json:"health"`
	Objects   int              `json:"objects"`
	Ready     int              `json:"ready"`
}

// SupportRelease is the record of a Solution in a namespace.
type SupportRelease struct {
	Namespace string            `json:"namespace,omitempty"`
	Solution  string            `json:"solution"`
	Component string            `json:"component,omitempty"`
	Revisions []SupportRevision `json:"revisions"`
}

// SupportRevision is one operation, without the settings of the rendering and without the rendered objects.
type SupportRevision struct {
	Number    int64             `json:"number"`
	Operation string            `json:"operation"`
	Version   string            `json:"version,omitempty"`
	Outcome   DeploymentOutcome `json:"outcome"`
	User      string            `json:"user"`
	Tool      string            `json:"tool"`
	Started   time.Time         `json:"started"`
	Finished  *time.Time        `json:"finished,omitempty"`
	Content   string            `json:"content"` // digest
	Objects   []SupportObject   `json:"objects"`
}

// SupportObject is an object on a record.
type SupportObject struct {
	Object  string `json:"object"` // "Deployment shop/web"
	UID     string `json:"uid,omitempty"`
	Hash    string `json:"hash"`
	Leaving bool   `json:"leaving,omitempty"`
	Kept    bool   `json:"kept,omitempty"`
}

// SupportDefinition is a CustomResourceDefinition of a Solution.
type SupportDefinition struct {
	Name       string             `json:"name"`
	Served     []string           `json:"served"`
	Stored     []string           `json:"stored"`
	Conversion string             `json:"conversion,omitempty"`
	Leaving    bool               `json:"leaving,omitempty"`
	Conditions []SupportCondition `json:"conditions"`
}

// SupportWorkload is an object that makes pods, such as a Deployment.
type SupportWorkload struct {
	Object     string             `json:"object"`
	Images     []string           `json:"images"`
	Desired    int64              `json:"desired"`
	Ready      int64              `json:"ready"`
	Conditions []SupportCondition `json:"conditions"`
}

// SupportPod is a pod.
type SupportPod struct {
	Namespace  string             `json:"namespace"`
	Name       string             `json:"name"`
	Node       string             `json:"node,omitempty"`
	Phase      string             `json:"phase"`
	Reason     string             `json:"reason,omitempty"`
	Created    string             `json:"created"`
	Leaving    bool               `json:"leaving,omitempty"`
	Conditions []SupportCondition `json:"conditions"`
	Containers []SupportContainer `json:"containers"`
}

// SupportContainer is a container of a pod and its state.
type SupportContainer struct {
	Name     string `json:"name"`
	Image    string `json:"image"`
	ImageID  string `json:"imageID,omitempty"`
	Ready    bool   `json:"ready"`
	Restarts int64  `json:"restarts"`
	// State is such as "running", "waiting: ImagePullBackOff" or "terminated: Error, exit code 3", as is Last.
	State string `json:"state"`
	Last  string `json:"last,omitempty"`
}

// SupportEvent is an Event.
type SupportEvent struct {
	Object    string `json:"object"`
	Type      string `json:"type"`
	Reason    string `json:"reason"`
	Component string `json:"component,omitempty"`
	Count     int64  `json:"count"`
	Last      string `json:"last,omitempty"`
	// Message is given where Kubernetes puts it together from names and numbers and, with --logs, everywhere.
	Message string `json:"message,omitempty"`
}

// SupportStore is a Secret or ConfigMap, without its content.
type SupportStore struct {
	Object string `json:"object"`
	Type   string `json:"type,omitempty"`
	Keys   int    `json:"keys"`
	Size   int64  `json:"size"` // of all values
}

// SupportLoader is the loader's state in the cluster.
type SupportLoader struct {
	// Progress is the content of ConfigMap solutionctl-system/loader; its texts only with --logs.
	Progress *LoadProgress `json:"progress,omitempty"`
	Jobs     []SupportJob  `json:"jobs"` // of runs and of repairs
	Repairs  *SupportCron  `json:"repairs,omitempty"`
}

// SupportJob is a Job of the loader.
type SupportJob struct {
	Object     string             `json:"object"`
	Image      string             `json:"image"`
	Created    string             `json:"created"`
	Suspended  bool               `json:"suspended,omitempty"`
	Active     int64              `json:"active"`
	Succeeded  int64              `json:"succeeded"`
	Failed     int64              `json:"failed"`
	Conditions []SupportCondition `json:"conditions"`
}

// SupportCron is the CronJob of the loader.
type SupportCron struct {
	Object    string `json:"object"`
	Image     string `json:"image"`
	Created   string `json:"created"`
	Schedule  string `json:"schedule"`
	TimeZone  string `json:"timeZone,omitempty"`
	Suspended bool   `json:"suspended,omitempty"`
	Active    int    `json:"active"`
	// Last is when it made a Job last, Succeeded when one of them succeeded last.
	Last      string `json:"last,omitempty"`
	Succeeded string `json:"succeeded,omitempty"`
}

// SupportReport names the file that `solutionctl deploy support-bundle` has written, which prints it.
type SupportReport struct {
	Path    string   `json:"path"`
	Size    int64    `json:"size"`
	Files   []string `json:"files"`
	Missing []string `json:"missing"`
}
