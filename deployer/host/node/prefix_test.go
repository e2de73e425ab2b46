package node_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/host/node"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestPushedRegistry has a registry of the site with images below a path, beside a host that serves.
func TestPushedRegistry(t *testing.T) {
	const first = "# Written by 'solutionctl deploy node config', which replaces or removes it. Do not edit.\n"
	for _, test := range []struct {
		runtime node.Runtime
		mirrors []string
		want    map[string]string // by the base name of the file
	}{
		{node.Containerd, nil, map[string]string{"hosts.toml": first + `server = "https://harbor.example.com/v2/site/solutions"
capabilities = ["pull", "resolve"]
override_path = true
dial_timeout = "1s"

[host."http://10.0.0.1:5000"]
  capabilities = ["pull", "resolve"]
  dial_timeout = "1s"
`}},
		{node.CRIO, []string{"docker.io"}, map[string]string{"50-solutionctl.conf": first + `
[[registry]]
prefix = "registry.solutionctl.invalid"
location = "harbor.example.com/site/solutions"

[[registry.mirror]]
location = "10.0.0.1:5000"
insecure = true

[[registry]]
prefix = "docker.io"
location = "10.0.0.1:5000/docker.io"
insecure = true
`}},
		{node.K3s, []string{"docker.io"}, map[string]string{"registries.yaml": first + `mirrors:
  docker.io:
    endpoint:
    - http://10.0.0.1:5000
  registry.solutionctl.invalid:
    endpoint:
    - http://10.0.0.1:5000
    - https://harbor.example.com/v2/site/solutions
`}},
	} {
		c := node.Config{
			Runtime: test.runtime, Host: "registry.solutionctl.invalid", Mirrors: test.mirrors,
			Endpoints: []string{"http://10.0.0.1:5000", "https://Harbor.example.com/site/solutions/"},
		}
		if diff := cmp.Diff(test.want, contents(t, c)); diff != "" {
			t.Errorf("%s:\n%s", test.runtime, diff)
		}
	}
}

func TestPushedRegistryOfTalos(t *testing.T) {
	c := node.Config{Host: "registry.solutionctl.invalid", Endpoints: []string{"http://10.0.0.1:5000", "https://harbor.example.com/site"}}
	got, err := node.Talos(c)
	const want = `machine:
  registries:
    mirrors:
      registry.solutionctl.invalid:
        endpoints:
        - http://10.0.0.1:5000/v2
        - https://harbor.example.com/v2/site
        overridePath: true
        skipFallback: true
`
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// TestPushedRegistryHasNoOrigins refuses to send other registries' images to one that has those of Solutions only.
func TestPushedRegistryHasNoOrigins(t *testing.T) {
	c := node.Config{Runtime: node.Containerd, Host: "registry.solutionctl.invalid", Endpoints: []string{"https://harbor.example.com/site"}, Mirrors: []string{"docker.io"}}
	if _, err := node.Files(c); report.CodeOf(err) != report.Usage || len(report.Hints(err)) == 0 {
		t.Errorf("%v", err)
	}
}
