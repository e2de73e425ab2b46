package node_test

import (
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/host/node"
	"github.com/solutionctl/solutionctl/schema/report"
)

var update = flag.Bool("update", false, "write the golden files")

// TestPrintedForms: each form of each runtime is its golden file.
func TestPrintedForms(t *testing.T) {
	forms := map[string]func(node.Config) ([]byte, error){
		"talos.yaml": node.Talos,
	}
	for _, runtime := range node.Runtimes() {
		for name, print := range map[string]func(node.Runtime, []node.File) []byte{"salt.sls": node.Salt, "ansible.yml": node.Ansible} {
			forms[string(runtime)+"-"+name] = func(c node.Config) ([]byte, error) {
				c.Runtime = runtime
				files, err := node.Files(c)
				return print(runtime, files), err
			}
		}
	}
	for _, runtime := range []node.Runtime{node.K3s, node.RKE2} {
		forms[string(runtime)+"-registries.yaml"] = func(c node.Config) ([]byte, error) {
			c.Runtime = runtime
			return node.Registries(c)
		}
	}
	for name, print := range forms {
		t.Run(name, func(t *testing.T) {
			c := config("")
			c.Mirrors = []string{"docker.io"}
			got, err := print(c)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name)
			if *update {
				if err = os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDistributions: each distribution is found by itself, is configured once, and has nothing of ours after a removal.
func TestDistributions(t *testing.T) {
	for name, test := range map[string]struct {
		trace   string
		runtime node.Runtime
		file    string
		note    string
	}{
		"k3s":              {"/etc/rancher/k3s/config.yaml", node.K3s, "/etc/rancher/k3s/registries.yaml", "systemctl restart k3s"},
		"k3s, by its data": {"/var/lib/rancher/k3s/agent/etc/containerd/config.toml", node.K3s, "/etc/rancher/k3s/registries.yaml", "systemctl restart k3s"},
		"RKE2":             {"/etc/rancher/rke2/config.yaml", node.RKE2, "/etc/rancher/rke2/registries.yaml", "systemctl restart rke2-server"},
		"k0s":              {"/etc/k0s/k0s.yaml", node.K0s, "/etc/k0s/containerd.d/solutionctl.toml", "systemctl restart k0scontroller"},
		"MicroK8s":         {"/var/snap/microk8s/current/args/containerd", node.MicroK8s, "/var/snap/microk8s/current/args/certs.d/registry.solutionctl.invalid/hosts.toml", ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := host(t, map[string]string{test.trace: "mine"})
			runtime, err := node.Detect(root)
			if err != nil || runtime != test.runtime {
				t.Fatalf("got %q, %v", runtime, err)
			}
			for _, round := range []bool{true, false} {
				plan, failure := node.NewPlan(root, config(runtime))
				if failure != nil {
					t.Fatal(failure)
				}
				if plan.Changed() != round || round && !strings.Contains(strings.Join(plan.Notes, "\n"), test.note) {
					t.Errorf("changes %v, notes %q", plan.Changes, plan.Notes)
				}
				if err = plan.Apply(); err != nil {
					t.Fatal(err)
				}
			}
			if _, err = os.Stat(filepath.Join(root, test.file)); err != nil {
				t.Error(err)
			}
			removal, err := node.NewRemoval(root, "")
			if err != nil {
				t.Fatal(err)
			}
			if err = removal.Apply(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(root, test.file)); err == nil {
				t.Errorf("%s is left", test.file)
			}
			if data, err := os.ReadFile(filepath.Join(root, test.trace)); err != nil || string(data) != "mine" {
				t.Errorf("%s is changed: %v", test.trace, err)
			}
		})
	}
	both := host(t, map[string]string{"/etc/k0s/k0s.yaml": "", "/etc/rancher/k3s/config.yaml": ""})
	if _, err := node.Detect(both); report.CodeOf(err) != report.Refused {
		t.Errorf("two distributions: %v", err)
	}
}

// TestRegistriesOfTheSite: registries.yaml of the site is never changed. It is kept when it has our lines, else the lines are printed.
func TestRegistriesOfTheSite(t *testing.T) {
	const file = "/etc/rancher/k3s/registries.yaml"
	const site = "mirrors:\n  docker.io:\n    endpoint: [\"https://mirror.site\"]\nconfigs:\n  mirror.site:\n    auth: {username: u, password: p}\n"
	const added = "  registry.solutionctl.invalid:\n    endpoint: [\"http://a:5000\"]\n"
	c := node.Config{Runtime: node.K3s, Host: "registry.solutionctl.invalid", Endpoints: []string{"http://a:5000"}}
	for name, test := range map[string]struct {
		have string
		code report.Code
	}{
		"without our lines":    {site, report.Conflict},
		"with another address": {strings.Replace(site, "mirrors:\n", "mirrors:\n"+strings.ReplaceAll(added, "//a", "//b"), 1), report.Conflict},
		"with our lines":       {strings.Replace(site, "mirrors:\n", "mirrors:\n"+added, 1), ""},
		"not YAML":             {"{", report.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			root := host(t, map[string]string{file: test.have})
			plan, err := node.NewPlan(root, c)
			if report.CodeOf(err) != test.code {
				t.Fatalf("got %v, want %s", err, test.code)
			}
			if err != nil && !strings.Contains(strings.Join(report.Hints(err), "\n"), "registry.solutionctl.invalid:\n") {
				t.Errorf("hints %q", report.Hints(err))
			}
			if err == nil && (plan.Changed() || plan.Apply() != nil) {
				t.Errorf("changes %v", plan.Changes)
			}
			if data, err := os.ReadFile(filepath.Join(root, file)); err != nil || string(data) != test.have {
				t.Errorf("it is changed: %s, %v", data, err)
			}
		})
	}
}

// TestK0sVersions: k0s 1.36 and later refuses to start with the format that the ones before need. The program decides, as it is replaced
// before k0s starts again and writes its configuration.
func TestK0sVersions(t *testing.T) {
	const older, newer = "version = 2\n\n[plugins.\"io.containerd.grpc.v1.cri\".registry]\n", "version = 3\n\n[plugins.\"io.containerd.cri.v1.images\".registry]\n"
	for name, test := range map[string]struct {
		files   map[string]string
		module  string // in the program
		want    string
		upgrade bool // a note about it
	}{
		"never started":               {nil, "", newer, false},
		"its configuration, 1.35":     {map[string]string{"/etc/k0s/containerd.toml": "# k0s_managed=true\nversion = 2\n"}, "", older, true},
		"its configuration, 1.36":     {map[string]string{"/etc/k0s/containerd.toml": "# k0s_managed=true\nversion = 3\n"}, "", newer, false},
		"its program, 1.35":           {nil, "github.com/containerd/containerd", older, true},
		"upgraded, not started yet":   {map[string]string{"/etc/k0s/containerd.toml": "version = 2\n"}, "github.com/containerd/containerd/v2", newer, false},
		"another program by its name": {map[string]string{"/usr/local/bin/k0s": "#!/bin/sh\n", "/etc/k0s/containerd.toml": "version = 2\n"}, "", older, true},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"/etc/k0s/k0s.yaml": ""}
			maps.Copy(files, test.files)
			root := host(t, files)
			if test.module != "" {
				buildProgram(t, filepath.Join(root, "usr/local/bin/k0s"), test.module)
			}
			plan, err := node.NewPlan(root, config(node.K0s))
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(plan.Changes, func(c node.Change) bool { return c.Path == "/etc/k0s/containerd.d/solutionctl.toml" })
			if i < 0 || !strings.Contains(string(plan.Changes[i].Content), test.want) {
				t.Errorf("want %q in %+v", test.want, plan.Changes)
			}
			if got := strings.Contains(strings.Join(plan.Notes, "\n"), "k0s 1.36 and later refuses"); got != test.upgrade {
				t.Errorf("notes are %q", plan.Notes)
			}
		})
	}
}

// buildProgram builds a program that consists of an empty main and of one more module.
func buildProgram(t *testing.T, file, module string) {
	t.Helper()
	dir, version := t.TempDir(), "v0.0.0"
	if strings.HasSuffix(module, "/v2") {
		version = "v2.0.0"
	}
	for name, text := range map[string]string{
		"go.mod":        "module example.com/program\n\ngo 1.26\n\nrequire " + module + " " + version + "\n\nreplace " + module + " => ./other\n",
		"main.go":       "package main\n\nimport _ \"" + module + "\"\n\nfunc main() {}\n",
		"other/go.mod":  "module " + module + "\n\ngo 1.26\n",
		"other/file.go": "package other\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", file, ".")
	build.Dir, build.Env = dir, append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
