package metalk8s_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/docs/guides"
)

// TestGuide runs the commands of the guide about MetalK8s, and compares their output with that in the guide.
func TestGuide(t *testing.T) {
	c := testcluster.Shared(t)
	bin, output := t.TempDir(), t.TempDir()
	testcluster.Program(t, bin)
	steps, err := guides.Steps("metalk8s.md")
	check(t, err)
	shell := exec.CommandContext(t.Context(), "sh", "-c", guides.Shell(steps))
	shell.Dir = t.TempDir()
	path := strings.Join([]string{bin, c.Bin, os.Getenv("PATH")}, string(filepath.ListSeparator))
	shell.Env = append(os.Environ(), "PATH="+path, "KUBECONFIG="+c.Kubeconfig, "OUTPUT="+output, "SOLUTIONCTL_CONFIG="+os.DevNull)
	out, failure := shell.CombinedOutput()
	for i, step := range steps {
		printed, err := os.ReadFile(filepath.Join(output, fmt.Sprintf("%d.out", i)))
		if err != nil {
			break // a command before it failed
		}
		if line, missing := step.Missing(string(printed)); missing {
			t.Errorf("line %d: this is not printed: %s\n%s", step.Line, line, printed)
		}
	}
	if failure != nil {
		t.Errorf("%v: %s", failure, out)
	}
}
