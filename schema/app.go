package schema

import "time"

// App is one instance of an application: a custom resource of a Solution in an environment. `solutionctl deploy app get`,
// `create`, `set` and `scale` print one.
type App struct {
	Environment string    `json:"environment"`
	Namespace   string    `json:"namespace"`
	Solution    string    `json:"solution"`
	APIVersion  string    `json:"apiVersion"`
	Kind        string    `json:"kind"`
	Name        string    `json:"name"`
	UID         string    `json:"uid"`
	Health      AppHealth `json:"health"`
	Created     time.Time `json:"created"`
	// Reasons say what is in the way, one sentence each.
	Reasons []string `json:"reasons"`
	// Values are the spec; absent in lists.
	Values map[string]any `json:"values,omitempty"`
	// Shown are the values for a screen, without secrets.
	Shown map[string]any `json:"-"`
	// Objects lists the objects of the instance, each followed by the objects that it owns; absent in lists.
	Objects []AppObject `json:"objects,omitempty"`
	// Events lists the Kubernetes events of the instance and its objects, the newest first; absent unless requested.
	Events []ObjectEvent `json:"events,omitzero"`
}

// AppHealth is the condition of an instance.
type AppHealth string

// The healths of instances.
const (
	AppReady       AppHealth = "ready"
	AppProgressing AppHealth = "progressing"
	AppFailed      AppHealth = "failed"
	AppDeleting    AppHealth = "deleting"
)

// AppObject is an object that an instance owns, directly or through another one.
type AppObject struct {
	ObjectRef
	// Depth is 1 for what the instance owns itself, 2 for what such an object owns, and so on.
	Depth  int       `json:"depth" schema:"minimum=1"`
	Health AppHealth `json:"health"`
	Reason string    `json:"reason,omitempty"`
}

// AppList holds the instances of an environment. `solutionctl deploy app list` prints it.
type AppList struct {
	Apps []App `json:"apps"`
	// Notices name the custom resources of Solutions that were removed, one sentence each. No operator serves them.
	Notices []string `json:"notices,omitempty"`
}

// AppForm holds the fields of an instance that a user may fill in. `solutionctl deploy app fields` prints it.
type AppForm struct {
	Solution   string     `json:"solution"`
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Fields     []AppField `json:"fields"`
}
