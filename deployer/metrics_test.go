package deployer_test

import (
	"slices"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
)

// TestOperatorMetrics: an operator that serves metrics may ask who reads them, and what it takes for that stays as it is.
func TestOperatorMetrics(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", deployertest.Content{Manifest: "operator: {metrics: {enabled: true}}"})
	done := must(b, add("1.0.0"))
	for _, want := range []string{
		"create Service site/shop-operator-metrics", "create Secret site/shop-operator-metrics-cert",
		"create ClusterRoleBinding solutionctl:site:shop:operator-metrics-auth",
	} {
		if !slices.Contains(changes(done), want) {
			t.Errorf("it does not %s: %q", want, changes(done))
		}
	}
	if again := must(b, add("1.0.0")); !again.Empty() {
		t.Errorf("the same again changes %q", changes(again))
	}
}
