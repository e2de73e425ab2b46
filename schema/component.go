package schema

// Component is one node of the graph of a Solution's parts. Exactly one of Chart, Manifests and Job is set; all paths are relative to the root of the archive.
type Component struct {
	Name      string `json:"name"`
	Chart     string `json:"chart,omitempty"`     // a Helm chart, packed
	Manifests string `json:"manifests,omitempty"` // a file or directory of Kubernetes objects
	Job       string `json:"job,omitempty"`       // a file with one Job
	Values    string `json:"values,omitempty"`    // a values file for Chart

	DependsOn []ComponentDependency `json:"dependsOn,omitempty"`
	// ReadyWhen adds to the usual judgement on readiness; all of it has to hold.
	ReadyWhen []Readiness `json:"readyWhen,omitempty"`
	// Timeout is how long to wait for the component, such as "10m".
	Timeout   string    `json:"timeout,omitempty"`
	OnFailure OnFailure `json:"onFailure,omitempty"`
	Once      Once      `json:"once,omitempty"`
}

// ComponentDependency makes a component wait for another one.
type ComponentDependency struct {
	Component string `json:"component"`
	// Until is the state to wait for; by default Complete for a job and Ready for anything else.
	Until Until `json:"until,omitempty"`
}

// Until is a state of a component that others wait for.
type Until string

// The states to wait for.
const (
	UntilReady    Until = "Ready"
	UntilComplete Until = "Complete" // jobs only
)

// OnFailure is the consequence of a component's failure for those that depend on it.
type OnFailure string

// What a failure does.
const (
	FailureBlocks    OnFailure = "block" // the default
	FailureContinues OnFailure = "continue"
)

// Once limits the runs of a job. Without it, a job runs whenever the component is loaded.
type Once string

// OncePerVersion runs a job once for each version of the Solution.
const OncePerVersion Once = "perVersion"

// Readiness is a condition in the Common Expression Language on some objects of a component.
type Readiness struct {
	// GVK is <group>/<version>/<kind>, or <version>/<kind> for the core group.
	GVK string `json:"gvk"`
	// Name is an object's name, or "*" for every object of that kind.
	Name string `json:"name,omitempty"`
	// CEL is an expression over the variable object that yields a boolean.
	CEL string `json:"cel"`
}
