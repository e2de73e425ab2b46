package deployer_test

import (
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestRemediesForOneNamespace: the commands in hints of a run for one namespace of an environment are for this namespace, too.
func TestRemediesForOneNamespace(t *testing.T) {
	const second = site + "-2"
	change := func(b *deployertest.Bed, direction records.Direction, version string) error {
		_, err := b.Change(t.Context(), deployer.ChangeOptions{
			Environment: site, Namespace: second, Solution: shop, Version: version, Direction: direction, Options: plan.Options{Timeout: 10},
		})
		return err
	}
	for want, fail := range map[string]func(*deployertest.Bed) error{
		"solutionctl deploy rollback site shop --namespace site-2": func(b *deployertest.Bed) error {
			b.Server.Stall("Deployment")
			return change(b, records.Up, "1.1.0")
		},
		"solutionctl deploy upgrade site shop 1.1.0 --namespace site-2": func(b *deployertest.Bed) error { return change(b, records.Down, "1.1.0") },
		"solutionctl deploy upgrade site shop 2.0.0 --namespace site-2": func(b *deployertest.Bed) error { return change(b, records.Up, "3.0.0") },
		"solutionctl deploy remove site shop --namespace site-2 --adopt": func(b *deployertest.Bed) error {
			b.Deleted("Secret", cluster.SystemNamespace, record.Key{Namespace: second, Name: shop}.SecretName())
			_, err := b.Remove(t.Context(), deployer.RemoveOptions{Environment: site, Namespace: second, Solution: shop})
			return err
		},
		"solutionctl deploy downgrade site shop 0.9.0 --namespace site-2": func(b *deployertest.Bed) error {
			_, err := b.Add(t.Context(), deployer.AddOptions{Environment: site, Namespace: second, Solution: shop, Version: "0.9.0"})
			return err
		},
	} {
		t.Run(want, func(t *testing.T) {
			b := deployertest.New(t)
			b.Namespace(site, second)
			b.Imported(shop, "0.9.0", plain)
			b.Added(shop, "1.0.0", plain)
			b.Activated(shop, "1.1.0", coloured)
			b.Imported(shop, "2.0.0", coloured)
			b.Imported(shop, "3.0.0", deployertest.Content{Fields: coloured.Fields, Manifest: "minUpgradeFrom: 2.0.0"})
			err := fail(b)
			if got := report.RemediesOf(err); len(got) == 0 || got[0].String() != want {
				t.Errorf("%v\nhas remedies %q", err, got)
			}
		})
	}
}
