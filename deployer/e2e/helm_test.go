package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

// TestHelmPull gets charts as their users do, with Helm, out of a registry that serves an archive and needs nothing else.
func TestHelmPull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testcluster.Program(t, dir)
	testcluster.Helm(t, dir)
	run := func(program string, args ...string) string {
		t.Helper()
		cmd := commandIn(t.Context(), dir, program, args...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("solutionctl", "init", "demo")
	charts := filepath.Join(dir, "demo", "charts")
	run("helm", "create", "web")
	for _, version := range []string{"1.2.0", "1.3.0+build.7"} {
		run("helm", "package", "web", "--version", version, "--destination", charts)
	}
	run("solutionctl", "build", "demo", "--no-lint") // the image of the charts is not in the archive
	testcluster.Certificate(t, dir)
	registry := "oci://" + serveArchive(t, dir, "demo-0.1.0.iso") + "/demo-0.1.0/charts/web"
	for _, version := range []string{"1.2.0", "1.3.0+build.7"} {
		run("helm", "pull", registry, "--version", version, "--ca-file", "tls.crt")
		file := "web-" + version + ".tgz"
		if !bytes.Equal(readFile(t, dir, file), readFile(t, charts, file)) {
			t.Errorf("%s is not what was packed", file)
		}
	}
	if shown := run("helm", "show", "chart", registry, "--version", "1.2.0", "--ca-file", "tls.crt"); !strings.Contains(shown, "name: web\n") {
		t.Errorf("helm shows %s", shown)
	}
	run("helm", "template", registry, "--ca-file", "tls.crt") // the newest one
}

// commandIn is a command in a directory that has its programs and all that they keep.
func commandIn(ctx context.Context, dir, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(dir, program), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "XDG_DATA_HOME=", "SOLUTIONCTL_CONFIG="+os.DevNull, "SOLUTIONCTL_NO_LINT=true", "KUBECONFIG="+os.DevNull)
	return cmd
}

func readFile(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

var listening = regexp.MustCompile(`^listen https://([0-9.:]+): done`)

// serveArchive serves an archive until the test ends, and returns the address.
func serveArchive(t *testing.T, dir, archive string) string {
	t.Helper()
	cmd := commandIn(context.WithoutCancel(t.Context()), dir, "solutionctl", "deploy", "serve", "--store", "", "--listen", "127.0.0.1:0", "--tls-cert", "tls.crt", "--tls-key", "tls.key", "--archive", archive)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		for lines.Scan() { // the process blocks unless its output is read to the end
			continue
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	for lines.Scan() {
		if found := listening.FindStringSubmatch(lines.Text()); found != nil {
			return found[1]
		}
	}
	t.Fatal("the registry does not listen")
	return ""
}
