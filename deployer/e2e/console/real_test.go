package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
)

// TestReal uses the console of a real cluster, whose people log in at a real Dex.
func TestReal(t *testing.T) {
	b := open(t)
	w := newWorld(t)
	for _, test := range []struct {
		name string
		run  func(*world, *browser)
	}{
		{"stranger", (*world).testStranger},
		{"callback", (*world).testCallback},
		{"people", (*world).testPeople},
		{"life", (*world).testLife},
		{"example", (*world).testExample},
		{"rights", (*world).testRights},
		{"changed", (*world).testChanged},
		{"components", (*world).testComponents},
		{"storage", (*world).testStorage},
		{"interrupted", (*world).testInterrupted},
		{"killed", (*world).testKilled},
		{"away", (*world).testAway},
		{"without script", (*world).testWithoutScript},
		{"logout", (*world).testLogout},
		{"impersonated", (*world).testImpersonated},
	} {
		t.Run(test.name, func(t *testing.T) {
			one := &browser{T: t, ctx: b.ctx}
			t.Cleanup(one.keep)
			test.run(w, one)
		})
	}
}

// ask sends one request and follows nothing.
func (w *world) ask(t *testing.T, c *http.Client, method, path string, header http.Header) answer {
	t.Helper()
	alone := *c
	alone.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r, err := http.NewRequestWithContext(t.Context(), method, w.origin+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(r.Header, header)
	if host := header.Get("Host"); host != "" {
		r.Host = host
	}
	a, err := read(alone.Do(r))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// testStranger checks the answers to requests without a login, or from another site.
func (w *world) testStranger(b *browser) {
	t := b.T
	c := w.client(t)
	if a := w.ask(t, c, http.MethodGet, "/", http.Header{"Accept": {"text/html"}}); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/login?to=%2F" {
		t.Errorf("%s to %s", a.Status, a.Header.Get("Location"))
	}
	if a := w.ask(t, c, http.MethodGet, "/", http.Header{"Accept": {"application/json"}}); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("a program: %s", a.Status)
	}
	in, err := w.login(t, jane)
	if err != nil {
		t.Fatal(err)
	}
	home := w.ask(t, in, http.MethodGet, "/", http.Header{"Accept": {"text/html"}})
	for name, want := range map[string]string{
		"Content-Security-Policy": page.ContentSecurityPolicy, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		"Strict-Transport-Security": "max-age=31536000",
	} {
		if got := home.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for site, want := range map[string]int{"cross-site": http.StatusForbidden, "same-site": http.StatusForbidden} {
		if a := w.ask(t, in, http.MethodPost, "/environments?name=foreign", http.Header{"Sec-Fetch-Site": {site}}); a.StatusCode != want {
			t.Errorf("a write from a %s page: %s", site, a.Status)
		}
	}
	if a := w.ask(t, in, http.MethodGet, "/", http.Header{"Host": {"evil.example"}}); a.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("a foreign name: %s", a.Status)
	}
	at, _ := url.Parse(w.origin)
	for _, cookie := range in.Jar.Cookies(at) {
		if !strings.HasPrefix(cookie.Name, "__Host-") || strings.Contains(cookie.Value, "eyJ") || len(cookie.Value) > 4000 {
			t.Errorf("cookie %s is %q", cookie.Name, cookie.Value)
		}
	}
}

// testCallback comes back from Dex with what it did not get there, or twice.
func (w *world) testCallback(b *browser) {
	t := b.T
	var back string
	c := w.client(t)
	c.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), w.origin+"/auth/callback") {
			back = strings.TrimPrefix(r.URL.String(), w.origin)
			return http.ErrUseLastResponse
		}
		return nil
	}
	form, err := read(c.Get(w.origin + "/auth/start"))
	if err == nil {
		_, err = read(c.PostForm(form.Request.URL.String(), url.Values{"login": {jane}, "password": {"password"}}))
	}
	if err != nil || back == "" {
		t.Fatalf("Dex leads to %q, %v", back, err)
	}
	refused := func(what string, c *http.Client, path string) {
		t.Helper()
		a := w.ask(t, c, http.MethodGet, path, nil)
		for _, cookie := range a.Cookies() {
			if cookie.MaxAge >= 0 {
				t.Errorf("%s: the browser gets cookie %s", what, cookie.Name)
			}
		}
		if a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", what, a.Status)
		}
	}
	refused("somebody else", w.client(t), back)
	at, _ := url.Parse(w.origin)
	before := c.Jar.Cookies(at)
	if a := w.ask(t, c, http.MethodGet, back, nil); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/" {
		t.Fatalf("%s to %s", a.Status, a.Header.Get("Location"))
	}
	again := w.client(t)
	again.Jar.SetCookies(at, before)
	refused("a second time", again, back)
}

// goes opens a page.
func (b *browser) goes(to string) {
	b.Helper()
	b.do(chromedp.Navigate(to))
}

// applies carries out a plan and waits for its end.
func (b *browser) applies(plan, button string) {
	b.Helper()
	b.find("heading", plan)
	b.press("button", button)
	b.done()
}

// done waits for the end of an operation. The focus of the keyboard, and of a screen reader, moves to the result; it is nowhere on a page that
// was opened after the end.
func (b *browser) done() {
	b.Helper()
	b.find("heading", "Progress")
	// Each step of it has such a state, too.
	b.until("the operation is done", `document.querySelector(".lead .state")?.innerText.trim() === "Done"`)
	if b.keyboard {
		b.until("the focus is at the heading", `document.activeElement.matches("body, h1, [role=alert]")`)
	}
}

// names has the names of a Solution and its environment.
type names struct{ solution, environment string }

// step is a step of the life of a Solution: as people do it, and by the command line.
type step struct {
	name    string
	page    func(w *world, b *browser, n names)
	command func(w *world, n names) []string
}

// imports brings a version to the host.
func imports(version string) step {
	return step{"import " + version, func(w *world, b *browser, n names) {
		b.goes(w.origin + "/import")
		b.find("heading", "Import")
		archive := w.archive(n.solution, version)
		b.choose("bundle", sign.BundleName(archive, ""))
		b.choose("archive", archive)
		b.press("button", "Upload")
		b.find("heading", "Import "+n.solution+" "+version+"?")
		b.find("heading", "Who signed it")
		b.press("button", "Import")
		b.done()
	}, func(w *world, n names) []string { return []string{"import", w.archive(n.solution, version)} }}
}

// unimports takes it away.
func unimports(version string) step {
	return step{"unimport " + version, func(w *world, b *browser, n names) {
		b.goes(w.origin + "/solutions/" + n.solution)
		b.press("link", "Unimport "+version)
		b.fill("Type "+n.solution+"-"+version+" to confirm", n.solution+"-"+version)
		b.press("button", "Unimport")
		b.done()
	}, func(_ *world, n names) []string { return []string{"unimport", n.solution + "-" + version} }}
}

func (n names) site() string { return "/environments/" + n.environment }
func (n names) app() string  { return n.site() + "/apps/" + n.environment + "/Clock/wall" }

// life is that of a Solution with the versions 1.9.0 and 1.10.0.
var life = []step{
	imports("1.9.0"),
	imports("1.10.0"),
	{"activate", func(w *world, b *browser, n names) {
		b.goes(w.origin + "/solutions/" + n.solution)
		b.press("link", "Activate 1.9.0")
		b.applies("Activate "+n.solution+" 1.9.0", "Activate")
	}, func(_ *world, n names) []string { return []string{"activate", n.solution, "1.9.0"} }},
	{"create an environment", func(w *world, b *browser, n names) {
		b.goes(w.origin + "/environments")
		b.press("link", "New environment")
		b.fill("Name", n.environment)
		b.press("button", "Create")
		b.find("heading", n.environment)
	}, func(_ *world, n names) []string { return []string{"env", "create", n.environment} }},
	{"add", func(w *world, b *browser, n names) {
		b.goes(w.origin + n.site() + "/plan/add?solution=" + n.solution)
		b.applies("Add "+n.solution+" 1.9.0 to environment "+n.environment, "Add")
	}, func(_ *world, n names) []string { return []string{"add", n.environment, n.solution, "1.9.0"} }},
	{"create an application", func(w *world, b *browser, n names) {
		b.goes(w.origin + n.site() + "/apps/new?kind=Clock")
		b.fill("Name", "wall")
		b.fill("Hands", "3")
		b.press("button", "Create")
		b.done()
	}, func(_ *world, n names) []string {
		return []string{"app", "create", n.environment, "wall", "--set", "hands=3"}
	}},
	{"configure it", func(w *world, b *browser, n names) {
		b.goes(w.origin + n.app() + "/edit")
		b.fill("Hands", "2")
		b.press("button", "Save")
		b.done()
	}, func(_ *world, n names) []string { return []string{"app", "set", n.environment, "wall", "hands=2"} }},
	{"activate the next version", func(w *world, b *browser, n names) {
		b.goes(w.origin + "/solutions/" + n.solution)
		b.press("link", "Activate 1.10.0")
		b.applies("Activate "+n.solution+" 1.10.0", "Activate")
	}, func(_ *world, n names) []string { return []string{"activate", n.solution, "1.10.0"} }},
	{"upgrade", func(w *world, b *browser, n names) {
		b.goes(w.origin + n.site())
		b.press("link", "Upgrade")
		b.applies("Upgrade to "+n.solution+" 1.10.0 in environment "+n.environment, "Upgrade")
	}, func(_ *world, n names) []string { return []string{"upgrade", n.environment, n.solution, "1.10.0"} }},
	{"downgrade", func(w *world, b *browser, n names) {
		b.goes(w.origin + n.site())
		b.press("link", "Downgrade")
		b.applies("Downgrade to "+n.solution+" 1.9.0 in environment "+n.environment, "Downgrade")
	}, func(_ *world, n names) []string { return []string{"downgrade", n.environment, n.solution, "1.9.0"} }},
	{"roll back", func(w *world, b *browser, n names) {
		b.goes(w.origin + n.site() + "/plan/rollback?solution=" + n.solution)
		b.applies("Roll back to "+n.solution+" 1.10.0 in environment "+n.environment, "Roll back")
	}, func(_ *world, n names) []string { return []string{"rollback", n.environment, n.solution} }},
	{"scale", func(w *world, b *browser, n names) {
		b.goes(w.origin + n.app())
		b.fill("Replicas", "2")
		b.press("button", "Scale")
		b.done()
	}, func(_ *world, n names) []string { return []string{"app", "scale", n.environment, "wall", "2"} }},
	{"delete the application", func(w *world, b *browser, n names) {
		b.goes(w.origin + n.app() + "/delete")
		b.fill("Type wall to confirm", "wall")
		b.press("button", "Delete")
		b.done()
	}, func(_ *world, n names) []string { return []string{"app", "delete", n.environment, "wall", "--yes"} }},
	{"remove", func(w *world, b *browser, n names) {
		b.goes(w.origin + n.site())
		b.press("link", "Remove")
		b.applies("Remove "+n.solution+" from environment "+n.environment, "Remove")
	}, func(_ *world, n names) []string { return []string{"remove", n.environment, n.solution} }},
	{"delete the environment", func(w *world, b *browser, n names) {
		b.goes(w.origin + n.site())
		b.press("link", "Delete")
		b.applies("Delete environment "+n.environment, "Delete the environment")
	}, func(_ *world, n names) []string { return []string{"env", "delete", n.environment, "--yes"} }},
	{"deactivate", func(w *world, b *browser, n names) {
		b.goes(w.origin + "/solutions/" + n.solution)
		b.press("link", "Deactivate")
		b.applies("Deactivate "+n.solution+" 1.10.0", "Deactivate")
	}, func(_ *world, n names) []string { return []string{"deactivate", n.solution, "--yes"} }},
	unimports("1.9.0"),
	unimports("1.10.0"),
}

// testLife lives the life of a Solution in the browser by mouse, and that of another one by the command line: after each step both are
// the same. 'make check' lives a third one by keyboard alone, as TestLife does on a cluster in memory. All requests go to the console or to Dex, and a second tab sees what the
// first one does.
func (w *world) testLife(b *browser) {
	t := b.T
	var asked sync.Map
	if err := chromedp.Listen(b.ctx, func(event any) {
		if sent, ok := event.(*network.EventRequestWillBeSent); ok {
			asked.Store(sent.Request.URL, true)
		}
	}); err != nil {
		t.Fatal(err)
	}
	hands := map[names]*browser{{"mouse", "by-mouse"}: b}
	if !testing.Short() {
		hands[names{"keyed", "by-keyed"}] = &browser{T: t, ctx: b.ctx, keyboard: true}
	}
	b.logsIn(w, jane)
	other := b.tab()
	other.goes(w.origin + "/environments")
	other.find("heading", "Environments")

	lines := names{"typed", "by-typed"}
	w.pack(t, lines.solution, "1.9.0", "1.10.0")
	for n := range hands {
		w.pack(t, n.solution, "1.9.0", "1.10.0")
	}
	for _, s := range life {
		w.command(t, s.command(w, lines)...)
		want := w.state(t, lines)
		for n, hand := range hands {
			s.page(w, hand, n)
			if diff := cmp.Diff(w.state(t, n), want); diff != "" {
				t.Errorf("%s: the console, %s (-) and the command line (+) do not do the same:\n%s", s.name, n.environment, diff)
			}
			if s.name == "create an environment" {
				other.find("link", n.environment)
			}
		}
		if s.name == "create an environment" {
			other.leave() // it would be brought up to date again and again
		}
	}
	b.goes(w.origin + "/history")
	b.find("text", "oidc:"+jane)
	if kept, err := evaluate[string](b, `document.cookie + localStorage.length + sessionStorage.length`); err != nil || kept != "00" {
		t.Errorf("a script could read %q: %v", kept, err)
	}
	count := 0
	asked.Range(func(key, _ any) bool {
		count++
		at := key.(string)
		if strings.Contains(at, "eyJ") { // as each token begins
			t.Errorf("there is a token in %s", at)
		}
		if !strings.HasPrefix(at, w.origin+"/") && !strings.HasPrefix(at, w.dex.Issuer+"/") && !strings.HasPrefix(at, "data:") {
			t.Errorf("the browser asks %s", at)
		}
		return true
	})
	if count < 20 {
		t.Errorf("only %d requests were seen", count)
	}
}

// changing matches values that differ between two runs of the same.
var changing = regexp.MustCompile(`"[0-9]{4}-[0-9]{2}-[0-9]{2}T[^"]*"|[0-9a-f]{64}|[0-9a-f]{8}-[0-9a-f-]{27}|"importedBy": ".*"`)

// state is how a Solution, its environment and its application are, without what is of no interest: names, moments and people.
func (w *world) state(t *testing.T, n names) string {
	t.Helper()
	status, err := w.Survey.Status(t.Context(), survey.StatusOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var kept struct {
		Solutions    []any
		Environments []any
		Operations   []string
	}
	for _, s := range status.Solutions {
		if s.Name == n.solution {
			kept.Solutions = append(kept.Solutions, s)
		}
	}
	for _, e := range status.Environments {
		if e.Name == n.environment {
			kept.Environments = append(kept.Environments, e)
		}
	}
	text, err := json.MarshalIndent(kept, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(n.solution, "SOLUTION", report.Capitalized(n.solution), "SOLUTION", n.environment, "ENVIRONMENT", "oidc:"+jane+"@here", "SOMEBODY").Replace(changing.ReplaceAllString(string(text), "X"))
}

// testRights is Joe, who may deploy in one environment because the provider lists him in its group.
func (w *world) testRights(b *browser) {
	t := b.T
	w.imported(t, "shared", "1.0.0")
	for _, name := range []string{"joes", "janes"} {
		if _, err := w.CreateEnvironment(t.Context(), metalk8s.CreateOptions{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Activate(t.Context(), deployer.ActivateOptions{Solution: "shared", Version: "1.0.0"}); err != nil {
		t.Fatal(err)
	}
	group := "oidc:" + operators
	w.apply(t, w.command(t, "roles", "shared", "--environment", "joes", "--installers", group))
	w.awaitRight(t, authorization.ResourceAttributes{Verb: "list", Resource: "namespaces"})
	w.awaitRight(t, authorization.ResourceAttributes{Verb: "create", Group: "apps", Resource: "deployments", Namespace: "joes"})
	mine := open(t)
	mine.logsIn(w, joe)
	mine.goes(w.origin + "/environments/joes/plan/add?solution=shared")
	mine.applies("Add shared 1.0.0 to environment joes", "Add")

	mine.goes(w.origin + "/environments/janes/plan/add?solution=shared")
	mine.find("heading", "Add shared 1.0.0 to environment janes")
	text, err := evaluate[string](mine, `[...document.querySelectorAll("[role=alert]")].map(e => e.innerText).join("\n")`)
	if err != nil || !strings.Contains(text, "janes") || !strings.Contains(text, "deployments") {
		t.Errorf("no alert names the rule that is missing: %q, %v", text, err)
	}
	if at, failure := mine.lookup("button", "Add"); failure != nil || at != nil {
		t.Errorf("a button leads to what Joe may not do: %v, %v", at, failure)
	}
	c, err := w.login(t, joe)
	if err != nil {
		t.Fatal(err)
	}
	if a := w.ask(t, c, http.MethodPost, "/environments/janes/plan/add?solution=shared&plan=x", nil); a.StatusCode < 400 {
		t.Errorf("%s", a.Status)
	}
	if list, err := w.Client().AppsV1().Deployments("janes").List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("Joe has deployed something: %v, %v", list, err)
	}
}

// testChanged changes the inputs of a plan while a user looks at it.
func (w *world) testChanged(b *browser) {
	t := b.T
	b.deploys(w, names{"moving", "moved"}, "1.0.0")
	b.goes(w.origin + "/environments/moved/plan/add?solution=moving")
	b.find("heading", "Add moving 1.0.0 to environment moved")
	_, err := w.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "moved-more", Labels: map[string]string{metalk8s.EnvironmentLabel: "moved"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.press("button", "Add")
	b.find("text", "The cluster has changed since you saw the plan. This is the new one: please look again.")
	if list, err := w.Client().AppsV1().Deployments("moved").List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("it was carried out: %v, %v", list, err)
	}
	b.press("button", "Add")
	b.done()
}

// deploys imports versions of a Solution and activates the last one, with an environment for it.
func (b *browser) deploys(w *world, n names, versions ...string) {
	b.Helper()
	w.imported(b.T, n.solution, versions...)
	if _, err := w.Activate(b.Context(), deployer.ActivateOptions{Solution: n.solution, Version: versions[len(versions)-1]}); err != nil {
		b.Fatal(err)
	}
	if _, err := w.CreateEnvironment(b.Context(), metalk8s.CreateOptions{Name: n.environment}); err != nil {
		b.Fatal(err)
	}
}

// forgets takes all cookies away from the browser.
func (b *browser) forgets() {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, testcluster.Deadline(20*time.Second))
	defer cancel()
	if _, err := chromedp.Call(ctx, network.ClearBrowserCookies, cdp.Empty{}); err != nil {
		b.Fatal(err)
	}
}

// testComponents chooses parts of a Solution by mouse, looks at them, and chooses others by keyboard alone.
func (w *world) testComponents(b *browser) {
	t := b.T
	workload := func(name string) string {
		return strings.ReplaceAll("{apiVersion: apps/v1, kind: Deployment, metadata: {name: NAME}, spec: {selector: {matchLabels: {app: NAME}}, "+
			"template: {metadata: {labels: {app: NAME}}, spec: {containers: [{name: main, image: \"example.com/NAME:1\"}]}}}}\n", "NAME", name)
	}
	w.importedWith(t, deployertest.Content{
		Files: map[string]string{
			"components/db.yaml": workload("db"), "components/api.yaml": workload("api"), "components/metrics.yaml": workload("metrics"),
		},
		Manifest: `components:
  - {name: db, manifests: components/db.yaml}
  - {name: api, manifests: components/api.yaml, dependsOn: [{component: db}]}
  - {name: metrics, manifests: components/metrics.yaml, profiles: [large]}
`,
	}, "parts", "1.9.0", "1.10.0")
	n := names{"parts", "assembled"}
	if _, err := w.Activate(t.Context(), deployer.ActivateOptions{Solution: n.solution, Version: "1.10.0"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.CreateEnvironment(t.Context(), metalk8s.CreateOptions{Name: n.environment}); err != nil {
		t.Fatal(err)
	}
	b.goes(w.origin + n.site() + "/plan/add?solution=parts&version=1.9.0")
	b.press("checkbox", "large")
	b.press("button", "Show the plan")
	b.find("heading", "Namespace assembled · component metrics")
	b.applies("Add parts 1.9.0 to environment assembled", "Add")
	b.goes(w.origin + n.site())
	b.press("link", "3 components")
	b.find("heading", "parts in assembled")
	b.find("heading", "Dependencies")
	b.do(chromedp.Evaluate[chromedp.Void](axe))
	for _, v := range b.judge(allRules) {
		t.Errorf("%s: %s: %v", v.ID, v.Help, v.Nodes)
	}
	b.keyboard = true
	b.press("link", "Upgrade")
	b.find("heading", "Upgrade to parts 1.10.0 in environment assembled")
	b.press("checkbox", "large")
	b.press("button", "Show the plan")
	b.find("text", "Manifests. Not without one of these profiles: large.")
	b.press("button", "Upgrade")
	b.done()
	graph, err := w.Components(t.Context(), deployer.ComponentsOptions{Environment: n.environment, Solution: n.solution})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range graph.Components {
		if want := one.Name != "metrics"; one.Selected != want {
			t.Errorf("component %s is selected: %t", one.Name, one.Selected)
		}
	}
	if list, err := w.Client().AppsV1().Deployments(n.environment).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 3 {
		t.Errorf("not the operator, db and api: %v, %v", list, err)
	}
}

// testInterrupted ends the console in the middle of an upgrade, and finishes it at another one.
func (w *world) testInterrupted(b *browser) {
	t := b.T
	n := names{"halfway", "half"}
	w.older(b, n)
	w.upgradeWaits(b, w.origin, n)
	if interrupted := w.end(); interrupted != 1 {
		t.Errorf("%d operations were interrupted", interrupted)
	}
	w.serve(t)
	w.cordon(t, false)
	// The operation has renewed what the browser keeps, and Dex renews it once.
	b.forgets()
	b.logsIn(w, jane)
	b.goes(w.origin + "/operations")
	b.press("button", "Resume")
	b.done()
	w.upgraded(t, n)
}

// testKilled kills a console in the middle of an upgrade: the page reports it, and the command line finishes the work.
func (w *world) testKilled(b *browser) {
	t := b.T
	n := names{"killed", "kill"}
	w.older(b, n)
	run := exec.CommandContext(t.Context(), w.programFile(t), "deploy", "ui", "--listen", "127.0.0.1:0", "--progress", "plain")
	run.Env, run.Dir = w.environ(), w.host
	out, err := run.StdoutPipe()
	if err == nil {
		err = run.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = run.Process.Kill(), run.Wait() })
	link, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("no link: %v", err)
	}
	link = strings.TrimSpace(link)
	b.goes(link)
	b.find("heading", "Solutions and environments")
	origin, _, _ := strings.Cut(link, "/start?")
	w.upgradeWaits(b, origin, n)
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	b.find("text", "Connection lost, trying again")
	w.cordon(t, false)
	if state := w.state(t, n); !strings.Contains(state, `"pending"`) {
		t.Errorf("nothing tells that it is not finished:\n%s", state)
	}
	w.command(t, "resume", "--lock-wait", "1m") // the lock of the console runs out
	w.upgraded(t, n)
}

// older deploys a Solution that can be upgraded, on nodes where nothing new becomes ready.
func (w *world) older(b *browser, n names) {
	b.Helper()
	b.deploys(w, n, "1.9.0", "1.10.0")
	if _, err := w.Add(b.Context(), deployer.AddOptions{Environment: n.environment, Solution: n.solution, Version: "1.9.0"}); err != nil {
		b.Fatal(err)
	}
	w.cordon(b.T, true)
}

// upgradeWaits begins the upgrade at a console, and returns when it waits for the operator.
func (w *world) upgradeWaits(b *browser, origin string, n names) {
	b.Helper()
	b.goes(origin + n.site() + "/plan/upgrade?solution=" + n.solution)
	b.find("heading", "Upgrade to "+n.solution+" 1.10.0 in environment "+n.environment)
	b.press("button", "Upgrade")
	b.find("heading", "Progress")
	w.await(b.T, "the upgrade waits", func() error {
		d, err := w.Client().AppsV1().Deployments(n.environment).Get(b.Context(), n.solution+"-operator", metav1.GetOptions{})
		if err == nil && !strings.Contains(d.Spec.Template.Spec.Containers[0].Image, "1.10.0") {
			err = fmt.Errorf("it has image %s", d.Spec.Template.Spec.Containers[0].Image)
		}
		return err
	})
}

// upgraded finds the upgrade finished.
func (w *world) upgraded(t *testing.T, n names) {
	t.Helper()
	if state := w.state(t, n); !strings.Contains(state, `"1.10.0"`) || strings.Contains(state, `"pending"`) {
		t.Errorf("it is not finished:\n%s", state)
	}
}

func (w *world) cordon(t *testing.T, yes bool) {
	t.Helper()
	nodes, err := w.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		t.Fatalf("%v, %v", nodes, err)
	}
	for _, node := range nodes.Items {
		patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%v}}`, yes)
		if _, err := w.Client().CoreV1().Nodes().Patch(t.Context(), node.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// testAway restarts the API server under an open page: the page shows that, keeps its content, and is up to date again without a login,
// though a new API server knows no tokens of Dex yet.
func (w *world) testAway(b *browser) {
	t := b.T
	b.forgets()
	b.logsIn(w, jane)
	n := names{"lasting", "lasts"}
	b.deploys(w, n, "1.0.0")
	b.goes(w.origin + "/environments")
	b.find("link", n.environment)
	w.StopAPIServer()
	b.within(time.Minute, "the page says why it is not up to date", `document.getElementById("stale").innerText.includes("connection refused")`)
	b.find("link", n.environment)
	if err := w.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.within(time.Minute, "the page is up to date", `document.getElementById("stale").innerText === ""`)
	b.goes(w.origin + n.site() + "/plan/add?solution=" + n.solution)
	b.applies("Add "+n.solution+" 1.0.0 to environment "+n.environment, "Add")
}

// testWithoutScript reads every page and carries out a plan in a browser that runs no script.
func (w *world) testWithoutScript(b *browser) {
	t := b.T
	off := func(yes bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(b.ctx, testcluster.Deadline(20*time.Second))
		defer cancel()
		if _, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: yes}); err != nil {
			t.Fatal(err)
		}
	}
	b.forgets()
	b.logsIn(w, jane)
	n := names{"plain", "plainly"}
	b.deploys(w, n, "1.0.0")
	b.goes(w.origin + "/environments")
	b.find("link", n.environment)
	off(true)
	for path, heading := range map[string]string{
		"/": "Solutions and environments", "/solutions": "Solutions", "/solutions/plain": "plain", "/environments": "Environments", "/environments/new": "New environment",
		n.site(): "plainly", "/operations": "Operations", "/history": "History", "/settings": "Settings", "/import": "Import", "/support": "Support bundle",
	} {
		b.goes(w.origin + path)
		b.find("heading", heading)
	}
	b.goes(w.origin + n.site() + "/plan/add?solution=plain")
	b.applies("Add plain 1.0.0 to environment plainly", "Add")
	off(false)
}

// testLogout logs out in one of two browsers of a person, whose tokens have been renewed for as long as the tests took.
func (w *world) testLogout(b *browser) {
	t := b.T
	other, err := w.login(t, jane)
	if err != nil {
		t.Fatal(err)
	}
	b.goes(w.origin + "/")
	b.find("heading", "Solutions and environments")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.origin+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	events, err := other.Do(r)
	if err != nil || events.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", events, err)
	}
	b.press("button", "Log out")
	b.find("heading", "Log in")
	if a := w.ask(t, other, http.MethodGet, "/", http.Header{"Accept": {"application/json"}}); a.StatusCode != http.StatusOK {
		t.Errorf("the other browser: %s", a.Status)
	}
	w.ask(t, other, http.MethodPost, "/logout?all=true", nil)
	if _, err := read(events, nil); err != nil { // it ends, long before the client does not wait any more
		t.Error(err)
	}
	b.goes(w.origin + "/")
	b.find("heading", "Log in")
}

// awaitRight waits until the API server, which learns of roles by watching, knows that the operators have a right.
func (w *world) awaitRight(t *testing.T, right authorization.ResourceAttributes) {
	t.Helper()
	asked := &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{Groups: []string{"oidc:" + operators}, ResourceAttributes: &right}}
	for end := time.Now().Add(testcluster.Deadline(20 * time.Second)); ; time.Sleep(20 * time.Millisecond) {
		review, err := w.Client().AuthorizationV1().SubjectAccessReviews().Create(t.Context(), asked, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s may not %s %s", operators, right.Verb, right.Resource)
		}
	}
}

// apply makes objects of YAML documents.
func (w *world) apply(t *testing.T, documents string) {
	t.Helper()
	run := exec.CommandContext(t.Context(), filepath.Join(w.Bin, "kubectl"), "--kubeconfig", w.Kubeconfig, "apply", "-f", "-")
	run.Stdin = strings.NewReader(documents)
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, documents)
	}
}

// testImpersonated runs a console that sends no user's token to the API server: it impersonates users whom Dex authenticates, with an
// account that has no other right, for Joe and his group.
func (w *world) testImpersonated(b *browser) {
	t := b.T
	w.apply(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: impersonator, namespace: default}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: impersonator}
rules:
- {apiGroups: [""], resources: [users], resourceNames: ["oidc:`+joe+`"], verbs: [impersonate]}
- {apiGroups: [""], resources: [groups], resourceNames: ["oidc:`+operators+`"], verbs: [impersonate]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: impersonator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: impersonator}
subjects: [{kind: ServiceAccount, name: impersonator, namespace: default}]
`)
	account, err := w.Client().CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "impersonator", &authentication.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.end()
	o := w.options
	o.Archives = nil
	o.Provider = &session.Provider{Issuer: o.Provider.Issuer, ClientID: o.Provider.ClientID, ClientSecret: o.Provider.ClientSecret, CA: o.Provider.CA, Groups: []string{operators}}
	o.ConnectAs = func(user string, groups []string, admit func(context.Context) error) (*cluster.Cluster, error) {
		return cluster.Connect(cluster.Options{
			Kubeconfig: w.Kubeconfig, As: user, AsGroups: groups, Admit: admit, Now: time.Now,
			Token: func(context.Context) (string, error) { return account.Status.Token, nil },
		})
	}
	o.Connect = nil // no token of Dex is sent to the API server
	w.options = o
	w.serve(t)
	b.forgets()
	b.logsIn(w, joe)
	b.goes(w.origin + "/environments/joes")
	b.find("text", "shared")
	if _, err := w.login(t, jane); err == nil {
		t.Error("somebody is impersonated for whom the account has no right")
	}
}
