package records

import (
	"testing"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema"
)

func TestDeployedVersion(t *testing.T) {
	object, kept := schema.DeployedObject{}, schema.DeployedObject{Kept: true}
	revision := func(version string, objects ...schema.DeployedObject) *schema.DeploymentRevision {
		return &schema.DeploymentRevision{Version: version, Objects: objects}
	}
	for _, test := range []struct {
		name     string
		state    engine.State
		version  string
		deployed bool
	}{
		{"never", engine.State{}, "", false},
		{"completed", engine.State{Current: revision("1.0.0", object)}, "1.0.0", true},
		{"begun", engine.State{Current: revision("1.0.0", object), Pending: revision("1.1.0", object)}, "1.1.0", true},
		{"removal begun", engine.State{Current: revision("1.0.0", object), Pending: revision("", object)}, "", true},
		{"removed", engine.State{Current: revision("")}, "", false},
		{"removed but for what is kept", engine.State{Current: revision("", kept)}, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			version, deployed := DeployedVersion(&test.state)
			if version != test.version || deployed != test.deployed {
				t.Errorf("got %q, %t, want %q, %t", version, deployed, test.version, test.deployed)
			}
		})
	}
}
