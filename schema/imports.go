package schema

import (
	"net/url"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Imports is the catalogue of a cluster: the versions of Solutions that were imported, by id. It is stored in the Secret
// solutionctl-system/imports, key imports.json. Only what it names is ever deployed.
type Imports struct {
	Stamp
	Imports map[string]Import `json:"imports"` // by <name>-<version>
}

// Import is one imported version of a Solution.
type Import struct {
	Name    string          `json:"name" schema:"name"`
	Version string          `json:"version" schema:"version"`
	Archive ImportedArchive `json:"archive"`
	// Payload is the digest of everything in the archive but its images. The content is kept in the cluster.
	Payload string `json:"payload" schema:"digest"`
	// Images are the images of the archive, by name:tag, and their digests.
	Images map[string]string `json:"images" schema:"digest"`
	// DependsOn are the Solutions that it needs.
	DependsOn []Dependency `json:"dependsOn,omitempty"`
	// Signers are the names of the keys whose signatures counted when it was imported: none of an import without a trusted signature. They are
	// absent where the record does not have them.
	Signers    []string  `json:"signers,omitzero"`
	ImportedAt time.Time `json:"importedAt"`
	ImportedBy string    `json:"importedBy"`
}

// ID is <name>-<version>.
func (i Import) ID() string { return i.Name + "-" + i.Version }

// ImportedArchive is the file that a version was imported from.
type ImportedArchive struct {
	// Path is where the archive is on the host that imported it.
	Path   string `json:"path"`
	SHA256 string `json:"sha256" schema:"sha256"`
	Size   int64  `json:"size" schema:"minimum=0"`
}

// RegistryMode names the server of the images of imported archives.
type RegistryMode string

// The modes. The first import chooses one for the cluster.
const (
	RegistryOwn      RegistryMode = "own"      // solutionctl deploy serve
	RegistryMetalK8s RegistryMode = "metalk8s" // MetalK8s' nginx, from mounted archives
	// RegistryExternal is a registry of the site that images were pushed to, perhaps beside 'solutionctl deploy serve'. Images
	// have the same names as with RegistryOwn, so that a cluster changes between the two.
	RegistryExternal RegistryMode = "external"
)

// ClusterRegistry holds the endpoints at which the nodes of a cluster get images. It is stored in the ConfigMap
// solutionctl-system/registry, key registry.json.
type ClusterRegistry struct {
	Stamp
	Mode RegistryMode `json:"mode"`
	// Host is the name in front of every image reference. It is a name for the node's configuration only and is never
	// resolved.
	Host string `json:"host" schema:"host"`
	// Endpoints are the URLs behind Host, tried in this order. One with a path is a registry that images were pushed to, in
	// repositories below that path.
	Endpoints []string `json:"endpoints" schema:"url"`
	// CA are the certificates, in PEM, that the endpoints' certificates are signed by; empty where the node trusts them anyway.
	CA string `json:"ca,omitempty"`
	// Authorities maps an endpoint to its certificates out of CA. An endpoint without an entry uses all of CA.
	Authorities map[string]string `json:"authorities,omitempty"`
}

// Authority returns the certificates, in PEM, that the certificate of an endpoint is signed by.
func (r *ClusterRegistry) Authority(endpoint string) string {
	if own, ok := r.Authorities[endpoint]; ok {
		return own
	}
	if strings.HasPrefix(endpoint, "https://") {
		return r.CA
	}
	return ""
}

// registryHostPattern matches a registry: a name or an address, with or without a port.
var registryHostPattern = lazyregexp.New(`^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?$`)

// ValidRegistryHost reports whether a text is a registry: HOST or HOST:PORT.
func ValidRegistryHost(host string) bool {
	return registryHostPattern.MatchString(host) && !strings.Contains(host, "..")
}

// repositoryPattern matches the path of a repository, as OCI's distribution specification has it.
var repositoryPattern = lazyregexp.New(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$`)

// ParseEndpoint reads the URL of a registry, and returns the one way to write it.
func ParseEndpoint(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || !ValidRegistryHost(u.Host) || !strings.EqualFold(strings.TrimSuffix(text, "/"), strings.TrimSuffix(u.Scheme+"://"+u.Host+u.Path, "/")) {
		return "", report.Errorf(report.Usage, "endpoint %q is not a URL like https://10.0.0.1:5000", text)
	}
	endpoint := strings.ToLower(u.Scheme + "://" + u.Host)
	prefix := strings.Trim(u.Path, "/")
	switch {
	case prefix == "":
		return endpoint, nil
	case !repositoryPattern.MatchString(prefix) || strings.HasPrefix(prefix+"/", "v2/"):
		return "", report.Errorf(report.Usage, "endpoint %q is not a URL like https://10.0.0.1:5000, or with the path of repositories, as https://registry.example.com/solutions", text).
			WithHint("write the path in small letters, without v2")
	}
	return endpoint + "/" + prefix, nil
}

// SplitEndpoint takes an endpoint apart: the URL of the registry, and the prefix of the repositories in it, "" for one that
// has nothing but images of Solutions.
func SplitEndpoint(endpoint string) (registry, prefix string) {
	scheme, rest, _ := strings.Cut(endpoint, "://")
	host, prefix, _ := strings.Cut(strings.TrimSuffix(rest, "/"), "/")
	return scheme + "://" + host, prefix
}

// IsPushedTo reports whether an endpoint is a registry that images were pushed to: one with a path.
func IsPushedTo(endpoint string) bool {
	_, prefix := SplitEndpoint(endpoint)
	return prefix != ""
}

// EndpointPlace is an endpoint without its protocol: HOST[:PORT][/PATH].
func EndpointPlace(endpoint string) string {
	_, place, _ := strings.Cut(endpoint, "://")
	return place
}

// EndpointPath is the URL below which an endpoint has its repositories: with /v2 before the prefix.
func EndpointPath(endpoint string) string {
	registry, prefix := SplitEndpoint(endpoint)
	return strings.TrimSuffix(registry+"/v2/"+prefix, "/")
}

// Host names of image references. They are never resolved: the node's configuration maps them to an endpoint.
const (
	RegistryHostOwn      = "registry.solutionctl.invalid"
	RegistryHostMetalK8s = "metalk8s-registry-from-config.invalid"
)
