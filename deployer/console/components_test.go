package console_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/schema"
)

// cloud is a Solution of which not everybody has everything.
var cloud = deployertest.Content{
	Files: map[string]string{
		"components/db.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: db}\n",
		"components/api.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: api}\n",
		"components/quota.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: quota}\n",
		"components/extra.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n",
	},
	Manifest: `components:
  - {name: db, manifests: components/db.yaml}
  - {name: api, manifests: components/api.yaml, dependsOn: [{component: db}]}
  - {name: extra, manifests: components/extra.yaml, profiles: [large]}
  - {name: quota, manifests: components/quota.yaml, scope: cluster, select: optional}
`,
}

// TestComponents is the life of a Solution with components in a browser: chosen, looked at, and chosen otherwise.
func TestComponents(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", cloud)
	bed.Imported("shop", "1.1.0", cloud)
	c := startOn(t, bed.Server, nil).in(t)
	site := "/environments/" + deployertest.Environment
	add := site + "/plan/add?solution=shop&version=1.0.0"

	for _, test := range []struct{ path, components string }{
		{add, "api db"},
		{add + "&profile=large", "api db extra"},
		{add + "&shown=db&shown=api&ticked=db&ticked=api", "api db"},
		{add + "&shown=db&shown=api&ticked=db", "db"},
		{add + "&shown=db&shown=api&ticked=db&ticked=api&ticked=extra", "api db extra"},
		{add + "&component=extra&shown=db&shown=api&shown=extra&ticked=db&ticked=extra", "db extra"},
		{add + "&component=extra&component=api%3Dfalse", "db extra"},
		{add + "&component=api%3Dfalse&component=api%3Ddefault&shown=db&ticked=db", "api db"},
		{add + "&component=extra&component=extra%3Ddefault&shown=db&shown=api&shown=extra&ticked=db&ticked=api&ticked=extra", "api db"},
		{add + "&component=extra%3Ddefault&ticked=extra", "api db extra"},
		{add + "&profiles=true&shown=db&shown=api&shown=extra&ticked=db&ticked=api&ticked=extra", "api db"},
	} {
		var plan schema.Operation
		c.json(test.path, &plan)
		if got := strings.Join(planned(plan), " "); got != test.components {
			t.Errorf("%s: %s, want %s", test.path, got, test.components)
		}
	}
	for _, path := range []string{
		add + "&shown=db&shown=api&ticked=api", // api needs db
		add + "&ticked=nobody", add + "&profile=huge", add + "&component=%3Cscript%3E", add + "&shown=operator",
	} {
		if a := c.get(path); a.StatusCode < 400 || a.StatusCode >= 500 || !strings.Contains(a.body, `value="db"`) {
			t.Errorf("%s: %d, nothing to choose\n%s", path, a.StatusCode, a.body)
		}
	}
	if a := c.get(add + "&component=db%3Dmaybe"); a.StatusCode != http.StatusBadRequest {
		t.Errorf("no choice: %d", a.StatusCode)
	}

	if a := c.get(add + "&component=extra"); !strings.Contains(a.body, `name="component" value="extra=default"`) || strings.Contains(a.body, "api=default") {
		t.Errorf("no way back to the default\n%s", a.body)
	}
	asked := c.get(add + "&shown=db&shown=api&ticked=db&ticked=api&ticked=extra")
	if !strings.Contains(asked.body, `<input type="hidden" name="component" value="extra"><input type="hidden" name="plan"`) {
		t.Errorf("the button does not say what was chosen\n%s", asked.body)
	}
	c.applies(add + "&component=extra")
	if names := strings.Join(bed.Server.Names("ConfigMap"), " "); !strings.Contains(names, "/extra") {
		t.Errorf("what was chosen is not deployed: %s", names)
	}
	page := c.get(site + "/components/shop")
	for _, text := range []string{`class="graph fits-2"`, "Selected by its name", "/plan/upgrade?"} {
		if page.StatusCode != http.StatusOK || !strings.Contains(page.body, text) {
			t.Errorf("%d, nothing of %q\n%s", page.StatusCode, text, page.body)
		}
	}
	var graph schema.ComponentGraph
	c.json(site+"/components/shop?namespace="+deployertest.Environment, &graph)
	deployertest.Valid(t, "components", graph)
	if !slices.ContainsFunc(graph.Components, func(n schema.ComponentNode) bool { return n.Name == "api" && n.Status != nil }) {
		t.Errorf("%+v", graph)
	}
	if a := c.get(site); !strings.Contains(a.body, "/components/shop?namespace=") {
		t.Errorf("no link\n%s", a.body)
	}
	for _, path := range []string{site + "/components/nobody", site + "/components/shop?namespace=elsewhere", "/environments/nowhere/components/shop"} {
		if a := c.get(path); a.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}

	upgrade := site + "/plan/upgrade?solution=shop"
	c.ends(c.post(upgrade+"&profile=large", "plan", c.planDigest(upgrade+"&profile=large")))
	bed.Imported("shop", "1.2.0", cloud)
	var plan schema.Operation
	c.json(upgrade, &plan)
	if got := strings.Join(planned(plan), " "); plan.Version != "1.2.0" || got != "api db extra" {
		t.Errorf("the choice is forgotten: %s of %s", got, plan.Version)
	}
	if a := c.get(upgrade); !strings.Contains(a.body, `name="profile" value="large" checked`) {
		t.Errorf("the choice is not shown\n%s", a.body)
	}
}

// TestComponentsOfTheCluster: cluster components are selected when a Solution is activated, and nowhere else.
func TestComponentsOfTheCluster(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", cloud)
	c := startOn(t, bed.Server, nil).in(t)
	activate := "/solutions/shop/plan/activate?version=1.0.0"
	if a := c.get(activate); !strings.Contains(a.body, `name="ticked" value="quota"`) || strings.Contains(a.body, `value="db"`) || strings.Contains(a.body, `name="profile"`) {
		t.Errorf("%d: other boxes\n%s", a.StatusCode, a.body)
	}
	var plan schema.Operation
	if c.json(activate+"&ticked=quota", &plan); strings.Join(planned(plan), " ") != "quota" {
		t.Errorf("%+v", plan)
	}
	c.applies(activate + "&component=quota")
	site := "/environments/" + deployertest.Environment
	add := site + "/plan/add?solution=shop"
	if a := c.get(add); strings.Contains(a.body, `value="quota"`) || !strings.Contains(a.body, `value="db"`) {
		t.Errorf("%d: other boxes\n%s", a.StatusCode, a.body)
	}
	c.applies(add)
	var graph schema.ComponentGraph
	c.json(site+"/components/shop", &graph)
	at := slices.IndexFunc(graph.Components, func(n schema.ComponentNode) bool { return n.Name == "quota" })
	if at < 0 || graph.Components[at].Status == nil || graph.Components[at].Status.Health != schema.HealthReady {
		t.Errorf("%+v", graph)
	}
}

// planned are the components that a plan brings.
func planned(o schema.Operation) (names []string) {
	for _, part := range o.Parts {
		if part.Component != "" {
			names = append(names, part.Component)
		}
	}
	slices.Sort(names)
	return names
}

// TestYourComponents: a user with permissions in one namespace sees the components with objects there, and the
// permissions for the others.
func TestYourComponents(t *testing.T) {
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{
		Files: map[string]string{
			"components/db.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: db}
spec:
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "example.com/db:1"}]}
`,
		},
		Manifest: "components:\n  - {name: db, manifests: components/db.yaml}\n",
	})
	b := startOn(t, bed.Server, nil)
	bed.Only(deployertest.Environment, nil)
	c := b.with(t, "joe")
	site := "/environments/" + deployertest.Environment
	link := site + "/components/shop?namespace=" + deployertest.Environment
	if a := c.get(site); !strings.Contains(a.body, `href="`+link+`"`) {
		t.Errorf("no way to %s in\n%s", link, content(a.body))
	}
	a := c.get(link)
	for _, words := range []string{"<bdi>db</bdi>", "1.0.0", "Parts that you cannot see", "in the records", "secrets"} {
		if a.StatusCode != http.StatusOK || !strings.Contains(a.body, words) {
			t.Errorf("%d, there is no %q in\n%s", a.StatusCode, words, content(a.body))
		}
	}
	for _, path := range []string{site + "/components/%3Cscript%3E", site + "/components/shop?namespace=kube-system", "/environments/production/components/shop"} {
		if a := c.get(path); a.StatusCode != http.StatusNotFound || strings.Contains(a.body, "<script>") {
			t.Errorf("%s: %d\n%s", path, a.StatusCode, content(a.body))
		}
	}
	var status schema.EnvironmentStatus
	c.json(link, &status)
	deployertest.Valid(t, "environment", status)
	if components := status.Namespaces[0].Deployments[0].Components; len(components) == 0 || len(status.Unseen) == 0 {
		t.Errorf("a program gets %+v", status)
	}
}
