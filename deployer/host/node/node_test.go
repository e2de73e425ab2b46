package node_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/host/node"
	"github.com/solutionctl/solutionctl/schema/report"
)

const authority = `-----BEGIN CERTIFICATE-----
MIIBATCBrqADAgECAgEBMAoGCCqGSM49BAMCMAAwHhcNMjYwMTAxMDAwMDAwWhcN
-----END CERTIFICATE-----
`

func config(runtime node.Runtime) node.Config {
	return node.Config{Runtime: runtime, Host: "registry.solutionctl.invalid", Endpoints: []string{"https://10.0.0.1:5000", "https://10.0.0.2:5000/"}, CA: []byte(authority)}
}

// contents returns the files of a node by the last element of their paths.
func contents(t *testing.T, c node.Config) map[string]string {
	t.Helper()
	files, err := node.Files(c)
	if err != nil {
		t.Fatal(err)
	}
	byBase := map[string]string{}
	for _, file := range files {
		byBase[path.Base(file.Path)] = string(file.Content)
	}
	return byBase
}

func TestContainerdFiles(t *testing.T) {
	c := config(node.Containerd)
	c.Mirrors = []string{"quay.io", "docker.io", "quay.io"}
	files, err := node.Files(c)
	if err != nil {
		t.Fatal(err)
	}
	const dir = "/etc/containerd/certs.d/"
	want := `# Written by 'solutionctl deploy node config', which replaces or removes it. Do not edit.
server = "https://10.0.0.2:5000"
capabilities = ["pull", "resolve"]
ca = "/etc/containerd/certs.d/registry.solutionctl.invalid/solutionctl-ca.crt"
dial_timeout = "1s"

[host."https://10.0.0.1:5000"]
  capabilities = ["pull", "resolve"]
  ca = "/etc/containerd/certs.d/registry.solutionctl.invalid/solutionctl-ca.crt"
  dial_timeout = "1s"
`
	var paths []string
	for _, file := range files {
		paths = append(paths, file.Path)
		if !strings.HasSuffix(file.Path, "hosts.toml") {
			continue
		}
		if diff := cmp.Diff(want, string(file.Content)); diff != "" {
			t.Errorf("%s:\n%s", file.Path, diff)
		}
		var parsed map[string]any
		if err := toml.Unmarshal(file.Content, &parsed); err != nil {
			t.Error(err)
		}
	}
	wantPaths := []string{
		dir + "registry.solutionctl.invalid/solutionctl-ca.crt", dir + "registry.solutionctl.invalid/hosts.toml", dir + "docker.io/hosts.toml", dir + "quay.io/hosts.toml",
	}
	if diff := cmp.Diff(wantPaths, paths); diff != "" {
		t.Error(diff)
	}
}

func TestCRIOFiles(t *testing.T) {
	c := config(node.CRIO)
	c.Endpoints = []string{"https://10.0.0.1:5000", "http://10.0.0.2:5000"}
	c.Mirrors = []string{"docker.io", "Registry.example.com:5000"} // no repository can have a port or an upper-case letter
	files, err := node.Files(c)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 || files[0].Path != "/etc/containers/certs.d/10.0.0.1:5000/solutionctl-ca.crt" || files[1].Path != "/etc/containers/registries.conf.d/50-solutionctl.conf" {
		t.Fatalf("got %v", files)
	}
	want := `# Written by 'solutionctl deploy node config', which replaces or removes it. Do not edit.

[[registry]]
prefix = "registry.solutionctl.invalid"
location = "10.0.0.2:5000"
insecure = true

[[registry.mirror]]
location = "10.0.0.1:5000"

[[registry]]
prefix = "Registry.example.com:5000"
location = "10.0.0.2:5000/registry.example.com_5000"
insecure = true

[[registry.mirror]]
location = "10.0.0.1:5000/registry.example.com_5000"

[[registry]]
prefix = "docker.io"
location = "10.0.0.2:5000/docker.io"
insecure = true

[[registry.mirror]]
location = "10.0.0.1:5000/docker.io"
`
	if diff := cmp.Diff(want, string(files[1].Content)); diff != "" {
		t.Error(diff)
	}
}

// TestNodesBeginElsewhere: many nodes share the load, also that of an endpoint that fails, and each tries every endpoint.
func TestNodesBeginElsewhere(t *testing.T) {
	c := config(node.Containerd)
	c.Endpoints = []string{"http://a:1", "http://b:1", "http://c:1"}
	orders := map[string]int{}
	for i := range 600 {
		c.Node = fmt.Sprintf("node-%d", i)
		files, err := node.Files(c)
		if err != nil {
			t.Fatal(err)
		}
		content := string(files[0].Content)
		for _, endpoint := range c.Endpoints {
			if strings.Count(content, strconv.Quote(endpoint)) != 1 {
				t.Fatalf("%s does not try %s once:\n%s", c.Node, endpoint, content)
			}
		}
		begin, last := strings.Index(content, "[host."), strings.Index(content, "server = ")
		orders[content[begin:begin+18]+content[last:last+21]]++
	}
	for _, order := range slices.Collect(maps.Keys(orders)) {
		if orders[order] < 80 {
			t.Errorf("only %d of 600 nodes have the order %q", orders[order], order)
		}
	}
	if len(orders) != 6 {
		t.Errorf("nodes have the orders %v", orders)
	}
}

// TestOneEndpoint: containerd does not understand a file without a host in it.
func TestOneEndpoint(t *testing.T) {
	c := config(node.Containerd)
	c.Endpoints = []string{"http://10.0.0.1:5000", "HTTP://10.0.0.1:5000/"}
	files, err := node.Files(c)
	if err != nil {
		t.Fatal(err)
	}
	content := string(files[0].Content)
	for _, want := range []string{"server = \"http://10.0.0.1:5000\"\n", "\n[host.\"http://10.0.0.1:5000\"]\n"} {
		if !strings.Contains(content, want) {
			t.Errorf("no %q in\n%s", want, content)
		}
	}
}

func TestUsage(t *testing.T) {
	for name, change := range map[string]func(*node.Config){
		"runtime":            func(c *node.Config) { c.Runtime = "docker" },
		"no endpoint":        func(c *node.Config) { c.Endpoints = nil },
		"endpoint with path": func(c *node.Config) { c.Endpoints = []string{"https://a/v2"} },
		"with password":      func(c *node.Config) { c.Endpoints = []string{"https://u:p@a"} },
		"with query":         func(c *node.Config) { c.Endpoints = []string{"https://a?b"} },
		"no scheme":          func(c *node.Config) { c.Endpoints = []string{"10.0.0.1:5000"} },
		"other scheme":       func(c *node.Config) { c.Endpoints = []string{"ftp://a"} },
		"quotes":             func(c *node.Config) { c.Endpoints = []string{"https://a\"\nserver=\"b"} },
		"host climbs":        func(c *node.Config) { c.Host = "a/../../etc" },
		"host of dots":       func(c *node.Config) { c.Host = "a..b" },
		"no host":            func(c *node.Config) { c.Host = "" },
		"mirror with path":   func(c *node.Config) { c.Mirrors = []string{"docker.io/library"} },
		"CA":                 func(c *node.Config) { c.CA = []byte("hello") },
		"directory":          func(c *node.Config) { c.CertsDir = "etc" },
	} {
		t.Run(name, func(t *testing.T) {
			c := config(node.Containerd)
			change(&c)
			if _, err := node.Files(c); report.CodeOf(err) != report.Usage {
				t.Errorf("got %s: %v", report.CodeOf(err), err)
			}
		})
	}
}

// host makes the file system of a node.
func host(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// have returns the files below root.
func have(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(root, name))
		files["/"+name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

const goodConfig = "version = 3\n[plugins.'io.containerd.cri.v1.images'.registry]\nconfig_path = '/etc/containerd/certs.d'\n"

func apply(t *testing.T, root string, c node.Config) map[string]string {
	t.Helper()
	plan, err := node.NewPlan(root, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Apply(); err != nil {
		t.Fatal(err)
	}
	return actions(plan)
}

func actions(plan *node.Plan) map[string]string {
	actions := map[string]string{}
	for _, change := range plan.Changes {
		actions[change.Path] = string(change.Action)
	}
	return actions
}

func TestLifeOfAConfiguration(t *testing.T) {
	const (
		dir     = "/etc/containerd/certs.d/"
		ca      = dir + "registry.solutionctl.invalid/solutionctl-ca.crt"
		hosts   = dir + "registry.solutionctl.invalid/hosts.toml"
		docker  = dir + "docker.io/hosts.toml"
		foreign = dir + "example.com/hosts.toml"
	)
	before := map[string]string{"/etc/containerd/config.toml": goodConfig, foreign: "server = \"https://example.com\"\n"}
	root := host(t, before)
	c := config(node.Containerd)
	c.Mirrors = []string{"docker.io"}
	steps := []struct {
		name   string
		change func()
		want   map[string]string
	}{
		{"first", func() {}, map[string]string{ca: "create", hosts: "create", docker: "create"}},
		{"again", func() {}, map[string]string{ca: "keep", hosts: "keep", docker: "keep"}},
		{"another endpoint", func() { c.Endpoints = []string{"https://10.0.0.3:5000"} }, map[string]string{ca: "keep", hosts: "update", docker: "update"}},
		{"no mirror", func() { c.Mirrors = []string{} }, map[string]string{ca: "keep", hosts: "keep", docker: "remove"}},
		{"without TLS", func() { c.Endpoints = []string{"http://10.0.0.3:5000"} }, map[string]string{hosts: "update", ca: "remove"}},
	}
	for _, step := range steps {
		step.change()
		if diff := cmp.Diff(step.want, apply(t, root, c)); diff != "" {
			t.Errorf("%s:\n%s", step.name, diff)
		}
		files, err := node.Files(c)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		maps.Copy(want, before)
		for _, file := range files {
			want[file.Path] = string(file.Content)
		}
		if diff := cmp.Diff(want, have(t, root)); diff != "" {
			t.Errorf("%s:\n%s", step.name, diff)
		}
	}
	plan, err := node.NewRemoval(root, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Apply(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, have(t, root)); diff != "" {
		t.Errorf("after the removal:\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(root, dir, "registry.solutionctl.invalid")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is left behind: %v", err)
	}
	if again, err := node.NewRemoval(root, ""); err != nil || again.Changed() {
		t.Errorf("there is something left to remove: %v, %v", again, err)
	}
}

// TestChangeOfRuntime: what the other runtime read is taken away.
func TestChangeOfRuntime(t *testing.T) {
	root := host(t, map[string]string{"/etc/containerd/config.toml": goodConfig})
	apply(t, root, config(node.CRIO))
	got := apply(t, root, config(node.Containerd))
	if got["/etc/containers/registries.conf.d/50-solutionctl.conf"] != "remove" || got["/etc/containers/certs.d/10.0.0.1:5000/solutionctl-ca.crt"] != "remove" {
		t.Errorf("got %v", got)
	}
	if n := len(have(t, root)); n != 3 {
		t.Errorf("have %v", have(t, root))
	}
}

func TestFilesOfOthers(t *testing.T) {
	const hosts = "/etc/containerd/certs.d/registry.solutionctl.invalid/hosts.toml"
	root := host(t, map[string]string{"/etc/containerd/config.toml": goodConfig, hosts: "server = \"https://mine\"\n"})
	before := have(t, root)
	if _, err := node.NewPlan(root, config(node.Containerd)); report.CodeOf(err) != report.Conflict || !strings.Contains(err.Error(), hosts) {
		t.Errorf("got %s: %v", report.CodeOf(err), err)
	}
	if plan, err := node.NewRemoval(root, ""); err != nil || plan.Changed() {
		t.Errorf("would remove a file of somebody else: %v, %v", plan, err)
	}
	if diff := cmp.Diff(before, have(t, root)); diff != "" {
		t.Error(diff)
	}
}

// TestLinksStayInside: the file system of an image is configured, not that of the host that prepares it.
func TestLinksStayInside(t *testing.T) {
	root, outside := host(t, map[string]string{"/etc/containerd/config.toml": goodConfig}), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(root, "etc/containerd/certs.d")); err != nil {
		t.Fatal(err)
	}
	apply(t, root, config(node.Containerd))
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("written outside: %v, %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(root, outside, "registry.solutionctl.invalid/hosts.toml")); err != nil {
		t.Error(err)
	}
}

func TestContainerdsOwnConfiguration(t *testing.T) {
	const (
		images = "[plugins.'io.containerd.cri.v1.images'.registry]\n"
		grpc   = "[plugins.\"io.containerd.grpc.v1.cri\".registry]\n"
		main   = "/etc/containerd/config.toml"
	)
	for name, test := range map[string]struct {
		files   map[string]string
		certs   string
		code    report.Code // "" when it is fine
		message string
		hint    string
	}{
		"containerd 2":         {files: map[string]string{main: goodConfig}},
		"containerd 1":         {files: map[string]string{main: "version = 2\n" + grpc + "config_path = '/etc/containerd/certs.d/'\n"}},
		"first configurations": {files: map[string]string{main: "[plugins.cri.registry]\nconfig_path = '/etc/containerd/certs.d'\n"}},
		"among others":         {files: map[string]string{main: images + "config_path = '/etc/docker/certs.d:/etc/containerd/certs.d'\n"}},
		"empty tables":         {files: map[string]string{main: goodConfig + "[plugins.'io.containerd.cri.v1.images'.registry.mirrors]\n"}},
		"passwords":            {files: map[string]string{main: goodConfig + "[plugins.'io.containerd.cri.v1.images'.registry.configs.'a'.auth]\nusername='u'\n"}},
		"imported":             {files: map[string]string{main: "imports = ['conf.d/*.toml']\n", "/etc/containerd/conf.d/a.toml": goodConfig, "/etc/containerd/conf.d/b.txt": "not TOML"}},
		"a ring of imports":    {files: map[string]string{main: "imports = ['/etc/containerd/*.toml']\n" + goodConfig[12:]}},
		"no file":              {code: report.Refused, message: "does not set config_path", hint: `config_path = "/etc/containerd/certs.d"`},
		"not set":              {files: map[string]string{main: images}, code: report.Refused, message: "does not set config_path", hint: "restart containerd once"},
		"elsewhere": {
			files: map[string]string{main: images + "config_path = '/opt/certs'\n"},
			code:  report.Refused, message: "from /opt/certs, not from /etc/containerd/certs.d", hint: "--certs-dir",
		},
		"elsewhere, as asked for": {files: map[string]string{main: images + "config_path = '/opt/certs'\n"}, certs: "/opt/certs"},
		"beside it, not imported": {
			files: map[string]string{main: goodConfig, "/etc/containerd/conf.d/z.toml": images + "config_path = '/opt/certs'\n"},
		},
		"older mirrors": {
			files: map[string]string{main: "version = 2\n" + grpc + "[plugins.\"io.containerd.grpc.v1.cri\".registry.mirrors.\"metalk8s-registry-from-config.invalid\"]\nendpoint = ['http://10.0.0.1:8080']\n"},
			code:  report.Refused, message: "config.toml configures registries in the older way, by registry.mirrors", hint: "hosts.toml",
		},
		"older TLS settings": {
			files: map[string]string{main: goodConfig + "[plugins.'io.containerd.cri.v1.images'.registry.configs.'a'.tls]\nca_file='/ca'\n"},
			code:  report.Refused, message: "registry.configs",
		},
		"older mirrors in an import": {
			files: map[string]string{main: "imports = ['/etc/more.toml']\n" + goodConfig[12:], "/etc/more.toml": "[plugins.cri.registry.mirrors.a]\nendpoint=['http://b']\n"},
			code:  report.Refused, message: "/etc/more.toml configures registries in the older way",
		},
		"not TOML": {files: map[string]string{main: "a = = b"}, code: report.Invalid, message: main},
	} {
		t.Run(name, func(t *testing.T) {
			c := config(node.Containerd)
			c.CertsDir = test.certs
			_, err := node.NewPlan(host(t, test.files), c)
			if test.code == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if report.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.message) {
				t.Errorf("got %s: %v", report.CodeOf(err), err)
			}
			if hints := strings.Join(report.Hints(err), "\n"); !strings.Contains(hints, test.hint) {
				t.Errorf("hints: %s", hints)
			}
		})
	}
}

func TestDetect(t *testing.T) {
	both := []string{"/etc/containerd/config.toml", "/etc/crio/crio.conf"}
	for name, test := range map[string]struct {
		files []string
		said  map[string]string
		want  node.Runtime
	}{
		"nothing":                 {nil, nil, ""},
		"containerd":              {both[:1], nil, node.Containerd},
		"CRI-O":                   {both[1:], nil, node.CRIO},
		"both":                    {both, nil, ""},
		"kubelet's configuration": {both, map[string]string{"/var/lib/kubelet/config.yaml": "kind: KubeletConfiguration\ncontainerRuntimeEndpoint: unix:///var/run/crio/crio.sock\n"}, node.CRIO},
		"kubeadm's flags":         {both, map[string]string{"/var/lib/kubelet/kubeadm-flags.env": `KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///run/containerd/containerd.sock"` + "\n"}, node.Containerd},
		"another runtime":         {both[:1], map[string]string{"/var/lib/kubelet/config.yaml": "containerRuntimeEndpoint: unix:///run/other.sock\n"}, node.Containerd},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			for _, file := range test.files {
				files[file] = ""
			}
			maps.Copy(files, test.said)
			got, err := node.Detect(host(t, files))
			if got != test.want || (err != nil) != (test.want == "") {
				t.Errorf("got %q, %v", got, err)
			}
			if err != nil && report.CodeOf(err) != report.Refused {
				t.Errorf("got %s", report.CodeOf(err))
			}
		})
	}
}

func TestReadOnly(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	root := host(t, map[string]string{"/etc/containerd/config.toml": goodConfig})
	if err := os.Chmod(filepath.Join(root, "etc/containerd"), 0o555); err != nil {
		t.Fatal(err)
	}
	plan, err := node.NewPlan(root, config(node.Containerd))
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Apply(); !slices.Contains(report.Hints(err), "run it as root") {
		t.Errorf("got %v", err)
	}
}
