package deployer_test

import (
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema/report"
)

func dashboard(json string) deployertest.Content {
	return deployertest.Content{Files: map[string]string{"monitoring/dashboards/overview.json": json}}
}

// TestDashboardsThatWereThere: two Solutions with dashboards of one uid, deployed when nobody was refused that, can still be activated;
// what is new is refused.
func TestDashboardsThatWereThere(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", dashboard(`{"uid": "overview"}`))
	b.Imported(shop, "1.1.0", dashboard(`{"uid": "overview", "title": "Overview, again"}`))
	b.Activated("bar", "1.0.0", dashboard(`{"uid": "barrrrrr"}`))
	withoutRefusal(b, "bar", "barrrrrr", "overview")
	done := must(b, activate("1.1.0"))
	wantWords(t, done.Notices, "ConfigMap shop-system/shop-dashboard-overview has a dashboard with the uid overview, as "+
		"ConfigMap bar-system/bar-dashboard-overview of Solution bar has, and had it before: Grafana shows one of them only")
	b.Activated("bar", "1.1.0", dashboard(`{"uid": "bar"}`)) // mends it
	if said := must(b, activate("1.1.0")).Notices; strings.Contains(strings.Join(said, "\n"), "uid") {
		t.Errorf("it was mended, and it says %q", said)
	}
	b.Imported("bar", "1.2.0", dashboard(`{"uid": "overview"}`))
	_, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: "bar", Version: "1.2.0"})
	deployertest.Refused(t, err, report.Refused, "uid overview")
}

// withoutRefusal deploys what a Solution has for the cluster with another uid in its dashboard, as an earlier program did.
func withoutRefusal(b *deployertest.Bed, solution, old, uid string) {
	b.Helper()
	states, err := b.Records.Engine.StatesIn(b.Context(), "")
	if err != nil {
		b.Fatal(err)
	}
	releases, _, err := b.Records.Engine.Deployed(b.Context(), states)
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range releases {
		if r.Name != solution {
			continue
		}
		for _, o := range r.Objects {
			if o.GetKind() == "ConfigMap" {
				for key, text := range o.Object["data"].(map[string]any) {
					o.Object["data"].(map[string]any)[key] = strings.ReplaceAll(text.(string), old, uid)
				}
			}
		}
		plan, err := b.Records.Engine.Plan(b.Context(), r, engine.PlanOptions{})
		if err == nil {
			err = b.Records.Engine.Apply(b.Context(), plan, engine.ApplyOptions{})
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// TestDashboardsOfTwoSolutions: Grafana shows one dashboard of a uid, so that the second Solution with it is refused.
func TestDashboardsOfTwoSolutions(t *testing.T) {
	b := deployertest.New(t)
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
