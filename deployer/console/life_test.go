package console_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ends waits for an operation that an answer leads to, and returns its steps.
func (b *browser) ends(a answer) (steps []string) {
	b.Helper()
	at := a.Header.Get("Location")
	if a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(at, "/operations/") {
		b.Fatalf("no operation: %d %s\n%s", a.StatusCode, at, a.body)
	}
	if events := b.get(at + "/events"); !strings.HasSuffix(events.body, "event: end\ndata:\n\n") {
		b.Fatalf("%s: events end with %q", at, events.body)
	}
	var done struct {
		Finished *time.Time
		Error    *struct{ Message string }
		Steps    []struct{ Step, Name string }
	}
	b.json(at, &done)
	if done.Finished == nil || done.Error != nil {
		b.Fatalf("%s: %+v", at, done)
	}
	if a := b.get(at); a.StatusCode != http.StatusOK {
		b.Fatalf("%s: %d\n%s", at, a.StatusCode, a.body)
	}
	for _, s := range done.Steps {
		steps = append(steps, s.Step+" "+s.Name)
	}
	return steps
}

// applies carries out the plan that a page shows.
func (b *browser) applies(path string, more ...string) []string {
	b.Helper()
	return b.ends(b.post(path, append([]string{"plan", b.planDigest(path)}, more...)...))
}

// TestLife is the life of a Solution in a browser.
func TestLife(t *testing.T) {
	bed := deployertest.New(t)
	content := deployertest.Content{Fields: "title: {type: string, maxLength: 5}", Scale: true}
	for _, version := range []string{"1.9.0", "1.10.0", "2.0.0-rc.1"} {
		content.Files = map[string]string{"release-notes.md": "Faster than all before " + version + ", <really>.\n"}
		bed.Imported("shop", version, content)
	}
	b := startOn(t, bed.Server, nil)
	c := b.in(t)
	ok := func(paths ...string) {
		t.Helper()
		for _, path := range paths {
			if a := c.get(path); a.StatusCode != http.StatusOK {
				t.Errorf("GET %s: %d\n%s", path, a.StatusCode, a.body)
			}
		}
	}
	site := "/environments/" + deployertest.Environment
	ok("/", "/solutions", "/solutions/shop", "/environments", "/environments/new", site, "/operations", "/history", "/settings", "/import", "/support", site+"/plan/add", site+"/apps")

	for path, lead := range map[string]string{
		site + "/plan/add": "Choose first what it is about", site + "/plan/add?solution=shop": "As things are, this cannot be done", site + "/plan/repair": "There is nothing to do",
		"/solutions/shop/plan/activate": "These are the planned changes",
	} {
		if a := c.get(path); !strings.Contains(a.body, lead) || strings.Count(a.body, `class="lead"`) != 1 {
			t.Errorf("GET %s does not begin with %q:\n%s", path, lead, a.body)
		}
	}
	var plan schema.Operation
	if c.json("/solutions/shop/plan/activate", &plan); plan.Version != "1.10.0" {
		t.Errorf("the proposal is to activate %s", plan.Version)
	}
	c.applies("/solutions/shop/plan/activate?version=1.9.0")
	if c.json(site+"/plan/add?solution=shop", &plan); plan.Version != "1.9.0" {
		t.Errorf("the proposal is to add %s", plan.Version)
	}
	if steps := c.applies(site + "/plan/add?solution=shop"); len(steps) == 0 {
		t.Error("nothing was reported")
	}

	apps := site + "/apps"
	ok(apps, apps+"/new?kind=Clock")
	if a := c.post(apps, "kind", "Clock", "name", "wall", "spec.hands", "three", "spec.title", "too long"); a.StatusCode < 400 || len(bed.Server.Names("Clock."+deployertest.Group("shop"))) > 0 {
		t.Errorf("values that the schema does not accept: %d", a.StatusCode)
	}
	clock := apps + "/" + deployertest.Environment + "/Clock/wall"
	if to := c.ended(c.post(apps, "kind", "Clock", "name", "wall", "spec.hands", "3")).link(t, "Open wall"); to != clock {
		t.Errorf("the new application is at %s", to)
	}
	ok(apps, clock, clock+"/edit", clock+"/delete")
	c.ends(c.post(clock+"/edit", "spec.hands", "2", "spec.title", "<b>"))
	var app schema.App
	if c.json(clock, &app); app.Values["title"] != "<b>" || app.Values["hands"] != 2.0 {
		t.Errorf("%+v", app.Values)
	}
	if a := c.get(clock); strings.Contains(a.body, "<b>") {
		t.Error("a value is HTML")
	}
	c.ends(c.post(clock+"/edit", "spec.hands", "2", "spec.title", ""))
	if app = (schema.App{}); c.json(clock, &app).StatusCode != http.StatusOK || app.Values["title"] != nil {
		t.Errorf("%+v", app.Values)
	}

	c.applies("/solutions/shop/plan/activate?version=1.10.0")
	if a := c.get(site); !strings.Contains(a.body, `class="button primary" href="`+site+`/plan/upgrade?`) || strings.Contains(a.body, "/plan/downgrade?") {
		t.Error("1.10.0 is not an upgrade of 1.9.0")
	} else {
		a.has(t, "1.10.0 is ready to install", "not 2.0.0-rc.1 is ready", "not Repair", `not class="button primary" href="`+site+`/plan/add`)
	}
	of := url.Values{"solution": {"shop"}}.Encode()
	if a := c.get(site + "/plan/upgrade?" + of); !strings.Contains(a.body, "Faster than all before 1.10.0, &lt;really&gt;.</pre>") {
		t.Errorf("a plan without the release notes: %s", a.body)
	}
	c.applies(site + "/plan/upgrade?" + of)
	c.applies(site + "/plan/downgrade?version=1.9.0&" + of)
	c.applies(site + "/plan/rollback?" + of)
	var history schema.History
	c.json("/history?environment="+deployertest.Environment, &history)
	var done []string
	for _, entry := range history.Operations {
		done = append(done, entry.Operation+" "+entry.Version)
	}
	if want := []string{"rollback 1.10.0", "downgrade 1.9.0", "upgrade 1.10.0", "add 1.9.0"}; !slices.Equal(done, want) {
		t.Errorf("history %q, want %q", done, want)
	}

	remove := site + "/plan/remove?" + of
	if a := c.get(remove); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("removing what has data: %d", a.StatusCode)
	}
	if a := c.post(clock+"/delete", "confirm", "all"); a.StatusCode < 400 {
		t.Errorf("not its name: %d", a.StatusCode)
	}
	c.ends(c.post(clock+"/delete", "confirm", "wall"))
	if a := c.get(clock); a.StatusCode != http.StatusNotFound {
		t.Errorf("it is still there: %d", a.StatusCode)
	}
	bed.Clock("shop", deployertest.Environment, "tower", "hands: 1")
	remove += "&data=delete"
	if a := c.post(remove, "plan", c.planDigest(remove)); a.StatusCode < 400 {
		t.Errorf("data goes without the name of the Solution: %d", a.StatusCode)
	}
	steps := c.applies(remove, "confirm", "shop")
	if !slices.ContainsFunc(steps, func(s string) bool { return strings.HasPrefix(s, "export ") }) {
		t.Errorf("nothing was exported: %q", steps)
	}
	var operations struct {
		Operations []struct{ ID string }
	}
	c.json("/operations", &operations)
	if a := c.get("/operations/" + operations.Operations[0].ID + "/export"); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "tower") {
		t.Errorf("the export: %d %s", a.StatusCode, a.body)
	}
	c.applies("/solutions/shop/plan/deactivate")
	c.applies(site + "/plan/delete")
	if a := c.get(site); a.StatusCode != http.StatusNotFound {
		t.Errorf("the environment is still there: %d", a.StatusCode)
	}
}

// TestPlanChanges carries out a plan that is another one by now.
func TestPlanChanges(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", deployertest.Content{})
	b := startOn(t, bed.Server, nil)
	c := b.in(t)
	path := "/environments/" + deployertest.Environment + "/plan/add?solution=shop"
	seen := c.planDigest(path)
	bed.Namespace(deployertest.Environment, "another")
	a := c.post(path, "plan", seen)
	if a.StatusCode != http.StatusConflict || a.Header.Get("Solutionctl-Plan") == seen {
		t.Errorf("%d", a.StatusCode)
	}
	if names := bed.Server.Names("Deployment"); len(names) > 0 {
		t.Errorf("it was carried out: %q", names)
	}
}

// TestPlanChangesUnderTheLock: the cluster can change after the plan was shown, up to the moment when the lock is
// taken.
func TestPlanChangesUnderTheLock(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", deployertest.Content{})
	b := startOn(t, bed.Server, nil)
	c := b.in(t)
	path := "/environments/" + deployertest.Environment + "/plan/add?solution=shop"
	seen := c.planDigest(path)
	var once sync.Once
	answers := bed.Server.Answer
	bed.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/leases") {
			once.Do(func() { bed.Namespace(deployertest.Environment, "another") })
		}
		return answers != nil && answers(w, r)
	}
	a := c.post(path, "plan", seen)
	at := a.Header.Get("Location")
	if a.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d\n%s", a.StatusCode, a.body)
	}
	c.get(at + "/events") // until its end
	var done struct {
		Error *struct{ Code, Message string }
	}
	if c.json(at, &done); done.Error == nil || done.Error.Code != string(report.Conflict) {
		t.Errorf("%+v", done.Error)
	}
	if names := bed.Server.Names("Deployment"); len(names) > 0 {
		t.Errorf("it was carried out: %q", names)
	}
}
