package e2e_test

import (
	"os/exec"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

// TestTwoNodes runs testdata/nodes on a cluster with two real nodes: the script is on the first one, and reaches the second one with the
// command worker.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	testcluster.RequireNode(t)
	testcluster.Alone(t)
	c := testcluster.StartFor(t, testcluster.Options{Node: true})
	second, err := c.AddNode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	worker := func(ts *testscript.TestScript, neg bool, args []string) {
		switch {
		case neg || len(args) == 0:
		case args[0] == "fail" && len(args) == 1:
			second.Fail()
			return
		case args[0] == "boot" && len(args) == 1:
			ts.Check(second.Boot(t.Context()))
			return
		case args[0] == "exec" && len(args) > 1:
			cmd := exec.CommandContext(t.Context(), "env", args[1:]...)
			cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), ts.Stdout(), ts.Stderr()
			for _, name := range []string{"PATH", "HOME", "KUBECONFIG", "SOLUTIONCTL_CONFIG"} {
				cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
			}
			ts.Check(second.RunOnNode(cmd))
			return
		}
		ts.Fatalf("usage: worker boot|fail, worker exec PROGRAM...")
	}
	runScripts(t, "testdata/nodes/two.txtar", c, copyExample(t), c.EnterNode, scriptCommands{"worker": worker})
}
