package console_test

import (
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

var links = regexp.MustCompile(`<a [^>]*href="([^"]*)"`)

// content is the main part of a page.
func content(body string) string {
	_, after, _ := strings.Cut(body, `<main id="main"`)
	inside, _, _ := strings.Cut(after, "</main>")
	return inside
}

// TestVisitor: a user with permissions in one namespace opens their environment by its name, and no link leads to a
// refusal.
func TestVisitor(t *testing.T) {
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{Fields: "title: {type: string}", Scale: true})
	bed.Namespace("production", "production-1")
	b := startOn(t, bed.Server, nil)
	bed.Only(deployertest.Environment, nil)
	c := b.with(t, "joe")
	has := func(path string, words ...string) answer {
		t.Helper()
		a := c.get(path)
		if a.StatusCode != http.StatusOK {
			t.Errorf("GET %s: %d\n%s", path, a.StatusCode, content(a.body))
		}
		for _, word := range words {
			if !strings.Contains(a.body, word) {
				t.Errorf("GET %s: there is no %q in\n%s", path, word, content(a.body))
			}
		}
		return a
	}
	for _, path := range []string{"/", "/environments"} {
		has(path, "Your environments", "Parts that you cannot see", "namespaces")
	}
	for _, path := range []string{"/", "/solutions", "/solutions/shop", "/environments", "/history", "/alerts"} {
		var failure refused
		if a := c.json(path, &failure); a.StatusCode != http.StatusForbidden || failure.Code != report.Forbidden {
			t.Errorf("GET %s: a program is told %d %s", path, a.StatusCode, a.body)
		}
	}
	for _, name := range []string{"nowhere", "production", "production-1", "kube-system", "<script>alert(1)</script>", "../x"} {
		a := c.do(http.MethodGet, "/environments?open="+strings.ReplaceAll(name, "/", "%2F"), nil)
		if a.StatusCode != http.StatusNotFound || !strings.Contains(a.body, "that you can see") || strings.Contains(a.body, "<script>alert") {
			t.Errorf("open %s: %d\n%s", name, a.StatusCode, content(a.body))
		}
	}
	if a := c.get("/environments/production"); a.StatusCode != http.StatusNotFound || !strings.Contains(a.body, "that you can see") {
		t.Errorf("another environment: %d\n%s", a.StatusCode, content(a.body))
	}
	site := "/environments/" + deployertest.Environment
	c.leads(c.get("/environments?open="+deployertest.Environment), site)
	has("/", `href="`+site+`"`)
	shown := has(site, "shop", "1.0.0", "Ready", "the records", "secrets", "leases")

	seen := map[string]bool{}
	queue := []answer{shown}
	for len(queue) > 0 {
		for _, link := range links.FindAllStringSubmatch(queue[0].body, -1) {
			path := strings.ReplaceAll(link[1], "&amp;", "&")
			if seen[path] || !strings.HasPrefix(path, "/") {
				continue
			}
			seen[path] = true
			a := c.get(path)
			if a.StatusCode != http.StatusOK {
				t.Errorf("a link leads to %s: %d\n%s", path, a.StatusCode, content(a.body))
			}
			queue = append(queue, a)
		}
		queue = queue[1:]
	}
	if !seen[site+"/apps"] || !seen["/doctor"] {
		t.Errorf("the links are %v", seen)
	}

	var status schema.EnvironmentStatus
	a := c.json(site, &status)
	if err := schema.ValidateOutput("environment", []byte(a.body)); err != nil || a.StatusCode != http.StatusOK || len(status.Unseen) == 0 {
		t.Errorf("%d %v %+v", a.StatusCode, err, status)
	}
}

// TestProgramOfVisitor: a program with permissions in one namespace names it, and gets the document of the parts that
// it is allowed to read, and the missing permissions. If there are none, the answer is a refusal with the missing
// permissions.
func TestProgramOfVisitor(t *testing.T) {
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", cloud)
	bed.Namespace("production", "production-1")
	b := startOn(t, bed.Server, nil)
	bed.Only(deployertest.Environment, nil)
	site, named := "/environments/"+deployertest.Environment, "?namespace="+deployertest.Environment
	for _, test := range []struct {
		path      string
		solutions []string // nil where nothing can be seen
	}{
		{site + named, []string{"shop"}},
		{site + "/components/shop" + named, []string{"shop"}},
		{"/environments/production?namespace=production-1", nil},
		{"/environments/production" + named, nil},
		{"/environments/nowhere" + named, nil},
		{site + "?namespace=kube-system", nil},
		{site + "?namespace=%3Cscript%3E", nil},
		{site + "/components/shop?namespace=production-1", nil},
		{"/environments/production/components/shop", nil},
	} {
		c := b.with(t, "joe") // a user without an earlier state
		if test.solutions == nil {
			var failure refused
			if a := c.json(test.path, &failure); a.StatusCode != http.StatusForbidden || failure.Code != report.Forbidden {
				t.Errorf("GET %s: %d %s", test.path, a.StatusCode, a.body)
			}
			continue
		}
		var status schema.EnvironmentStatus
		a := c.json(test.path, &status)
		if err := schema.ValidateOutput("environment", []byte(a.body)); err != nil || a.StatusCode != http.StatusOK || len(status.Unseen) == 0 {
			t.Fatalf("GET %s: %d %v %s", test.path, a.StatusCode, err, a.body)
		}
		var solutions []string
		for _, d := range status.Namespaces[0].Deployments {
			solutions = append(solutions, d.Solution)
		}
		if !slices.Equal(solutions, test.solutions) || len(status.Namespaces) != 1 {
			t.Errorf("GET %s: %s", test.path, a.body)
		}
	}
	c := b.with(t, "joe")
	var failure refused
	if a := c.json(site+"/components/nobody"+named, &failure); a.StatusCode != http.StatusNotFound {
		t.Errorf("another Solution: %d %s", a.StatusCode, a.body)
	}
	var operations struct{ Operations, Pending []any }
	if a := c.json("/operations", &operations); a.StatusCode != http.StatusOK || operations.Operations == nil || operations.Pending != nil {
		t.Errorf("their own operations: %d %s", a.StatusCode, a.body)
	}
}

// TestEnvironmentPage: changed fields are listed with their repair, and members with their permissions.
func TestEnvironmentPage(t *testing.T) {
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{})
	b := startOn(t, bed.Server, nil)
	c := b.in(t)
	site := "/environments/" + deployertest.Environment
	if a := c.get(site + "?compare=fields"); !strings.Contains(a.body, "nothing was changed since") {
		t.Errorf("%d\n%s", a.StatusCode, content(a.body))
	}
	config := bed.Server.Object("ConfigMap", deployertest.Environment, "shop-operator-config")
	config.Object["data"].(map[string]any)["operator.yaml"] = "<b>changed</b>"
	bed.Put(config)
	b.clock.advance(10 * time.Second)
	a := c.get(site)
	for _, words := range []string{"Drifted", "changed by others", "operator.yaml", "&lt;b&gt;changed&lt;/b&gt;", "Members and their permissions", "shop-operator", `class="button primary" href="` + site + `/plan/repair`} {
		if !strings.Contains(a.body, words) {
			t.Errorf("there is no %s in\n%s", words, content(a.body))
		}
	}
	var status schema.EnvironmentStatus
	c.json(site, &status)
	data, err := json.Marshal(status)
	if err == nil {
		err = schema.ValidateOutput("environment", data)
	}
	if err != nil || len(status.Members) == 0 || len(status.Namespaces[0].Deployments[0].Drift) == 0 {
		t.Errorf("%v %s", err, data)
	}

	bed.Deleted("Role", deployertest.Environment, "shop-operator") // what is worse does not hide the change
	b.clock.advance(10 * time.Second)
	c.get(site).has(t, "Failed", "changed by others", `class="button primary" href="`+site+`/plan/repair`)
}

// TestVisitorFollows: the page of a visitor is updated after a change, and when the user loses the permission for it.
func TestVisitorFollows(t *testing.T) {
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{})
	b := startOn(t, bed.Server, nil)
	bed.Only(deployertest.Environment, nil)
	c := b.with(t, "joe")
	site := "/environments/" + deployertest.Environment
	c.leads(c.get("/environments?open="+deployertest.Environment), site)
	first := c.get(site).body
	feed := regexp.MustCompile(`data-feed="([^"]*)"`).FindStringSubmatch(first)
	if feed == nil || !strings.Contains(first, "2 of 2 objects ready") {
		t.Fatalf("feed %q\n%s", feed, content(first))
	}
	if a := c.get("/events?environment=production"); a.StatusCode != http.StatusNotFound && a.StatusCode != http.StatusForbidden {
		t.Errorf("events of another environment: %d %s", a.StatusCode, a.body)
	}
	next := c.follow(html.UnescapeString(feed[1]))
	changed := func() {
		t.Helper()
		if !next() {
			t.Fatal("the stream has ended")
		}
	}
	bed.Deleted("Deployment", deployertest.Environment, "shop-operator")
	b.clock.advance(10 * time.Second)
	changed()
	for !strings.Contains(c.get(site).body, "1 of 1 objects ready") {
		changed() // a look that was under way has seen it before and after
	}
	bed.Only("elsewhere", nil)
	b.clock.advance(10 * time.Second)
	changed()
	if a := c.get(site); a.StatusCode != http.StatusNotFound || strings.Contains(a.body, "shop") {
		t.Errorf("without rights: %d\n%s", a.StatusCode, content(a.body))
	}
}
