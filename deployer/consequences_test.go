package deployer_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
)

// TestConsequencesOfDeletion: the plan to delete an environment begins with the losses. TestPurge has those of a purge.
func TestConsequencesOfDeletion(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", plain)
	b.Clock(shop, site, "red", "hands: 2")
	b.Clock(shop, site, "blue", "hands: 3")
	claim := "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s, namespace: " + site + "}, spec: {resources: {requests: {storage: %s}}}, status: %s}"
	for _, volume := range [][]any{{"first", "1Gi", "{capacity: {storage: 8Gi}}"}, {"second", "4Gi", "{}"}, {"third", "many", "{}"}} {
		b.Server.Put(t, fmt.Sprintf(claim, volume...))
	}
	planned, err := b.DeleteEnvironment(t.Context(), environments.DeleteOptions{Options: plan.Options{DryRun: true}, Environment: site, Data: plan.DeleteData})
	if err != nil {
		t.Fatal(err)
	}
	const want = "shop 1.0.0 is removed: namespace " + site + " is deleted with 3 volumes (12.0 GiB) and 2 applications; 1 program stops"
	if got := planned.ConsequencesText(); got != want {
		t.Errorf("delete:\ngot  %s\nwant %s", got, want)
	}
}

// TestConsequences: each plan of a life begins with what it means.
func TestConsequences(t *testing.T) {
	b := deployertest.New(t)
	b.Imported(shop, "1.0.0", plain)
	b.Imported(shop, "1.1.0", deployertest.Content{
		Fields: "colour: {type: string}", Role: "- {apiGroups: [''], resources: [pods, services], verbs: [get, list]}",
	})
	deleting := func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
		return d.Remove(ctx, deployer.RemoveOptions{Options: o, Environment: site, Solution: shop, Data: plan.DeleteData})
	}
	for _, step := range []struct {
		name string
		run  verb
		text string
		then func()
	}{
		{"activate", activate("1.0.0"), "shop 1.0.0 becomes active", nil},
		{"add", add("1.0.0"), "shop 1.0.0 is added: 1 program starts; 1 new permission", func() {
			b.Clock(shop, site, "red", "hands: 2")
			b.Clock(shop, site, "blue", "hands: 3")
		}},
		{"activate the next one", activate("1.1.0"), "the active version of shop goes from 1.0.0 to 1.1.0: no program restarts; 1 definition changed without an effect on stored data", nil},
		{
			"upgrade", change(records.Up, "1.1.0"),
			"shop goes from 1.0.0 to 1.1.0: new image of 1 program, one restart; 1 new permission; data of 2 Clocks checked: nothing is lost", nil,
		},
		{"go back", change(records.Down, "1.0.0"), "shop goes from 1.1.0 to 1.0.0: new image of 1 program, one restart; data of 2 Clocks checked: nothing is lost", nil},
		{"remove", deleting, "shop 1.0.0 is removed: 1 program stops; 2 Clocks deleted after an export", nil},
	} {
		planned, err := step.run(t.Context(), b.Deployer, plan.Options{DryRun: true})
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := planned.ConsequencesText(); got != step.text {
			t.Errorf("%s:\ngot  %s\nwant %s", step.name, got, step.text)
		}
		if step.name == "remove" { // its clocks are exported first
			break
		}
		done := must(b, step.run)
		if done.Digest != planned.Digest {
			t.Errorf("%s: the digest of the plan is %s, and that of what was done %s", step.name, planned.Digest, done.Digest)
		}
		if step.then != nil {
			step.then()
		}
	}
}
