package e2e_test

import (
	"os/exec"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

// TestTwoNodes runs a script on a cluster with two real nodes.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	testcluster.RequireNode(t)
	testcluster.Together(t)
	runOnTwoNodes(t, "testdata/nodes/two.txtar", copyExample(t))
}

// TestShapedLink is TestTwoNodes where the second node is behind a link of 50 Mbit/s.
func TestShapedLink(t *testing.T) {
	t.Parallel()
	testcluster.RequireNode(t)
	testcluster.Together(t)
	testcluster.Long(t, "TestTwoNodes")
	runOnTwoNodes(t, "testdata/nodes/two.txtar", copyExample(t), "50mbit")
}

// TestFiftyImages brings an archive with many images to two nodes.
func TestFiftyImages(t *testing.T) {
	t.Parallel()
	testcluster.RequireNode(t)
	testcluster.Together(t)
	testcluster.Long(t, "TestTwoNodes")
	runOnTwoNodes(t, "testdata/nodes/fifty.txtar", t.TempDir())
}

// runOnTwoNodes runs a script on the first of two nodes. It reaches the second one with the command worker. The link between them may have a
// rate.
func runOnTwoNodes(t *testing.T, script, example string, rate ...string) {
	t.Helper()
	c := testcluster.StartFor(t, testcluster.Options{Node: true})
	second, err := c.AddNode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rate {
		if err = second.Shape(r); err != nil {
			t.Fatal(err)
		}
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
	runScripts(t, script, c, example, c.EnterNode, scriptCommands{"worker": worker})
}
