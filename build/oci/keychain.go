package oci

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"
	"github.com/docker/cli/cli/config/types"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// Keychain finds the credentials of a registry.
type Keychain = authn.Keychain

// DefaultKeychain reads the configuration files of podman and docker and runs the credential programs they name. The first file with a login
// for a repository counts; in it, as with podman, a login to a namespace or a repository is preferred to one to its registry, the
// longest first.
func DefaultKeychain() Keychain { return credentialFiles(defaultCredentialFiles()) }

// defaultCredentialFiles lists where podman, skopeo and docker keep logins, in the order of containers-auth.json(5). Without a home
// directory there are fewer: only a variable of the file itself may lead into the current directory.
func defaultCredentialFiles() []string {
	env := func(variable, otherwise string) string {
		if value := os.Getenv(variable); value != "" { //nolint:forbidigo // where other tools keep their logins
			return value
		}
		return otherwise
	}
	home, _ := os.UserHomeDir()
	runtime := fmt.Sprintf("/run/containers/%d", os.Getuid())
	if dir := env("XDG_RUNTIME_DIR", ""); dir != "" {
		runtime = filepath.Join(dir, "containers")
	}
	config := env("XDG_CONFIG_HOME", "")
	if !filepath.IsAbs(config) {
		config = filepath.Join(home, ".config")
	}
	named := env("REGISTRY_AUTH_FILE", "")
	docker := filepath.Join(env("DOCKER_CONFIG", filepath.Join(home, ".docker")), "config.json")
	files := []string{named, filepath.Join(runtime, "auth.json"), filepath.Join(config, "containers", "auth.json"), docker}
	return slices.DeleteFunc(files, func(file string) bool {
		return file == "" || !filepath.IsAbs(file) && file != named && (file != docker || env("DOCKER_CONFIG", "") == "")
	})
}

// credentialFiles are files with logins. A missing file has none.
type credentialFiles []string

// Resolve returns the credentials of the longest key that leads to a repository, from the first file with one.
func (files credentialFiles) Resolve(target authn.Resource) (authn.Authenticator, error) {
	for _, file := range files {
		logins, err := loadLogins(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("logins in %s: %w", file, err)
		}
		for _, key := range credentialKeys(target.String()) {
			login, err := logins.GetAuthConfig(key)
			if err != nil {
				return nil, fmt.Errorf("login of %s: %w", key, err)
			}
			login.ServerAddress = "" // is always set
			if login == (types.AuthConfig{}) {
				continue
			}
			return authn.FromConfig(authn.AuthConfig{
				Username: login.Username, Password: login.Password, Auth: login.Auth,
				IdentityToken: login.IdentityToken, RegistryToken: login.RegistryToken,
			}), nil
		}
	}
	return authn.Anonymous, nil
}

func loadLogins(file string) (*configfile.ConfigFile, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fs.ErrNotExist
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	logins, err := config.LoadFromReader(f)
	if err != nil {
		return nil, err
	}
	for _, podman := range []string{name.DefaultRegistry, "docker.io"} { // the library knows Docker Hub as docker writes it
		login, ok := logins.AuthConfigs[podman]
		if _, docker := logins.AuthConfigs[authn.DefaultAuthKey]; ok && !docker {
			logins.AuthConfigs[authn.DefaultAuthKey] = login
		}
	}
	return logins, nil
}

// credentialKeys lists the names under which the credentials of a repository may be kept, the longest first. For namespaces of Docker Hub,
// podman has another name than the library.
func credentialKeys(repo string) []string {
	var keys []string
	for {
		keys = append(keys, repo)
		if rest, ok := strings.CutPrefix(repo, name.DefaultRegistry); ok && strings.HasPrefix(rest, "/") {
			keys = append(keys, "docker.io"+rest)
		}
		end := strings.LastIndexByte(repo, '/')
		if end < 0 {
			return keys
		}
		repo = repo[:end]
	}
}
