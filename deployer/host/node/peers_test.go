package node_test

import (
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/host/node"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestPeers: a peer is asked first, and by digest only, whatever runtime asks it.
func TestPeers(t *testing.T) {
	const first = "# Written by 'solutionctl deploy node config', which replaces or removes it. Do not edit.\n"
	for _, test := range []struct {
		runtime node.Runtime
		want    map[string]string // by the base name of the file
	}{
		{node.Containerd, map[string]string{"hosts.toml": first + `server = "http://10.0.0.1:5000"
capabilities = ["pull", "resolve"]
dial_timeout = "1s"

[host."http://10.0.0.7:30020"]
  capabilities = ["pull"]
  dial_timeout = "200ms"

  [host."http://10.0.0.7:30020".header]
    X-Dragonfly-Registry = "http://10.0.0.1:5000"

[host."https://cache.example.com"]
  capabilities = ["pull"]
  dial_timeout = "200ms"

  [host."https://cache.example.com".header]
    X-Dragonfly-Registry = "http://10.0.0.1:5000"

[host."http://10.0.0.1:5000"]
  capabilities = ["pull", "resolve"]
  dial_timeout = "1s"
`}},
		{node.CRIO, map[string]string{"50-solutionctl.conf": first + `
[[registry]]
prefix = "registry.solutionctl.invalid"
location = "10.0.0.1:5000"
insecure = true

[[registry.mirror]]
location = "10.0.0.7:30020"
insecure = true
pull-from-mirror = "digest-only"

[[registry.mirror]]
location = "cache.example.com"
pull-from-mirror = "digest-only"
`}},
	} {
		got := contents(t, node.Config{
			Runtime: test.runtime, Host: "registry.solutionctl.invalid", Endpoints: []string{"http://10.0.0.1:5000"},
			Peers: []string{"HTTP://10.0.0.7:30020/", "https://cache.example.com", "http://10.0.0.7:30020"},
		})
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s:\n%s", test.runtime, diff)
		}
	}
}

// TestPeersStay: a changed endpoint does not cost a node its peers; an empty list does.
func TestPeersStay(t *testing.T) {
	for _, test := range []struct {
		runtime node.Runtime
		file    string
	}{
		{node.Containerd, "/etc/containerd/certs.d/registry.solutionctl.invalid/hosts.toml"},
		{node.K0s, "/etc/k0s/certs.d/registry.solutionctl.invalid/hosts.toml"},
		{node.CRIO, "/etc/containers/registries.conf.d/50-solutionctl.conf"},
	} {
		root := host(t, map[string]string{"/etc/containerd/config.toml": goodConfig})
		c := node.Config{Runtime: test.runtime, Host: "registry.solutionctl.invalid", Endpoints: []string{"http://10.0.0.1:5000"}, Mirrors: []string{"docker.io"}}
		peers := []string{"https://z.example.com", "http://10.0.0.7:30020"}
		for _, step := range []struct {
			name, endpoint string
			given, want    []string
			action         string
		}{
			{"none yet", "http://10.0.0.1:5000", nil, nil, "create"},
			{"given", "http://10.0.0.1:5000", peers, peers, "update"},
			{"again", "http://10.0.0.1:5000", nil, peers, "keep"},
			{"another endpoint", "http://10.0.0.2:5000", nil, peers, "update"},
			{"none", "http://10.0.0.2:5000", []string{}, nil, "update"},
			{"none stay", "http://10.0.0.2:5000", nil, nil, "keep"},
		} {
			c.Endpoints, c.Peers = []string{step.endpoint}, step.given
			if got := apply(t, root, c)[test.file]; got != step.action {
				t.Errorf("%s, %s: %q", test.runtime, step.name, got)
			}
			c.Peers = step.want
			files, err := node.Files(c)
			if err != nil {
				t.Fatal(err)
			}
			have := have(t, root)
			for _, file := range files {
				if path.Base(file.Path) == path.Base(test.file) && have[file.Path] != string(file.Content) {
					t.Errorf("%s, %s: %s:\n%s", test.runtime, step.name, file.Path, cmp.Diff(string(file.Content), have[file.Path]))
				}
			}
		}
	}
}

// TestPeersOfAnotherRuntime: a node that had containerd, and peers, becomes one of K3s, which cannot have any.
func TestPeersOfAnotherRuntime(t *testing.T) {
	const hosts = "/etc/containerd/certs.d/registry.solutionctl.invalid/hosts.toml"
	root := host(t, map[string]string{"/etc/containerd/config.toml": goodConfig})
	c := node.Config{Runtime: node.Containerd, Host: "registry.solutionctl.invalid", Endpoints: []string{"http://10.0.0.1:5000"}, Peers: []string{"http://10.0.0.7:30020"}}
	apply(t, root, c)
	c.Runtime, c.Peers = node.K3s, nil
	if got := apply(t, root, c); got[hosts] != "remove" || got["/etc/rancher/k3s/registries.yaml"] != "create" {
		t.Errorf("%v", got)
	}
}

// TestRefusedPeers: no peer can be asked for a tag, which it could answer with any image.
func TestRefusedPeers(t *testing.T) {
	peers := func(runtime node.Runtime, peers ...string) error {
		c := config(runtime)
		c.Peers = peers
		if runtime != "" {
			_, err := node.Files(c)
			return err
		}
		_, err := node.Talos(c)
		return err
	}
	for name, err := range map[string]error{
		"k3s":        peers(node.K3s, "http://10.0.0.7:30020"),
		"rke2":       peers(node.RKE2, "http://10.0.0.7:30020"),
		"talos":      peers("", "http://10.0.0.7:30020"),
		"no URL":     peers(node.Containerd, "10.0.0.7:30020"),
		"password":   peers(node.Containerd, "http://u:p@10.0.0.7:30020"),
		"path":       peers(node.CRIO, "http://10.0.0.7:30020/cache"),
		"v2":         peers(node.Containerd, "http://10.0.0.7:30020/v2"),
		"quotes":     peers(node.Containerd, "http://a\"\nserver=\"b"),
		"endpoint":   peers(node.Containerd, "https://10.0.0.2:5000"),
		"other case": peers(node.Containerd, "HTTPS://10.0.0.1:5000/"),
	} {
		if report.CodeOf(err) != report.Usage {
			t.Errorf("%s: got %s: %v", name, report.CodeOf(err), err)
		}
	}
}
