// Package guide_test does what the guides for administrators say, on a real API server whose nodes are simulated.
package guide_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/docs/guides"
)

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{FakeNodes: 2}) }

// vendor makes what the reader of the guide got: two archives, their signatures and a key.
const vendor = `set -eu
solutionctl init shop --quiet
solutionctl keygen vendor
for version in 1.0.0 1.1.0; do solutionctl build shop --version $version --sign-key vendor.key; done
rm -r shop vendor.key`

var made sync.Once

// archives returns a directory with what the vendor makes, once: each use of the key takes a third of a second. It goes with the shared
// cluster.
func archives(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(testcluster.Shared(t).Dir, "archives")
	made.Do(func() {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		bin := t.TempDir()
		testcluster.Program(t, bin)
		cmd := exec.CommandContext(t.Context(), "sh", "-c", vendor)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "HOME="+dir, "SOLUTIONCTL_PASSWORD=secret", "SOLUTIONCTL_CONFIG="+os.DevNull)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
	return dir
}

// TestOperate follows the guides in the order in which an administrator reads them: each starts where the one before ended.
func TestOperate(t *testing.T) {
	follow(t, testcluster.Shared(t), "install.md", "rights.md", "operate.md", "upgrade.md", "site-monitoring.md")
}

// TestLoader has a cluster of its own: the guide deploys the same Solution.
func TestLoader(t *testing.T) {
	follow(t, testcluster.StartFor(t, testcluster.Options{FakeNodes: 2}), "loader.md")
}

// follow runs the commands of guides, one guide after the other, and compares their output with the blocks that show it.
func follow(t *testing.T, cluster *testcluster.Cluster, names ...string) {
	t.Helper()
	var steps []guides.Step
	var from []string // the guide of each step
	for _, name := range names {
		more, err := guides.Steps(name)
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, more...)
		from = append(from, slices.Repeat([]string{name}, len(more))...)
	}
	home, output, bin := t.TempDir(), t.TempDir(), t.TempDir()
	testcluster.Program(t, bin)
	if err := os.CopyFS(home, os.DirFS(archives(t))); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(home, "docs", "installer-role"), os.DirFS("../../../docs/installer-role")); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(home, "store")
	shell := func(script string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.Dir = home
		cmd.Env = append(os.Environ(),
			"HOME="+home, "OUTPUT="+output, "KUBECONFIG="+cluster.Kubeconfig, "SOLUTIONCTL_PASSWORD=secret", "SOLUTIONCTL_CONFIG="+os.DevNull,
			"PATH="+strings.Join([]string{bin, cluster.Bin, os.Getenv("PATH")}, string(filepath.ListSeparator)),
			// What belongs to this host stays as it is.
			"SOLUTIONCTL_STORE="+store, "SOLUTIONCTL_STATE="+filepath.Join(home, "state.json"), "SOLUTIONCTL_TRUST_DIR="+filepath.Join(home, "trust"),
			"SOLUTIONCTL_SOLUTIONS_FILE="+filepath.Join(home, "metalk8s", "solutions.yaml"), "SOLUTIONCTL_NGINX_DIR="+filepath.Join(home, "nginx"),
			"SOLUTIONCTL_MOUNT=never")
		return cmd.CombinedOutput()
	}
	out, failure := shell(guides.Shell(steps))
	for i, step := range steps {
		if step.File != "" {
			continue
		}
		printed, err := os.ReadFile(filepath.Join(output, fmt.Sprintf("%d.out", i)))
		if err != nil {
			break // the commands before it failed
		}
		text := strings.ReplaceAll(string(printed), store, "/var/lib/solutionctl")
		t.Logf("%s:%d:\n%s%s", from[i], step.Line, step.Script, text)
		if line, missing := step.Missing(text); missing {
			t.Errorf("%s:%d: this is not printed: %s", from[i], step.Line, line)
		}
	}
	if failure != nil {
		t.Fatalf("%v, after what the last line shows: %s", failure, out)
	}
}
