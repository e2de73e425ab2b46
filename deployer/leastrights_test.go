package deployer_test

import (
	"context"
	"slices"
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/survey"
)

// withHooks is a Solution with a chart whose hooks stay in the cluster, one of which is a Job, and a component beside it.
func withHooks(t *testing.T) deployertest.Content {
	t.Helper()
	return deployertest.Content{
		Files: map[string]string{
			"charts/identity.tgz": deployertest.Chart(t, "identity", map[string]string{"templates/identity.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: identity}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: identity-settings, annotations: {helm.sh/hook: "pre-install,pre-upgrade"}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: identity-hook, annotations: {helm.sh/hook: "pre-install,pre-upgrade"}}
spec: {maxUnavailable: 1}
---
apiVersion: batch/v1
kind: Job
metadata: {name: identity-db-sync, annotations: {helm.sh/hook: "post-install,post-upgrade"}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: registry.solutionctl.invalid/shop-1.0.0/shop-operator:1.0.0}]}}}
`}),
			"components/scheduler.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: scheduler}\n",
		},
		Manifest: "components:\n  - {name: identity, chart: charts/identity.tgz}\n  - {name: scheduler, manifests: components/scheduler.yaml}\n",
	}
}

// environmentWithHooks has it deployed.
func environmentWithHooks(t *testing.T) *deployertest.Bed {
	t.Helper()
	b := deployertest.New(t)
	b.Namespace(site, site)
	b.Activated(shop, "1.0.0", withHooks(t))
	ensure(t, b, wanted(shop))
	if b.Server.Object("Job", site, "identity-db-sync") == nil {
		t.Fatal("the Job of the hook did not stay")
	}
	return b
}

// nowhere is a namespace that does not exist: a user confined to it has only the rights that are listed besides.
const nowhere = "-"

// interrupted ends a verb before it is recorded as done.
func interrupted(t *testing.T, b *deployertest.Bed, run func(context.Context) error, writes int) {
	t.Helper()
	mend := endingAt(b, writes)
	defer mend()
	if err := run(t.Context()); err == nil {
		t.Fatal("it was not interrupted")
	}
}

// TestLeastRightsToPlan: the rights that a plan names are enough to make the plan, also of what stays as it is. Planning asks the API
// server whether the hooks of every component could run, under a name that nothing has.
func TestLeastRightsToPlan(t *testing.T) {
	for name, change := range map[string]func(*testing.T, *deployertest.Bed){
		"an object is gone": func(t *testing.T, b *deployertest.Bed) {
			t.Helper()
			b.Deleted("Secret", site, "scheduler")
		},
		"an object and the Job of a hook are gone": func(t *testing.T, b *deployertest.Bed) {
			t.Helper()
			b.Deleted("Secret", site, "scheduler")
			b.Deleted("Job", site, "identity-db-sync")
		},
		"a hook that is no Job is gone, too": func(t *testing.T, b *deployertest.Bed) {
			t.Helper()
			b.Deleted("Secret", site, "scheduler")
			b.Deleted("PodDisruptionBudget", site, "identity-hook")
		},
		"a repair was interrupted": func(t *testing.T, b *deployertest.Bed) {
			t.Helper()
			b.Deleted("Secret", site, "scheduler")
			interrupted(t, b, func(ctx context.Context) error {
				_, err := b.Repair(ctx, deployer.RepairOptions{})
				return err
			}, 4)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := environmentWithHooks(t)
			change(t, b)
			o := wanted(shop)
			o.KeepEdits = true
			plan, least, err := b.PlanEnsure(t.Context(), o)
			if err != nil || plan.Empty() {
				t.Fatalf("there is nothing to do: %v", err)
			}
			b.Only(nowhere, mayOnly(least))
			o.Expect = plan.Digest
			if _, err := b.Connect().Ensure(t.Context(), o); err != nil {
				t.Fatalf("with the rights that the plan names: %v", err)
			}
			if b.Server.Object("Secret", site, "scheduler") == nil {
				t.Error("the Secret did not come back")
			}
		})
	}
}

// TestRepairRights: with the rights of repairs everything that a repair brings back comes back.
func TestRepairRights(t *testing.T) {
	b := environmentWithHooks(t)
	rights, err := b.RepairRights(t.Context(), site, true)
	if err != nil {
		t.Fatal(err)
	}
	gone := [][2]string{{"Secret", "scheduler"}, {"ConfigMap", "identity"}, {"ConfigMap", "identity-settings"}, {"PodDisruptionBudget", "identity-hook"}}
	for _, object := range gone {
		b.Deleted(object[0], site, object[1])
	}
	b.Deleted("Job", site, "identity-db-sync") // which no repair runs again
	rights = slices.DeleteFunc(rights, func(p cluster.Permission) bool { return p.Namespace == metalk8s.SolutionsNamespace })
	b.Only(nowhere, mayOnly(rights))
	d := b.Connect()
	d.Active = &activeList{bed: b} // an environment has no active versions
	if _, err := d.Repair(t.Context(), deployer.RepairOptions{Selection: survey.Selection{Environment: site, Solution: shop}, Yield: true}); err != nil {
		t.Fatal(err)
	}
	for _, object := range gone {
		if b.Server.Object(object[0], site, object[1]) == nil {
			t.Errorf("%s %s did not come back", object[0], object[1])
		}
	}
	if slices.ContainsFunc(rights, func(p cluster.Permission) bool { return p.Resource == "jobs" && p.Verb == "create" }) {
		t.Error("repairs have the right to run Jobs")
	}
}
