package schema

// ComponentGraph lists the parts of a version of a Solution in the order in which they start, with the reason why each part
// is selected for a deployment or not.
type ComponentGraph struct {
	Solution string `json:"solution" schema:"minLength=1 maxLength=63"`
	Version  string `json:"version" schema:"minLength=1"`
	// Profiles lists the profiles that components name.
	Profiles []string `json:"profiles,omitempty"`
	// Chosen lists the selected profiles.
	Chosen     []string        `json:"chosen,omitempty"`
	Components []ComponentNode `json:"components"`
}

// AddStatus sets the status of those components that a list has.
func (g *ComponentGraph) AddStatus(list []ComponentStatus) {
	for i := range g.Components {
		for at := range list {
			if list[at].Name == g.Components[i].Name {
				g.Components[i].Status = &list[at]
			}
		}
	}
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

	// Profiles lists the profiles that select the part.
	Profiles []string `json:"profiles,omitempty"`
	Selected bool     `json:"selected"`
	// Reason is why the part is selected or not; By is the profile or component that caused it.
	Reason SelectionReason `json:"reason"`
	By     string          `json:"by,omitempty"`

	// Status is the state of the deployed part; absent when it is not deployed or the state was not requested.
	Status *ComponentStatus `json:"status,omitempty"`
}

// SelectionReason is why a part of a Solution belongs to a deployment, or why not.
type SelectionReason string

// The reasons; with the last two, the part is not selected.
const (
	SelectedAlways    SelectionReason = "always"
	SelectedByDefault SelectionReason = "default"
	SelectedByProfile SelectionReason = "profile"
	SelectedByName    SelectionReason = "name"
	SelectedAsNeeded  SelectionReason = "needed"
	Deselected        SelectionReason = "deselected"
	NotSelected       SelectionReason = "not-selected"
)
