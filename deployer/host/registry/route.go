package registry

import (
	"strings"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

// operation is the kind of a request.
type operation int

const (
	other operation = iota // nothing that the specification knows
	ping
	catalog
	tagList
	manifestOf
	blobOf
	referrersOf
	operations
)

var operationNames = [operations]string{"other", "ping", "catalog", "tags", "manifest", "blob", "referrers"}

func (o operation) String() string { return operationNames[o] }

// route is the parsed path of a request.
type route struct {
	operation  operation
	repository string
	reference  string // tag or digest
}

// parseRoute reads a path. Repositories have any number of components, and these may be called anything, so that the end
// of the path decides.
func parseRoute(path string) (route, *failure) {
	rest, found := strings.CutPrefix(path, "/v2/")
	switch {
	case path == "/v2" || found && rest == "":
		return route{operation: ping}, nil
	case !found:
		return route{}, &failure{404, "NOT_FOUND", "there is nothing here; a registry answers below /v2/"}
	case rest == "_catalog":
		return route{operation: catalog}, nil
	}
	if name, ok := strings.CutSuffix(rest, "/tags/list"); ok {
		return checked(route{tagList, name, ""})
	}
	before, reference := cutLast(rest)
	name, kind := cutLast(before)
	switch kind {
	case "manifests":
		return checked(route{manifestOf, name, reference})
	case "blobs":
		return checked(route{blobOf, name, reference})
	case "referrers":
		return checked(route{referrersOf, name, reference})
	}
	return route{}, &failure{404, "NOT_FOUND", "the path is none of the distribution specification"}
}

func cutLast(path string) (before, last string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(0, i)], path[i+1:]
}

var digestPattern = lazyregexp.New(`^[a-z0-9]+(?:[+._-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$`)

// checked refuses names that no repository, tag or digest can have.
func checked(r route) (route, *failure) {
	if !validName(r.repository) {
		return r, &failure{400, "NAME_INVALID", "the name of the repository is not valid"}
	}
	switch r.operation {
	case manifestOf:
		if !strings.Contains(r.reference, ":") {
			if !schema.ValidImageTag(r.reference) {
				return r, &failure{404, "MANIFEST_UNKNOWN", "no tag can have this name"}
			}
			return r, nil
		}
		return r, checkDigest(r.reference)
	case blobOf, referrersOf:
		return r, checkDigest(r.reference)
	}
	return r, nil
}

func checkDigest(digest string) *failure {
	if !validDigest(digest) {
		return &failure{400, "DIGEST_INVALID", "the digest is not valid; write it as sha256: and 64 hexadecimal digits"}
	}
	return nil
}

func validDigest(digest string) bool {
	algorithm, hex, _ := strings.Cut(digest, ":")
	size := map[string]int{"sha256": 64, "sha512": 128}[algorithm]
	switch {
	case len(digest) > maxName || !digestPattern.MatchString(digest):
		return false
	case size == 0:
		return true // of an algorithm that no archive uses
	}
	return len(hex) == size && strings.Trim(hex, "0123456789abcdef") == ""
}

// maxName is the longest name that clients accept.
const maxName = 255

var namePattern = lazyregexp.New(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$`)

// validName reports whether name can be a repository.
func validName(name string) bool { return len(name) <= maxName && namePattern.MatchString(name) }
