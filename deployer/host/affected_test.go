package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
)

// TestUses finds where a version is deployed, wanted, or active, and which versions were not searched.
func TestUses(t *testing.T) {
	deployed := func(solution, wanted, version string) schema.DeploymentStatus {
		return schema.DeploymentStatus{Solution: solution, Wanted: wanted, Version: version}
	}
	status := &schema.Status{
		Solutions: []schema.SolutionStatus{{Name: "shop", Active: "1.0.0", Versions: []schema.ImportedVersion{{Version: "1.0.0", ID: "shop-1.0.0"}, {Version: "0.9.0", ID: "shop-0.9.0"}}}},
		Environments: []schema.EnvironmentStatus{{Name: "prod", Namespaces: []schema.NamespaceStatus{
			{Name: "prod", Deployments: []schema.DeploymentStatus{deployed("shop", "1.0.0", "1.0.0")}},
			{Name: "prod-2", Deployments: []schema.DeploymentStatus{deployed("shop", "1.1.0", "1.0.0"), deployed("shop-b", "1.0.0", "1.0.0")}},
			{Name: "prod-3", Deployments: []schema.DeploymentStatus{deployed("shop", "0.9.0", "0.9.0")}},
		}}},
	}
	entry := store.Entry{StoredArchive: schema.StoredArchive{Name: "shop", Version: "1.0.0"}}
	want := []schema.VersionUse{{Environment: "prod", Namespace: "prod"}, {Environment: "prod", Namespace: "prod-2"}}
	if diff := cmp.Diff(want, usesOf(status, entry)); diff != "" || !isActive(status, entry) {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
	other := store.Entry{StoredArchive: schema.StoredArchive{Name: "shop", Version: "1.1.0"}}
	if diff := cmp.Diff(want[1:], usesOf(status, other)); diff != "" || isActive(status, other) {
		t.Errorf("uses of 1.1.0 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]schema.UnsearchedVersion{{ID: "shop-0.9.0", Reason: "its archive is not on this host"}}, notStored(status, []store.Entry{entry})); diff != "" {
		t.Errorf("not searched (-want +got):\n%s", diff)
	}
}
