package deployer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func dashboard(json string) deployertest.Content {
	return deployertest.Content{Files: map[string]string{"monitoring/dashboards/overview.json": json}}
}

// TestExistingDashboardsStay checks that two Solutions with dashboards of one uid, deployed before that was refused, can still be
// activated, and that a new conflict is refused.
func TestExistingDashboardsStay(t *testing.T) {
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

// TestDashboardsOfComponents: those that manifests and charts of components bring are compared as well, wherever they are deployed.
func TestDashboardsOfComponents(t *testing.T) {
	const object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, labels: {grafana_dashboard: \"1\"}}, data: {a.json: '%s'}}\n"
	of := func(solution, scope, chart, manifests string) deployertest.Content {
		return deployertest.Content{
			Manifest: "components:\n  - {name: db, chart: charts/db.tgz}\n  - {name: api, manifests: components/api.yaml, scope: " + scope + "}\n",
			Files: map[string]string{
				"charts/db.tgz":       deployertest.Chart(t, "db", map[string]string{"templates/db.yaml": fmt.Sprintf(object, solution+"-db", chart)}),
				"components/api.yaml": fmt.Sprintf(object, solution+"-api", manifests),
			},
		}
	}
	add := func(solution, version string) verb {
		return func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
			return d.Add(ctx, deployer.AddOptions{Options: o, Environment: site, Solution: solution, Version: version})
		}
	}
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", of(shop, "environment", `{"uid": "db"}`, `{"uid": "api"}`))
	b.Activated("other", "1.0.0", of("other", "cluster", `{"uid": "other-db"}`, `{"uid": "other"}`))
	must(b, add("other", "1.0.0"))
	b.Imported("bar", "1.0.0", dashboard(`{"uid": "other", "title": "Another"}`))
	_, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: "bar", Version: "1.0.0"})
	deployertest.Refused(t, err, report.Refused, "as ConfigMap other-system/other-api of Solution other has", "solutionctl deploy deactivate other")
	b.Imported("bar", "1.1.0", of("bar", "cluster", `{"uid": "bar"}`, `{"uid": "db"}`))
	_, err = b.Activate(t.Context(), deployer.ActivateOptions{Solution: "bar", Version: "1.1.0"})
	deployertest.Refused(t, err, report.Refused, "as ConfigMap site/shop-db of Solution shop has", "solutionctl deploy remove ENVIRONMENT shop")
	b.Activated("bar", "1.2.0", of("bar", "environment", `{"uid": "bar"}`, `{"uid": "db"}`))
	_, err = add("bar", "1.2.0")(t.Context(), b.Deployer, plan.Options{})
	deployertest.Refused(t, err, report.Refused, "ConfigMap site/bar-api has a dashboard with the uid db, as ConfigMap site/shop-db of Solution shop has")

	// Both were deployed before that was refused: both can still be deployed, and a third one is refused.
	withoutRefusal(b, "other", "other", "api")
	b.Imported(shop, "1.1.0", of(shop, "environment", `{"uid": "db"}`, `{"uid": "api", "title": "A newer one"}`))
	done := must(b, func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
		return d.Change(ctx, deployer.ChangeOptions{Options: o, Environment: site, Solution: shop, Version: "1.1.0", Direction: records.Up})
	})
	wantWords(t, done.Notices, "ConfigMap site/shop-api has a dashboard with the uid api, as ConfigMap other-system/other-api of Solution other has, and had it before")
	b.Imported("other", "1.1.0", of("other", "cluster", `{"uid": "other-db"}`, `{"uid": "api"}`))
	done = must(b, func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
		return d.Activate(ctx, deployer.ActivateOptions{Options: o, Solution: "other", Version: "1.1.0"})
	})
	wantWords(t, done.Notices, "ConfigMap other-system/other-api has a dashboard with the uid api, as ConfigMap site/shop-api of Solution shop has, and had it before")
	b.Imported("bar", "1.3.0", dashboard(`{"uid": "api"}`))
	_, err = b.Activate(t.Context(), deployer.ActivateOptions{Solution: "bar", Version: "1.3.0"})
	deployertest.Refused(t, err, report.Refused, "uid api")
}

// TestDashboardsOfOneRun: of two Solutions that come together, neither was there before.
func TestDashboardsOfOneRun(t *testing.T) {
	b := deployertest.New(t)
	b.Namespace(site, site)
	for _, name := range []string{shop, "bar"} {
		content := deployertest.Content{Files: map[string]string{
			"ui/board.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "-board, labels: {grafana_dashboard: '1'}}, data: {a.json: '{\"uid\": \"a\", \"title\": \"" + name + "\"}'}}",
		}}
		b.Activated(name, "1.0.0", content)
	}
	_, err := b.Ensure(t.Context(), wanted(shop, "bar"))
	deployertest.Refused(t, err, report.Refused, "ConfigMap site/", "has a dashboard with the uid a")
}
