package artifact

import (
	"strings"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Scheme begins the name of an archive in a registry.
const Scheme = "oci://"

// ServedIn begins the repositories of the archives that a host serves to others: the name of the Solution follows.
const ServedIn = "archives/"

// Reference names an archive in a registry.
type Reference struct {
	Repository string // HOST[:PORT]/PATH
	Tag        string // "" with a digest, and where none was named
	Digest     string // sha256:…, or ""
}

// ParseReference reads oci://HOST[:PORT]/PATH[:TAG] or oci://HOST[:PORT]/PATH@sha256:….
func ParseReference(text string) (Reference, error) {
	rest, ok := strings.CutPrefix(text, Scheme)
	host, path, hasPath := strings.Cut(rest, "/")
	if !ok || !hasPath || host == "" || path == "" || strings.Contains(host, "@") {
		return Reference{}, report.Errorf(report.Usage, "%q is not the name of an archive in a registry", withoutLogin(text)).
			WithHint("write oci://HOST[:PORT]/PATH:TAG, such as oci://registry.example.com/solutions/demo:1.0.0; logins come from the configuration of docker or podman")
	}
	r := Reference{}
	path, r.Digest, _ = strings.Cut(path, "@")
	path, r.Tag, _ = strings.Cut(path, ":")
	r.Repository = host + "/" + path
	if err := oci.CheckRepository(r.Repository); err != nil {
		return Reference{}, err
	}
	if r.Tag != "" && !validTag.MatchString(r.Tag) || r.Digest != "" && !validDigest.MatchString(r.Digest) {
		return Reference{}, report.Errorf(report.Usage, "%q has no valid tag or digest", text).
			WithHint("a tag has letters, digits, '_', '.' and '-', at most 128; a digest is sha256: and 64 hexadecimal digits")
	}
	if r.Digest != "" {
		r.Tag = "" // the digest decides
	}
	return r, nil
}

var (
	validTag    = lazyregexp.New(`^[0-9A-Za-z_][0-9A-Za-z_.-]{0,127}$`)
	validDigest = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)
)

// withoutLogin removes a login from what may be an address.
func withoutLogin(text string) string {
	if _, rest, ok := strings.Cut(text, "@"); ok && !strings.HasPrefix(rest, "sha256:") {
		return Scheme + "…@" + rest
	}
	return text
}

// name is the reference as registries know it.
func (r Reference) name() string {
	if r.Digest != "" {
		return r.Repository + "@" + r.Digest
	}
	return r.Repository + ":" + r.Tag
}

// String is the text that ParseReference reads.
func (r Reference) String() string {
	if r.Digest == "" && r.Tag == "" {
		return Scheme + r.Repository
	}
	return Scheme + r.name()
}

// DefaultTag is the tag of a version: a tag has no "+".
func DefaultTag(version string) string { return strings.ReplaceAll(version, "+", "_") }
