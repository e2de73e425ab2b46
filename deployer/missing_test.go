package deployer_test

import (
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestAllMissing checks that a user with rights in one namespace sees all missing rights at once, whichever is needed first.
func TestAllMissing(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", plain)
	b.Imported(shop, "1.1.0", coloured)
	b.Only(site, nil)
	joe := b.Connect() // who has asked nothing yet
	for name, run := range map[string]verb{"add": add("1.0.0"), "upgrade": change(records.Up, "1.1.0"), "remove": remove(shop), "rollback": rollback(0)} {
		for _, dryRun := range []bool{true, false} {
			b.Writes()
			_, err := run(t.Context(), joe, plan.Options{DryRun: dryRun})
			deployertest.Refused(t, err, report.Forbidden, "you do not have", "secrets", "leases", "metalk8s-solutions", "registry")
			if hints := strings.Join(report.Hints(err), "\n"); strings.Contains(hints, `["list"]`) && strings.Contains(hints, `resources: ["namespaces"]`) {
				t.Errorf("%s: the right to list namespaces is asked for, which a change in one of them does not take:\n%s", name, hints)
			}
			if writes := b.Writes(); len(writes) > 0 {
				t.Errorf("%s changed %q", name, writes)
			}
		}
	}
}
