package schema

// ComponentGraph is what a version of a Solution is made of, in the order in which it is brought up, and why each part belongs to a
// deployment or not.
type ComponentGraph struct {
	Solution string `json:"solution" schema:"minLength=1 maxLength=63"`
	Version  string `json:"version" schema:"minLength=1"`
	// Profiles are those that components name.
	Profiles []string `json:"profiles,omitempty"`
	// Chosen are those that were chosen.
	Chosen     []string        `json:"chosen,omitempty"`
	Components []ComponentNode `json:"components"`
}

// ComponentNode is one part of a Solution: a component, its operator or its user interface.
type ComponentNode struct {
	Name string        `json:"name" schema:"minLength=1 maxLength=63"`
	Kind ComponentKind `json:"kind"`
	// Path is where it lies in the archive.
	Path  string `json:"path,omitempty"`
	Scope Scope  `json:"scope"`
	// Level is the number of parts on the longest way to one that waits for nothing. It is for pictures: nothing waits for a level.
	Level     int                   `json:"level" schema:"minimum=0"`
	DependsOn []ComponentDependency `json:"dependsOn,omitempty"`

	// Profiles are those that choose it.
	Profiles []string `json:"profiles,omitempty"`
	Selected bool     `json:"selected"`
	// Reason tells why it is selected, or why not; By is the profile or the component that is the reason.
	Reason SelectionReason `json:"reason"`
	By     string          `json:"by,omitempty"`

	// Status is how it is where it is deployed; absent where it is not, or where nobody asked for it.
	Status *ComponentStatus `json:"status,omitempty"`
}

// SelectionReason is why a part of a Solution belongs to a deployment, or why not.
type SelectionReason string

// The reasons; the last two are those why not.
const (
	SelectedAlways    SelectionReason = "always"
	SelectedByDefault SelectionReason = "default"
	SelectedByProfile SelectionReason = "profile"
	SelectedByName    SelectionReason = "name"
	SelectedAsNeeded  SelectionReason = "needed"
	Deselected        SelectionReason = "deselected"
	NotSelected       SelectionReason = "not-selected"
)
