package schema

import (
	"cmp"
	"slices"
)

// Component is one node of the graph of a Solution's parts. Exactly one of Chart, Manifests, Job and Operator is set; all paths are
// relative to the root of the archive.
type Component struct {
	Name      string `json:"name"`
	Chart     string `json:"chart,omitempty"`     // a Helm chart, packed
	Manifests string `json:"manifests,omitempty"` // a file or directory of Kubernetes objects
	Job       string `json:"job,omitempty"`       // a file with one Job
	Operator  string `json:"operator,omitempty"`  // operators/<name>, a directory with the rights of one more operator
	Values    string `json:"values,omitempty"`    // a values file for Chart
	// Image is that of Operator, by default <name of the component>:<version of the Solution>.
	Image *ImageName `json:"image,omitempty"`

	// Select decides whether the component belongs to a deployment that does not name it; by default it does,
	// unless it is for certain profiles only.
	Select   Select   `json:"select,omitempty"`
	Profiles []string `json:"profiles,omitempty"`

	// Scope is where the component lives: in every environment that has the Solution, or once in the cluster.
	Scope Scope `json:"scope,omitempty"`
	// Namespace is where a component of the cluster lives, by default <solution>-system; it may have objects in Namespaces, too.
	Namespace  string   `json:"namespace,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"`

	// Release is the name under which Chart is rendered, by default that of the component.
	Release string `json:"release,omitempty"`
	Hooks   *Hooks `json:"hooks,omitempty"`
	// Site names the values of Chart that a site has to set, and those that no site may set.
	Site *SiteRules `json:"site,omitempty"`
	// OptionalKinds are kinds, as <group>/<kind>, whose objects are left out of a cluster that does not know them.
	OptionalKinds []string `json:"optionalKinds,omitempty"`

	DependsOn []ComponentDependency `json:"dependsOn,omitempty"`
	// ReadyWhen adds to the usual judgement on readiness; all of it has to hold.
	ReadyWhen []Readiness `json:"readyWhen,omitempty"`
	// Timeout is how long to wait for the component, such as "10m".
	Timeout   string    `json:"timeout,omitempty"`
	OnFailure OnFailure `json:"onFailure,omitempty"`
	Once      Once      `json:"once,omitempty"`
}

// SiteRules are about the values of a chart, each named by its path: keys joined by dots, with a backslash before a dot in a key.
type SiteRules struct {
	Required []string `json:"required,omitempty"` // a site has to set them
	Locked   []string `json:"locked,omitempty"`   // no site may set them, or values below them
}

// The names of what a Solution has besides components; others may depend on them, no component is called so.
const (
	NodeOperator = "operator" // what lies in operator/
	NodeUI       = "ui"       // what lies in ui/
)

// ComponentKind is the source of a component: the name of the field that specifies it. The operator and the user interface
// of a Solution have kinds of their own.
type ComponentKind string

// The kinds of components.
const (
	ComponentChart     ComponentKind = "chart"
	ComponentManifests ComponentKind = "manifests"
	ComponentJob       ComponentKind = "job"
	ComponentOperator  ComponentKind = "operator"
	ComponentUI        ComponentKind = "ui" // only the node of that name
)

// Source returns what the component is made from, and its path in the archive.
func (c *Component) Source() (ComponentKind, string) {
	switch {
	case c.Chart != "":
		return ComponentChart, c.Chart
	case c.Manifests != "":
		return ComponentManifests, c.Manifests
	case c.Job != "":
		return ComponentJob, c.Job
	default:
		return ComponentOperator, c.Operator
	}
}

// Selected is Select with its default.
func (c *Component) Selected() Select {
	if c.Select == "" && len(c.Profiles) > 0 {
		return SelectOptional
	}
	return cmp.Or(c.Select, SelectDefault)
}

// CreatesNamespace reports whether activation creates a namespace for a component of the cluster, whose own namespace is home.
func (c *Component) CreatesNamespace(name, home string) bool {
	return c.Scope == ScopeCluster && !IsSystemNamespace(name) && (name == home || slices.Contains(c.Namespaces, name))
}

// ReleaseName is the name under which the chart of the component is rendered.
func (c *Component) ReleaseName() string { return cmp.Or(c.Release, c.Name) }

// ComponentImage is the image of a component that is an operator.
func (s *Solution) ComponentImage(c *Component) ImageRef { return c.Image.ref(c.Name, s.Spec.Version) }

// Select decides whether a component belongs to a deployment.
type Select string

// How components are selected.
const (
	// SelectAlways: it cannot be deselected.
	SelectAlways Select = "always"
	// SelectDefault: unless it is deselected. With profiles: where one of them is chosen, or none at all.
	SelectDefault Select = "default"
	// SelectOptional: when it is chosen by its name or one of its profiles.
	SelectOptional Select = "optional"
)

// Hooks say how the hooks of a chart are treated.
type Hooks struct {
	// PostAfter is when hooks after an installation or upgrade run: once everything is applied, as Helm does, or once it is ready.
	PostAfter Until `json:"postAfter,omitempty"`
	// Ignore are hooks that never run: events, such as post-install, and objects, such as Job/db-drop.
	Ignore []string `json:"ignore,omitempty"`
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
	UntilApplied  Until = "Applied" // its objects are in the cluster
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
