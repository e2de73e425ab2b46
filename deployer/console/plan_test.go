package console_test

import (
	"encoding/json"
	"errors"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/schema/report"
)

// refused is an error as a document.
type refused struct {
	Code     report.Code
	Remedies report.Remedies
}

// accepts carries out a plan that takes something to be accepted: without it nothing is done, and with it all of it is.
func (b *browser) accepts(bed *deployertest.Bed, path, option, value string, shows ...string) []string {
	b.Helper()
	bed.Writes()
	seen := b.get(path)
	box := `name="` + option + `" value="` + value + `" required`
	for _, text := range append(shows, box) {
		if seen.StatusCode != http.StatusOK || !strings.Contains(seen.body, text) {
			b.Fatalf("%s: %d, nothing of %q\n%s", path, seen.StatusCode, text, seen.body)
		}
	}
	plan := seen.Header.Get("Solutionctl-Plan")
	if plan == "" {
		b.Fatalf("%s: no plan", path)
	}
	if a := b.post(path, "plan", plan); a.StatusCode != http.StatusUnprocessableEntity && a.StatusCode != http.StatusConflict ||
		!strings.Contains(a.body, box) || !strings.Contains(a.body, `role="alert"`) {
		b.Fatalf("%s, not accepted: %d\n%s", path, a.StatusCode, a.body)
	}
	var failure refused
	if a := b.json(path, &failure); a.StatusCode == http.StatusOK || !slices.ContainsFunc(failure.Remedies, func(r report.Remedy) bool {
		return slices.ContainsFunc(r.Options, func(o report.Option) bool { return o.Name == option })
	}) {
		b.Errorf("%s as a document: %d %s", path, a.StatusCode, a.body)
	}
	if writes := bed.Writes(); len(writes) > 0 {
		b.Fatalf("%s: not accepted, and changed: %q", path, writes)
	}
	return b.ends(b.post(path, "plan", plan, option, value))
}

// TestAcceptedLoss: a definition that loses a field names the objects; they are exported before.
func TestAcceptedLoss(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", deployertest.Content{Fields: "colour: {type: string}"})
	bed.Imported("shop", "2.0.0", deployertest.Content{})
	bed.Clock("shop", deployertest.Environment, "tower", "colour: green")
	b := startOn(t, bed.Server, nil)
	c := b.in(t)
	steps := c.accepts(bed, "/solutions/shop/plan/activate?version=2.0.0", "accept-data-loss", deployertest.Definition("shop"), "tower", "spec.colour")
	if !slices.ContainsFunc(steps, func(s string) bool { return strings.HasPrefix(s, "export ") }) {
		t.Errorf("nothing was exported: %q", steps)
	}
	var operations struct {
		Operations []struct{ ID string }
	}
	c.json("/operations", &operations)
	var read, write atomic.Pointer[time.Time]
	b.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.ServeHTTP(deadlines{w, &read, &write}, r) })
	a := c.get("/operations/" + operations.Operations[0].ID + "/export")
	if a.StatusCode != http.StatusOK || !strings.Contains(a.body, "tower") || write.Load() == nil {
		t.Errorf("the export: %d %s, with the deadline of any page", a.StatusCode, a.body)
	}
}

// changesRights is the power of an operator that can grant itself permissions.
const changesRights = "change-rights:Role/site/shop-operator"

// TestAcceptedPower: the box names the power of the operator, and accepting another power accepts nothing.
func TestAcceptedPower(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", deployertest.Content{Role: "- {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate]}"})
	c := startOn(t, bed.Server, nil).in(t)
	path := "/environments/" + deployertest.Environment + "/plan/add?solution=shop"
	a := c.post(path, "plan", c.get(path).Header.Get("Solutionctl-Plan"), "allow", "all-rights")
	if a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("another power: %d", a.StatusCode)
	}
	c.accepts(bed, path, "allow", changesRights, "Role site/shop-operator", "account site/shop-operator")
}

// TestAcceptedPowerOfRollback: a rollback to a revision from before a removal asks for its powers again.
func TestAcceptedPowerOfRollback(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", deployertest.Content{})
	bed.Activated("shop", "1.1.0", deployertest.Content{Role: "- {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate]}"})
	at := deployer.Request{Environment: deployertest.Environment, Solution: "shop"}
	for _, step := range []struct{ verb, version string }{{"add", "1.1.0"}, {"remove", ""}, {"add", "1.0.0"}} {
		r := at
		r.Verb, r.Version = step.verb, step.version
		if r.Version == "1.1.0" {
			r.Allow = []string{changesRights}
		}
		if _, err := bed.Perform(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	c := startOn(t, bed.Server, nil).in(t)
	c.accepts(bed, "/environments/"+deployertest.Environment+"/plan/rollback?solution=shop", "allow", changesRights)
}

// TestAcceptedOthers: objects that are not part of a Solution are listed before their environment is deleted, and its
// name has to be typed.
func TestAcceptedOthers(t *testing.T) {
	bed := deployertest.New(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: notes, namespace: `+deployertest.Environment+`}}`)
	c := startOn(t, bed.Server, nil).in(t)
	path := "/environments/" + deployertest.Environment + "/plan/delete"
	seen := c.get(path)
	if !strings.Contains(seen.body, `data-word="`+deployertest.Environment+`"`) || !strings.Contains(seen.body, "ConfigMap "+deployertest.Environment+"/notes") {
		t.Fatalf("%d\n%s", seen.StatusCode, seen.body)
	}
	plan := seen.Header.Get("Solutionctl-Plan")
	if a := c.post(path, "plan", plan, "delete-others", "true"); a.StatusCode < 400 {
		t.Errorf("without the name: %d", a.StatusCode)
	}
	bed.Server.Put(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: more, namespace: `+deployertest.Environment+`}}`)
	if a := c.post(path, "plan", plan, "delete-others", "true", "confirm", deployertest.Environment); a.StatusCode != http.StatusConflict || !strings.Contains(a.body, "/more") {
		t.Errorf("something came meanwhile: %d\n%s", a.StatusCode, a.body)
	}
	c.ends(c.post(path, "plan", c.get(path).Header.Get("Solutionctl-Plan"), "delete-others", "true", "confirm", deployertest.Environment))
	if bed.Server.Object("Namespace", "", deployertest.Environment) != nil {
		t.Error("it is still there")
	}
}

// TestFinalizers: finalizers that hold deleted objects are offered where there are any, and their removal is part of
// the plan.
func TestFinalizers(t *testing.T) {
	bed := deployertest.New(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: stuck, namespace: `+deployertest.Environment+`, finalizers: [acme.example/tape]}}`)
	bed.Deleted("ConfigMap", deployertest.Environment, "stuck")
	c := startOn(t, bed.Server, nil).in(t)
	path := "/environments/" + deployertest.Environment + "/plan/delete"
	if a := c.get(path); !strings.Contains(a.body, `name="force-finalizers"`) || !strings.Contains(a.body, "acme.example/tape") {
		t.Fatalf("%d\n%s", a.StatusCode, a.body)
	}
	path += "?force-finalizers=true"
	if a := c.get(path); !strings.Contains(a.body, `data-word="`+deployertest.Environment+`"`) || !strings.Contains(a.body, "finalizers are removed") {
		t.Fatalf("%d\n%s", a.StatusCode, a.body)
	}
	c.applies(path, "confirm", deployertest.Environment)
	if bed.Server.Object("ConfigMap", deployertest.Environment, "stuck") != nil {
		t.Error("it is still there")
	}
}

// fields returns the fields of the form in the element of a class, as a browser sends them.
func (b *browser) fields(a answer, class string) url.Values {
	b.Helper()
	_, after, found := strings.Cut(a.body, `class="`+class+`"`)
	inside, _, closed := strings.Cut(after, "</form>")
	if !found || !closed {
		b.Fatalf("no form %s\n%s", class, content(a.body))
	}
	form := url.Values{}
	for _, m := range regexp.MustCompile(`<input type="(hidden|checkbox)"(?: id="[^"]*")? name="([^"]*)" value="([^"]*)"([^>]*)>`).FindAllStringSubmatch(inside, -1) {
		if m[1] == "hidden" || strings.Contains(m[4], " checked") && !strings.Contains(m[4], " disabled") {
			form.Add(m[2], html.UnescapeString(m[3]))
		}
	}
	return form
}

// TestAcceptedStays: accepted options stay when the plan is shown again with another choice, and nothing else does.
func TestAcceptedStays(t *testing.T) {
	bed := deployertest.New(t)
	hazardous := cloud
	hazardous.Role = "- {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate]}"
	bed.Activated("shop", "1.0.0", hazardous)
	c := startOn(t, bed.Server, nil).in(t)
	plan := "/environments/" + deployertest.Environment + "/plan/add"
	for _, test := range []struct {
		name string
		a    answer
		want []string
	}{
		{"seen", c.get(plan + "?solution=shop"), nil},
		{"another is accepted", c.get(plan + "?solution=shop&allow=all-rights&replace=x"), nil},
		{"accepted by a link", c.get(plan + "?solution=shop&allow=" + changesRights), []string{changesRights}},
		{"accepted, and changed meanwhile", c.post(plan, "solution", "shop", "allow", changesRights, "plan", "another"), []string{changesRights}},
	} {
		form := c.fields(test.a, "choose")
		form.Set("profile", "large")
		again := c.get(plan + "?" + form.Encode())
		if got := c.fields(again, "apply"); again.StatusCode != http.StatusOK || !slices.Equal(got["allow"], test.want) || got.Get("profile") != "large" {
			t.Errorf("%s: %d, %v", test.name, again.StatusCode, got)
		}
	}

	bed.Server.Put(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: stuck, namespace: `+deployertest.Environment+`, finalizers: [acme.example/tape]}}`)
	bed.Deleted("ConfigMap", deployertest.Environment, "stuck")
	plan = "/environments/" + deployertest.Environment + "/plan/delete"
	form := c.fields(c.get(plan+"?delete-others=true&force-finalizers=true"), "choose")
	if want := (url.Values{"delete-others": {"true"}, "force-finalizers": {"true"}}); !maps.EqualFunc(form, want, slices.Equal) {
		t.Errorf("the form sends %v, want %v", form, want)
	}
}

// TestNothingIsAccepted that a verb does not know, or that would not help.
func TestNothingIsAccepted(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", deployertest.Content{})
	bed.Clock("shop", deployertest.Environment, "tower", "hands: 1")
	c := startOn(t, bed.Server, nil).in(t)
	path := "/solutions/shop/plan/deactivate?" + url.Values{"accept-data-loss": {deployertest.Definition("shop")}, "delete-data": {"true"}}.Encode()
	a := c.get(path)
	if a.StatusCode != http.StatusUnprocessableEntity || a.Header.Get("Solutionctl-Plan") != "" || strings.Contains(a.body, `type="checkbox"`) {
		t.Errorf("%d\n%s", a.StatusCode, a.body)
	}
	var failure refused
	c.json(path, &failure)
	text, err := json.Marshal(failure.Remedies)
	if err != nil || failure.Code != report.DataLoss || !strings.Contains(string(text), `{"options":[{"name":"keep-crds"}]}`) {
		t.Errorf("%s: %s", failure.Code, text)
	}
}

// TestFailureLeadsToPlan: a failed operation leads to its plan with the accepted options, which asks for those that are
// needed now.
func TestFailureLeadsToPlan(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", deployertest.Content{Role: "- {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate]}"})
	b := startOn(t, bed.Server, nil)
	var fails atomic.Bool
	b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if fails.Load() && r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/shop-operator-config") && !r.URL.Query().Has("dryRun") {
			clustertest.Fail(w, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "shop-operator-config", errors.New("not today")))
			return true
		}
		return b.authenticate(w, r)
	}
	c := b.in(t)
	plan := "/environments/" + deployertest.Environment + "/plan/add?solution=shop&version=1.0.0"
	fails.Store(true)
	at := c.post(plan, "plan", c.planDigest(plan), "allow", changesRights).Header.Get("Location")
	c.get(at + "/events") // until it ends
	page := c.get(at)
	link := regexp.MustCompile(`href="([^"]+)"[^>]*>(?:<svg.*?</svg>)?\s*Try again`).FindStringSubmatch(page.body)
	if link == nil {
		t.Fatalf("there is no way back:\n%s", content(page.body))
	}
	fails.Store(false)
	c.applies(html.UnescapeString(link[1]))
}

// TestSigners: the card of a Solution shows who has signed the version that runs, and the empty list of Solutions leads to the import.
func TestSigners(t *testing.T) {
	for text, signers := range map[string][]string{"Signed by acme-release, site, trusted at its import": {"acme-release", "site"}, "Imported without a trusted signature": {}} {
		bed := deployertest.New(t)
		b := startOn(t, bed.Server, nil)
		c := b.in(t)
		c.get("/solutions").has(t, "No Solution was imported yet", `<a href="/import">Import an archive</a>`)
		record := bed.Record("shop", "1.0.0", deployertest.Content{})
		record.Signers = signers
		if _, err := bed.RecordImport(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		if _, err := bed.Activate(t.Context(), deployer.ActivateOptions{Solution: "shop", Version: "1.0.0"}); err != nil {
			t.Fatal(err)
		}
		if _, err := bed.Add(t.Context(), deployer.AddOptions{Environment: deployertest.Environment, Solution: "shop", Version: "1.0.0"}); err != nil {
			t.Fatal(err)
		}
		b.clock.advance(time.Hour)
		c.get(ownPage).has(t, text)
	}
}

// TestPlanIsSentTwice: a double click leads to the operation that the first click has begun.
func TestPlanIsSentTwice(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", deployertest.Content{})
	b := startOn(t, bed.Server, nil)
	c := b.in(t)
	path := "/environments/" + deployertest.Environment + "/plan/add?solution=shop"
	plan := c.planDigest(path)
	reached, release := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(reached); <-release })
	b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && r.URL.Query().Get("dryRun") == "" && strings.Contains(r.URL.Path, "/deployments/") {
			once()
		}
		return b.authenticate(w, r)
	}
	first := c.post(path, "plan", plan)
	<-reached
	second, other := c.post(path, "plan", plan), b.in(t).post(path, "plan", "another")
	close(release)
	if at := second.Header.Get("Location"); second.StatusCode != http.StatusSeeOther || at != first.Header.Get("Location") {
		t.Errorf("the second click: %d %s\n%s", second.StatusCode, at, content(second.body))
	}
	if other.StatusCode != http.StatusConflict {
		t.Errorf("another plan: %d", other.StatusCode)
	}
	c.ends(first)
}
