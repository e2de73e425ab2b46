package node_test

import (
	"path"
	"slices"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/host/node"
	"github.com/solutionctl/solutionctl/schema"
)

// TestMirrorsStay: a caller that does not know what was chosen on a node costs it neither its mirrors nor its directory; an empty list
// removes mirrors.
func TestMirrorsStay(t *testing.T) {
	const other = "version = 3\n[plugins.'io.containerd.cri.v1.images'.registry]\nconfig_path = '/etc/containerd/certs.d:/srv/certs.d'\n"
	for _, test := range []struct {
		runtime  node.Runtime
		certsDir string
		files    []string // one, or one for each mirror and the registry
	}{
		{node.Containerd, "", []string{"/etc/containerd/certs.d/docker.io/hosts.toml", "/etc/containerd/certs.d/quay.io/hosts.toml"}},
		{node.Containerd, "/srv/certs.d", []string{"/srv/certs.d/docker.io/hosts.toml", "/srv/certs.d/quay.io/hosts.toml"}},
		{node.K0s, "", []string{"/etc/k0s/certs.d/docker.io/hosts.toml"}},
		{node.MicroK8s, "", []string{"/var/snap/microk8s/current/args/certs.d/docker.io/hosts.toml"}},
		{node.CRIO, "", []string{"/etc/containers/registries.conf.d/50-solutionctl.conf"}},
		{node.K3s, "", []string{"/etc/rancher/k3s/registries.yaml"}},
	} {
		t.Run(path.Join(string(test.runtime), test.certsDir), func(t *testing.T) {
			root := host(t, map[string]string{"/etc/containerd/config.toml": other})
			given := node.Config{
				Runtime: test.runtime, CertsDir: test.certsDir, Host: schema.RegistryHostOwn, Endpoints: []string{"http://10.0.0.1:5000"}, Mirrors: []string{"quay.io", "docker.io"},
			}
			apply(t, root, given)
			unknown := given
			unknown.Mirrors, unknown.CertsDir = nil, ""
			for name, action := range apply(t, root, unknown) {
				if action != "keep" {
					t.Errorf("%s: %s", name, action)
				}
			}
			unknown.Endpoints = []string{"http://10.0.0.2:5000"}
			got := apply(t, root, unknown)
			for _, file := range test.files {
				if got[file] != "update" {
					t.Errorf("%s with another endpoint: %q", file, got[file])
				}
			}
			unknown.Endpoints = []string{"http://10.0.0.2:5000/below"} // where no mirror can be
			unknown.Mirrors = nil
			apply(t, root, unknown)
			unknown.Endpoints = given.Endpoints
			apply(t, root, given)
			unknown.Mirrors = []string{}
			got = apply(t, root, unknown)
			for _, file := range test.files {
				if want := map[bool]string{true: "remove", false: "update"}[path.Base(file) == "hosts.toml"]; got[file] != want {
					t.Errorf("%s without mirrors: %q, want %q", file, got[file], want)
				}
			}
			unknown.Mirrors = nil
			if actions := apply(t, root, unknown); slices.ContainsFunc(test.files, func(file string) bool { return actions[file] != "" && actions[file] != "keep" }) {
				t.Errorf("none stay none: %v", actions)
			}
		})
	}
}
