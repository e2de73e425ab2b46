package schema

// NodeConfig is what `solutionctl deploy node config` prints.
type NodeConfig struct {
	Runtime string     `json:"runtime,omitempty"`
	Files   []NodeFile `json:"files"`
	// Notes say what is left to do for a person.
	Notes []string `json:"notes"`
	// DryRun is true when nothing was written.
	DryRun bool `json:"dryRun"`
}

// NodeFile is one file of a node, and what happened to it.
type NodeFile struct {
	Path    string     `json:"path"`
	Action  NodeAction `json:"action"`
	Content string     `json:"content,omitempty"`
}

// NodeAction is what happens to a file of a node.
type NodeAction string

// The actions.
const (
	NodeCreate NodeAction = "create"
	NodeUpdate NodeAction = "update"
	NodeRemove NodeAction = "remove"
	NodeKeep   NodeAction = "keep"
)
