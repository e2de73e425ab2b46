package schema

import (
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Preload lists the images that nodes need and what was done on each node. `solutionctl deploy node preload` prints it.
type Preload struct {
	// Images are the images that each node needs, by the references of pods.
	Images []string `json:"images"`
	// Nodes has an entry for each node that was asked for.
	Nodes []NodePreload `json:"nodes"`
	// Notices list facts that the administrator should know.
	Notices []string `json:"notices"`
	// DryRun is true when nothing was changed.
	DryRun bool `json:"dryRun"`
}

// NodePreload is the result of a [Preload] on one node.
type NodePreload struct {
	Node string `json:"node"`
	// Runtime is the container runtime with its version.
	Runtime string `json:"runtime,omitempty"`
	// Present is the number of images that the node had before.
	Present int `json:"present" schema:"minimum=0"`
	// Pulled is the number of images that were pulled.
	Pulled int `json:"pulled" schema:"minimum=0"`
	// Pinned is the number of images that the kubelet no longer removes since this run.
	Pinned int `json:"pinned" schema:"minimum=0"`
	// Released is the number of images that were pinned by an earlier run, and that the kubelet may remove again.
	Released int `json:"released" schema:"minimum=0"`
	// Missing are the images that the node still lacks.
	Missing []string `json:"missing,omitempty"`
	// Unpinned are images on the node that the kubelet may remove.
	Unpinned []string `json:"unpinned,omitempty"`
	// Code, Problem and Hint describe the failure on this node.
	Code    report.Code `json:"code,omitempty"`
	Problem string      `json:"problem,omitempty"`
	Hint    string      `json:"hint,omitempty"`
}

// PreloadedImages records which images the nodes of a cluster keep. It is stored in the ConfigMap solutionctl-system/preload.
type PreloadedImages struct {
	Stamp
	// Sets are lists of images, by a short digest: most nodes have the same ones.
	Sets  map[string][]string      `json:"sets"`
	Nodes map[string]PreloadedNode `json:"nodes"`
}

// PreloadedNode is a node of [PreloadedImages].
type PreloadedNode struct {
	// Set names the images that the node had after the last run.
	Set string `json:"set"`
	// Unpinned is true when its container runtime does not keep all of them.
	Unpinned bool      `json:"unpinned,omitempty"`
	At       time.Time `json:"at"`
}
