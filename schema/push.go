package schema

// PushReport lists the images that `solutionctl deploy push` uploads to a registry, or has uploaded.
type PushReport struct {
	Solution string `json:"solution" schema:"name"`
	Version  string `json:"version" schema:"version"`
	// Registry is where images are pushed: HOST[:PORT]/PATH.
	Registry string        `json:"registry"`
	Images   []PushedImage `json:"images"`
	// Blobs and Bytes count layers, configurations and files of artifacts, each once.
	Blobs int   `json:"blobs" schema:"minimum=0"`
	Bytes int64 `json:"bytes" schema:"minimum=0"`
	// NewBlobs and NewBytes count blobs that the registry does not have; they are uploaded.
	NewBlobs int   `json:"newBlobs" schema:"minimum=0"`
	NewBytes int64 `json:"newBytes" schema:"minimum=0"`
	// Mounts is how many blobs the registry links from one repository into another.
	Mounts int  `json:"mounts" schema:"minimum=0"`
	DryRun bool `json:"dryRun"`
	// Recorded is true when the cluster's record has the registry as an endpoint.
	Recorded bool `json:"recorded"`
}

// PushedImage is an image and its place in a registry.
type PushedImage struct {
	Name       string `json:"name"`
	Repository string `json:"repository"` // HOST[:PORT]/PATH, without the tag
	Tag        string `json:"tag"`
	Digest     string `json:"digest" schema:"digest"`
}
