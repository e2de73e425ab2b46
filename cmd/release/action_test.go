package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/solutionctl/solutionctl/sign/key"
)

// runner is a runner of GitHub, as far as the action sees it, with a mirror of releases.
type runner struct {
	t                   *testing.T
	mirror, temp, cache string
	public              string
}

// newRunner returns a runner whose mirror has release 0.1.0, the program of which prints how it was called.
func newRunner(t *testing.T) *runner {
	t.Helper()
	for _, program := range []string{"curl", "jq", "openssl"} {
		tool(t, program, "apt-get install "+program)
	}
	r := &runner{t: t, mirror: t.TempDir(), temp: t.TempDir(), cache: t.TempDir()}
	input := t.TempDir()
	writeFile(t, filepath.Join(input, "bin", "linux-amd64"), `#!/bin/sh
echo "$@" >>"$RUNNER_TEMP/calls"
[ "$1" != build ] || echo '{"path": "dist/x.iso"}'
`, 0o755)
	for _, name := range []string{"LICENSE", "CHANGELOG.md", "man/a.1", "units/a.service", "completions/bash", "completions/zsh", "completions/fish"} {
		writeFile(t, filepath.Join(input, name), "", 0o644)
	}
	r.files("v0.1.0", "x") // makes the directory
	made := release{version: "0.1.0", created: time.Unix(0, 0), input: input, dir: filepath.Join(r.mirror, "v0.1.0")}
	if err := os.Remove(filepath.Join(made.dir, "x")); err != nil {
		t.Fatal(err)
	}
	if err := made.writeArchive(platform{"linux", "amd64"}); err != nil {
		t.Fatal(err)
	}
	sums, err := made.sums()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(made.dir, sumsFile)
	writeFile(t, path, sums[0].digest+"  "+sums[0].name+"\n", 0o644)
	pair, err := key.Generate([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := key.Load(pair.Private, func() ([]byte, error) { return []byte("secret"), nil })
	if err != nil {
		t.Fatal(err)
	}
	if err = signFile(context.Background(), signer, path); err != nil {
		t.Fatal(err)
	}
	r.public = string(pair.Public.PEM())
	return r
}

// files writes a file of the mirror.
func (r *runner) files(dir, name string) {
	writeFile(r.t, filepath.Join(r.mirror, dir, name), "", 0o644)
}

// run runs one step of the action with variables.
func (r *runner) run(step string, variables ...string) (string, error) {
	r.t.Helper()
	script, err := filepath.Abs("../../.ci/action")
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.CommandContext(r.t.Context(), script, step)
	cmd.Dir = r.temp
	installed := filepath.Join(r.cache, "solutionctl", "0.1.0", "amd64")
	cmd.Env = append([]string{
		"PATH=" + installed + ":" + os.Getenv("PATH"), "RUNNER_TEMP=" + r.temp, "RUNNER_TOOL_CACHE=" + r.cache, "RUNNER_OS=Linux", "RUNNER_ARCH=X64",
		"GITHUB_PATH=" + filepath.Join(r.temp, "path"), "GITHUB_OUTPUT=" + filepath.Join(r.temp, "output"), "VERSION=0.1.0", "BASE_URL=file://" + r.mirror, "PUBLIC_KEY=",
	}, variables...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

func (r *runner) read(name string) string {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.temp, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(data)
}

// TestAction installs the program from a mirror, and builds and signs with it.
func TestAction(t *testing.T) {
	r := newRunner(t)
	if out, err := r.run("install", "PUBLIC_KEY="+r.public); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.HasSuffix(strings.TrimSpace(r.read("path")), "solutionctl/0.1.0/amd64") {
		t.Errorf("the path is %s", r.read("path"))
	}
	out, err := r.run("build", "PROJECT=shop", "SOLUTION_VERSION=1.2.3", "SARIF=lint.sarif", "TO=dist", "KEY=a key")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	calls := regexp.MustCompile(`/\S*/release\.key`).ReplaceAllString(r.read("calls"), "KEY")
	want := "version\nlint --output sarif shop\nlint --output github shop\nbuild shop --to dist/ --no-lint --version 1.2.3 --sign-key KEY --output json\n"
	if calls != want {
		t.Errorf("calls:\n%swant:\n%s", calls, want)
	}
	if !strings.Contains(r.read("output"), "archive=dist/x.iso\n") {
		t.Errorf("outputs: %s", r.read("output"))
	}
	if left, err := filepath.Glob(filepath.Join(r.temp, "solutionctl.*")); err != nil || len(left) > 0 {
		t.Errorf("%q is left, with the key: %v", left, err)
	}
}

// TestActionRefuses installs nothing from a mirror that has changed something.
func TestActionRefuses(t *testing.T) {
	const archive = "solutionctl-0.1.0-linux-amd64.tar.gz"
	other, err := key.Generate(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change    func(t *testing.T, dir string)
		variables []string
		want      string
	}{
		"another program":  {func(t *testing.T, dir string) { t.Helper(); writeFile(t, filepath.Join(dir, archive), "other", 0o644) }, nil, "another checksum"},
		"another key":      {nil, []string{"PUBLIC_KEY=" + string(other.Public.PEM())}, "not signed by the key"},
		"another platform": {nil, []string{"RUNNER_ARCH=ARM64"}, "cannot be downloaded"},
		"no platform":      {nil, []string{"RUNNER_OS=Plan9"}, "no release for Plan9"},
		"no release":       {nil, []string{"VERSION=9.9.9"}, "v9.9.9/SHA256SUMS cannot be downloaded"},
		"not listed": {func(t *testing.T, dir string) {
			t.Helper()
			writeFile(t, filepath.Join(dir, sumsFile), "00  other\n", 0o644)
		}, nil, "does not list"},
		"other checksums": {func(t *testing.T, dir string) {
			t.Helper()
			writeFile(t, filepath.Join(dir, sumsFile), "00  "+archive+"\n", 0o644)
		}, []string{"PUBLIC_KEY=the key"}, "not signed by the key"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t)
			if test.change != nil {
				test.change(t, filepath.Join(r.mirror, "v0.1.0"))
			}
			for i, v := range test.variables {
				test.variables[i] = strings.Replace(v, "the key", r.public, 1)
			}
			out, err := r.run("install", test.variables...)
			if err == nil || !strings.Contains(out, test.want) {
				t.Errorf("%v, want %q:\n%s", err, test.want, out)
			}
			if _, err = os.Stat(filepath.Join(r.cache, "solutionctl")); !os.IsNotExist(err) {
				t.Errorf("something is installed: %v", err)
			}
		})
	}
}

// TestActionFile compares the inputs that steps of the action use with those that it declares.
func TestActionFile(t *testing.T) {
	data, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Name, Description, Author string
		Branding                  map[string]string
		Inputs                    map[string]struct {
			Description string
			Default     *string
			Required    bool
		}
		Outputs map[string]struct{ Description, Value string }
		Runs    struct {
			Using string
			Steps []struct {
				ID, If, Shell, Run string
				Env                map[string]string
			}
		}
	}
	strict := yaml.NewDecoder(bytes.NewReader(data))
	strict.KnownFields(true)
	if err = strict.Decode(&action); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, match := range regexp.MustCompile(`inputs\.([a-z-]+)`).FindAllStringSubmatch(string(data), -1) {
		used[match[1]] = true
		if _, ok := action.Inputs[match[1]]; !ok {
			t.Errorf("inputs.%s is not declared", match[1])
		}
	}
	for name, input := range action.Inputs {
		if !used[name] || input.Description == "" || input.Required == (input.Default != nil) {
			t.Errorf("input %s: used: %t, %+v", name, used[name], input)
		}
	}
	if steps := action.Runs.Steps; action.Runs.Using != "composite" || len(steps) != 2 || steps[0].ID != "install" || steps[0].Shell != "bash" {
		t.Errorf("%+v", action.Runs)
	}
}
