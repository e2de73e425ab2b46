package schema

// NodeConfig holds the files by which a node pulls from the registry. `solutionctl deploy node config` prints it.
type NodeConfig struct {
	Runtime string     `json:"runtime,omitempty" schema:"enum=containerd|crio"`
	Files   []NodeFile `json:"files"`
	// Notes lists steps that the administrator has to do.
	Notes []string `json:"notes"`
	// DryRun is true when nothing was written.
	DryRun bool `json:"dryRun"`
}

// NodeFile is one file of a [NodeConfig].
type NodeFile struct {
	Path    string     `json:"path"`
	Action  NodeAction `json:"action"`
	Content string     `json:"content,omitempty"` // of a file that is not removed
}

// NodeAction is a change of a file of a node.
type NodeAction string

// The actions.
const (
	NodeCreate NodeAction = "create"
	NodeUpdate NodeAction = "update"
	NodeRemove NodeAction = "remove"
	NodeKeep   NodeAction = "keep"
)
