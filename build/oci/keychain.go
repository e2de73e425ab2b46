package oci

import (
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// Keychain finds the credentials of a registry.
type Keychain = authn.Keychain

// DefaultKeychain reads the configuration files of docker and podman and runs the credential programs they name. As with
// podman, a login to a namespace or a repository is preferred to one to its registry, the longest first.
func DefaultKeychain() Keychain { return longestFirst{authn.DefaultKeychain} }

// longestFirst asks a keychain for a repository, for each namespace that it is in, and for its registry.
type longestFirst struct{ Keychain }

// Resolve returns the credentials of the longest key that leads to a repository.
func (k longestFirst) Resolve(target authn.Resource) (authn.Authenticator, error) {
	for _, key := range credentialKeys(target.String()) {
		auth, err := k.Keychain.Resolve(key)
		if err != nil || auth != authn.Anonymous {
			return auth, err
		}
	}
	return authn.Anonymous, nil
}

// credentialKey is a name under which credentials are kept: a registry or "REGISTRY/NAMESPACE".
type credentialKey string

func (k credentialKey) String() string      { return string(k) }
func (k credentialKey) RegistryStr() string { return string(k) }

// credentialKeys lists the names under which the credentials of a repository may be kept, the longest first. For namespaces of
// Docker Hub, podman has another name than the library.
func credentialKeys(repo string) []credentialKey {
	var keys []credentialKey
	for {
		keys = append(keys, credentialKey(repo))
		if rest, ok := strings.CutPrefix(repo, name.DefaultRegistry); ok && strings.HasPrefix(rest, "/") {
			keys = append(keys, credentialKey("docker.io"+rest))
		}
		end := strings.LastIndexByte(repo, '/')
		if end < 0 {
			return keys
		}
		repo = repo[:end]
	}
}
