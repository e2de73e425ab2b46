package console_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/rights"
)

const ownPage = "/environments/" + deployertest.Environment

// served has a webhook, whose certificate is in a Secret that no installer is allowed to read.
func served(version, fields string) deployertest.Content {
	return deployertest.Content{Fields: fields, Images: []string{"shop-webhook"}, Files: map[string]string{"operator/cluster/webhook.yaml": `apiVersion: v1
kind: Service
metadata: {name: shop-webhook}
spec: {selector: {app: shop-webhook}, ports: [{port: 443, targetPort: 9443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop-webhook}
spec:
  selector: {matchLabels: {app: shop-webhook}}
  template:
    metadata: {labels: {app: shop-webhook}}
    spec:
      containers: [{name: webhook, image: "{{ repository }}/shop-webhook:` + version + `"}]
      volumes: [{name: cert, secret: {secretName: serving}}]
`}, Conversion: "{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: somewhere, name: shop-webhook, path: /convert}}}}"}
}

// shared is a cluster with two versions of a Solution, both activated by an administrator, and an environment of others.
func shared(t *testing.T, content func(version, fields string) deployertest.Content) *deployertest.Bed {
	t.Helper()
	bed := deployertest.New(t)
	bed.Namespace("production", "production-1")
	bed.Activated("shop", "1.0.0", content("1.0.0", ""))
	bed.Activated("shop", "1.1.0", content("1.1.0", "colour: {type: string}"))
	if _, err := bed.Add(t.Context(), deployer.AddOptions{Environment: "production", Solution: "shop", Version: "1.0.0"}); err != nil {
		t.Fatal(err)
	}
	return bed
}

// printed are the roles of 'deploy roles' for a group, where they are bound.
func printed(t *testing.T, bed *deployertest.Bed, o rights.RolesOptions) []deployertest.Grant {
	t.Helper()
	roles, err := bed.Roles(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string][]rbacv1.PolicyRule{}
	var grants []deployertest.Grant
	for _, item := range roles.Items {
		switch one := item.(type) {
		case rbacv1.ClusterRole:
			rules[one.Kind+one.Namespace+one.Name] = one.Rules
		case rbacv1.RoleBinding:
			in := ""
			if one.RoleRef.Kind == "Role" {
				in = one.Namespace
			}
			grants = append(grants, deployertest.Grant{Namespace: one.Namespace, Rules: rules[one.RoleRef.Kind+in+one.RoleRef.Name]})
		}
	}
	return grants
}

// shipped are the roles of the documentation, bound where they are to be bound.
func shipped(t *testing.T, files ...string) []deployertest.Grant {
	t.Helper()
	var grants []deployertest.Grant
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join("../../docs/installer-role", file))
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(strings.ReplaceAll(string(data), "shop.example.com", deployertest.Group("shop")), "\n---\n") {
			var role rbacv1.ClusterRole
			if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
				t.Fatal(err)
			}
			g := deployertest.Grant{Namespace: role.Namespace, Rules: role.Rules}
			for _, part := range []string{"-environment", "-extras", "-applications-"} {
				if strings.Contains(role.Name, part) {
					g.Namespace = deployertest.Environment
				}
			}
			grants = append(grants, g)
		}
	}
	return grants
}

// TestInstallers: with each of the roles with which people deploy on the command line they deploy in the console, where part of the
// cluster is not theirs to read.
func TestInstallers(t *testing.T) {
	printedRole := func(t *testing.T, bed *deployertest.Bed) []deployertest.Grant {
		t.Helper()
		return printed(t, bed, rights.RolesOptions{Solution: "shop", Environment: deployertest.Environment, Installers: "installers"})
	}
	for _, test := range []struct {
		name   string
		roles  func(t *testing.T, bed *deployertest.Bed) []deployertest.Grant
		listed bool // environments
	}{
		{"printed", printedRole, true},
		{"shipped", func(t *testing.T, _ *deployertest.Bed) []deployertest.Grant {
			t.Helper()
			return shipped(t, "installer.yaml", "solution.yaml")
		}, true},
		{"shipped, with extras", func(t *testing.T, _ *deployertest.Bed) []deployertest.Grant {
			t.Helper()
			return shipped(t, "installer.yaml", "solution.yaml", "extras.yaml")
		}, true},
		{"printed, without listing namespaces", func(t *testing.T, bed *deployertest.Bed) []deployertest.Grant {
			t.Helper()
			return withoutListing(printedRole(t, bed))
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			bed := shared(t, served)
			grants := test.roles(t, bed)
			b := startOn(t, bed.Server, nil)
			bed.Granted(grants...)
			c := b.with(t, "installer")
			if !test.listed {
				c.leads(c.get("/environments?open="+deployertest.Environment), ownPage)
			}
			for _, path := range []string{"/", "/solutions", "/history", "/operations", ownPage} {
				if a := c.get(path); a.StatusCode != http.StatusOK || test.listed && strings.Contains(a.body, "Your environments") {
					t.Errorf("GET %s: %d\n%s", path, a.StatusCode, content(a.body))
				}
			}
			lives(c)
			if test.listed {
				var status struct{ Solutions []json.RawMessage }
				if a := c.json("/", &status); a.StatusCode != http.StatusOK || len(status.Solutions) != 1 || !strings.Contains(a.body, "do not have permission to read Secret shop-system/serving") {
					t.Errorf("%d %s", a.StatusCode, a.body)
				}
			}
		})
	}
}

// lives takes a Solution through its life in an environment.
func lives(c *browser) {
	c.Helper()
	offers := func(verbs ...string) {
		c.Helper()
		a := c.get(ownPage)
		for _, verb := range verbs {
			if !strings.Contains(a.body, ownPage+"/plan/"+verb) {
				c.Errorf("%s is not offered\n%s", verb, content(a.body))
			}
		}
	}
	offers("add")
	c.applies(ownPage + "/plan/add?solution=shop&version=1.0.0")
	offers("upgrade", "remove")
	c.applies(ownPage + "/plan/upgrade?solution=shop&version=1.1.0")
	offers("downgrade", "rollback")
	c.applies(ownPage + "/plan/downgrade?solution=shop&version=1.0.0")
	c.applies(ownPage + "/plan/rollback?solution=shop")
	if a := c.get(ownPage + "/plan/repair?solution=shop"); a.StatusCode != http.StatusOK {
		c.Errorf("repair: %d\n%s", a.StatusCode, content(a.body))
	}
	c.applies(ownPage + "/plan/remove?solution=shop")
}

// withoutListing are grants without the right to list or watch namespaces.
func withoutListing(grants []deployertest.Grant) []deployertest.Grant {
	for i, g := range grants {
		grants[i].Rules = slices.Clone(g.Rules)
		for j, r := range grants[i].Rules {
			if slices.Contains(r.Resources, "namespaces") {
				grants[i].Rules[j].Verbs = []string{"get"}
			}
		}
	}
	return grants
}

// TestReaders: a reader sees everything, and no button that leads to a refusal; who runs applications sees their environment.
func TestReaders(t *testing.T) {
	bed := shared(t, func(_, fields string) deployertest.Content { return deployertest.Content{Fields: fields} })
	bed.Added("shop", "1.1.0", deployertest.Content{Fields: "colour: {type: string}"})
	bed.Clock("shop", deployertest.Environment, "wall", "hands: 1")
	b := startOn(t, bed.Server, nil)
	bed.Granted(shipped(t, "reader.yaml")...)
	c := b.with(t, "reader")
	for _, path := range []string{"/", "/solutions", "/solutions/shop", "/environments", ownPage, "/history", "/operations"} {
		if a := c.get(path); a.StatusCode != http.StatusOK || strings.Contains(a.body, "Your environments") || strings.Contains(content(a.body), `/plan/`) {
			t.Errorf("GET %s: %d\n%s", path, a.StatusCode, content(a.body))
		}
	}
	bed.Granted(shipped(t, "applications.yaml")...)
	c = b.with(t, "operator")
	c.leads(c.get("/environments?open="+deployertest.Environment), ownPage)
	if a := c.get(ownPage + "/apps"); a.StatusCode != http.StatusOK {
		t.Errorf("%d\n%s", a.StatusCode, content(a.body))
	}
	if a := c.get(ownPage + "/apps/" + deployertest.Environment + "/Clock/wall"); a.StatusCode != http.StatusOK || strings.Contains(a.body, `class="unseen"`) || !strings.Contains(a.body, page.Text("app.noevents")) {
		t.Errorf("the events of an application: %d\n%s", a.StatusCode, content(a.body))
	}
}

// TestActivateWebhook: a version that brings a conversion webhook, whose certificate each plan makes again, is activated as it was seen.
func TestActivateWebhook(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", deployertest.Content{})
	bed.Imported("shop", "1.1.0", served("1.1.0", ""))
	c := startOn(t, bed.Server, nil).in(t)
	c.applies("/solutions/shop/plan/activate?version=1.1.0")
	definition := bed.Server.Object("CustomResourceDefinition", "", deployertest.Definition("shop"))
	if text, err := json.Marshal(definition.Object); err != nil || !strings.Contains(string(text), `"caBundle":`) {
		t.Errorf("no webhook: %v %s", err, text)
	}
}
