package records

import (
	"testing"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
)

func TestDeployedVersion(t *testing.T) {
	object, kept := schema.DeployedObject{}, schema.DeployedObject{Kept: true}
	revision := func(version string, objects ...schema.DeployedObject) *schema.DeploymentRevision {
		return &schema.DeploymentRevision{Version: version, Objects: objects}
	}
	for _, test := range []struct {
		name     string
		state    record.State
		version  string
		deployed bool
	}{
		{"never", record.State{}, "", false},
		{"completed", record.State{Current: revision("1.0.0", object)}, "1.0.0", true},
		{"begun", record.State{Current: revision("1.0.0", object), Pending: revision("1.1.0", object)}, "1.1.0", true},
		{"removal begun", record.State{Current: revision("1.0.0", object), Pending: revision("", object)}, "", true},
		{"removed", record.State{Current: revision("")}, "", false},
		{"removed but for what is kept", record.State{Current: revision("", kept)}, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			version, deployed := DeployedVersion(&test.state)
			if version != test.version || deployed != test.deployed {
				t.Errorf("got %q, %t, want %q, %t", version, deployed, test.version, test.deployed)
			}
		})
	}
}
