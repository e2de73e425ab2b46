package oci_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/solutionctl/solutionctl/build/oci"
)

// TestDefaultKeychain: the longest key that leads to a repository has its credentials, in files of any tool.
func TestDefaultKeychain(t *testing.T) {
	for _, test := range []struct {
		name, repo string
		keys       []string // each is the password of its login
		want       string   // "" for none
	}{
		{"registry", "registry.example.com/team/app", []string{"registry.example.com"}, "registry.example.com"},
		{"registry with a port", "registry.example.com:5000/team/app", []string{"registry.example.com:5000", "registry.example.com"}, "registry.example.com:5000"},
		{"address", "registry.example.com/team/app", []string{"https://registry.example.com/v2/"}, "https://registry.example.com/v2/"},
		{"namespace", "registry.example.com/team/app", []string{"registry.example.com", "registry.example.com/team"}, "registry.example.com/team"},
		{"namespace of several", "registry.example.com/a/b/app", []string{"registry.example.com/a", "registry.example.com/a/b"}, "registry.example.com/a/b"},
		{"repository", "registry.example.com/team/app", []string{"registry.example.com/team/app", "registry.example.com/team"}, "registry.example.com/team/app"},
		{"another registry", "registry.example.com/team/app", []string{"registry.example.org", "registry.example.com:5000"}, ""},
		{"docker hub as docker writes it", "team/app", []string{"https://index.docker.io/v1/"}, "https://index.docker.io/v1/"},
		{"docker hub as podman writes it", "team/app", []string{"docker.io"}, "docker.io"},
		{"an official image of docker hub", "nginx", []string{"docker.io"}, "docker.io"},
		{"namespace of docker hub", "team/app", []string{"docker.io", "docker.io/team", "https://index.docker.io/v1/"}, "docker.io/team"},
		{"no key", "registry.example.com/team/app", nil, ""},
	} {
		for _, file := range []string{".docker/config.json", "containers/auth.json"} {
			t.Run(test.name+" in "+filepath.Base(file), func(t *testing.T) {
				home := t.TempDir()
				for _, variable := range []string{"HOME", "USERPROFILE", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"} {
					t.Setenv(variable, home)
				}
				t.Setenv("DOCKER_CONFIG", filepath.Join(home, ".docker"))
				t.Setenv("REGISTRY_AUTH_FILE", "")
				writeLogins(t, filepath.Join(home, file), test.keys)
				repo, err := name.NewRepository(test.repo)
				if err != nil {
					t.Fatal(err)
				}
				auth, err := oci.DefaultKeychain().Resolve(repo)
				if err != nil {
					t.Fatal(err)
				}
				config, err := authn.Authorization(t.Context(), auth)
				if err != nil || config.Password != test.want {
					t.Errorf("got the login %q, want %q: %v", config.Password, test.want, err)
				}
			})
		}
	}
}

// TestNoHome: without a home directory, logins in the current directory are not used, unless a variable names them.
func TestNoHome(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, variable := range []string{"HOME", "USERPROFILE", "XDG_RUNTIME_DIR", "DOCKER_CONFIG", "REGISTRY_AUTH_FILE"} {
		t.Setenv(variable, "")
	}
	t.Setenv("XDG_CONFIG_HOME", ".config")
	for _, file := range []string{".docker/config.json", ".config/containers/auth.json"} {
		writeLogins(t, file, []string{"registry.example.com"})
	}
	repo, err := name.NewRepository("registry.example.com/app")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"", "registry.example.com"} {
		auth, err := oci.DefaultKeychain().Resolve(repo)
		if err != nil {
			t.Fatal(err)
		}
		if config, err := authn.Authorization(t.Context(), auth); err != nil || config.Password != want {
			t.Errorf("got the login %q, want %q: %v", config.Password, want, err)
		}
		t.Setenv("DOCKER_CONFIG", ".docker")
	}
}

// TestCredentialFiles: of several files the first with a login for the repository counts.
func TestCredentialFiles(t *testing.T) {
	const registry = "registry.example.com"
	repo, err := name.NewRepository(registry + "/team/app")
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"given/auth.json", "runtime/containers/auth.json", "config/containers/auth.json", "docker/config.json"}
	for first := range files {
		home := t.TempDir()
		for variable, dir := range map[string]string{
			"HOME": "", "USERPROFILE": "", "XDG_RUNTIME_DIR": "runtime", "XDG_CONFIG_HOME": "config", "DOCKER_CONFIG": "docker", "REGISTRY_AUTH_FILE": files[0],
		} {
			t.Setenv(variable, filepath.Join(home, dir))
		}
		for i, file := range files {
			if i < first {
				writeLogins(t, filepath.Join(home, file), []string{"registry.example.org"})
			} else {
				writePasswords(t, filepath.Join(home, file), map[string]string{registry: file})
			}
		}
		auth, err := oci.DefaultKeychain().Resolve(repo)
		if err != nil {
			t.Fatal(err)
		}
		config, err := authn.Authorization(t.Context(), auth)
		if err != nil || config.Password != files[first] {
			t.Errorf("got the login of %q, want that of %q: %v", config.Password, files[first], err)
		}
	}
}

// writeLogins writes a configuration file with a login for each key, whose password is the key.
func writeLogins(t *testing.T, file string, keys []string) {
	t.Helper()
	passwords := map[string]string{}
	for _, key := range keys {
		passwords[key] = key
	}
	writePasswords(t, file, passwords)
}

// writePasswords writes a configuration file with a login for each key.
func writePasswords(t *testing.T, file string, passwords map[string]string) {
	t.Helper()
	auths := map[string]any{}
	for key, password := range passwords {
		auths[key] = map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte("user:" + password))}
	}
	data, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		t.Fatal(err)
	}
	if err = os.MkdirAll(filepath.Dir(file), 0o755); err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
