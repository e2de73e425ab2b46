package deployer_test

import (
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestDashboardsOfTwoSolutions: Grafana shows one dashboard of a uid, so that the second Solution with it is refused.
func TestDashboardsOfTwoSolutions(t *testing.T) {
	b := deployertest.New(t)
	dashboard := func(json string) deployertest.Content {
		return deployertest.Content{Files: map[string]string{"monitoring/dashboards/overview.json": json}}
	}
	b.Activated(shop, "1.0.0", dashboard(`{"uid": "overview", "title": "Overview"}`))
	b.Imported(shop, "1.1.0", dashboard(`{"uid": "overview", "title": "Overview, again"}`))
	must(b, activate("1.1.0")) // of the same Solution
	b.Imported("bar", "1.0.0", dashboard(`{"uid": "overview", "title": "Overview"}`))
	_, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: "bar", Version: "1.0.0"})
	deployertest.Refused(t, err, report.Refused, "ConfigMap bar-system/bar-dashboard-overview has a dashboard with the uid overview",
		"as ConfigMap shop-system/shop-dashboard-overview of Solution shop has", "solutionctl deploy deactivate shop")
	if b.Server.Object("ConfigMap", "bar-system", "bar-dashboard-overview") != nil {
		t.Error("the dashboard was created")
	}
	for version, json := range map[string]string{"1.1.0": `{"title": "Overview"}`, "1.2.0": `{"uid": 7}`, "1.3.0": `[]`} {
		b.Activated("bar", version, dashboard(json))
	}
}
