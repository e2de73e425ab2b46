package schema

import "time"

// Imports is the catalogue of a cluster: the versions of Solutions that were imported, by id. It is stored in the Secret
// solutionctl-system/imports, key imports.json. Only what it names is ever deployed.
type Imports struct {
	Stamp
	Imports map[string]Import `json:"imports"`
}

// Import is one imported version of a Solution.
type Import struct {
	Name    string          `json:"name"`
	Version string          `json:"version"`
	Archive ImportedArchive `json:"archive"`
	// Payload is the digest of everything in the archive but its images. The content is kept in the cluster.
	Payload string `json:"payload"`
	// Images are the images of the archive, by name:tag, and their digests.
	Images map[string]string `json:"images"`
	// DependsOn are the Solutions that it needs.
	DependsOn  []Dependency `json:"dependsOn,omitempty"`
	ImportedAt time.Time    `json:"importedAt"`
	ImportedBy string       `json:"importedBy"`
}

// ID is <name>-<version>.
func (i Import) ID() string { return i.Name + "-" + i.Version }

// ImportedArchive is the file that a version was imported from.
type ImportedArchive struct {
	// Path is where the archive is on the host that imported it.
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// RegistryMode says who serves the images of imported archives.
type RegistryMode string

// The modes. The first import chooses one for the cluster.
const (
	RegistryOwn      RegistryMode = "own"      // solutionctl deploy serve
	RegistryMetalK8s RegistryMode = "metalk8s" // MetalK8s' nginx, from mounted archives
)

// ClusterRegistry is where the nodes of a cluster find images. It is stored in the ConfigMap solutionctl-system/registry,
// key registry.json.
type ClusterRegistry struct {
	Stamp
	Mode RegistryMode `json:"mode"`
	// Host is the name in front of every image reference. It is a name for the node's configuration only; nobody resolves it.
	Host string `json:"host"`
	// Endpoints are the URLs behind Host, tried in this order.
	Endpoints []string `json:"endpoints"`
	// CA are the certificates, in PEM, that the endpoints' certificates are signed by; empty where the node trusts them anyway.
	CA string `json:"ca,omitempty"`
}

// Names in front of image references. Nothing resolves them: they lead nowhere but where the node's configuration says.
const (
	RegistryHostOwn      = "registry.solutionctl.invalid"
	RegistryHostMetalK8s = "metalk8s-registry-from-config.invalid"
)
