package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
)

// manyValues is a Solution with a chart of 20,000 values: half of them in tables of 100, half of them in no table.
func manyValues(t *testing.T) deployertest.Content {
	t.Helper()
	var values strings.Builder
	values.WriteString("password: ''\n")
	for i := range 10_000 - 1 {
		fmt.Fprintf(&values, "plain%d: %d\n", i, i)
	}
	for i := range 100 {
		fmt.Fprintf(&values, "table%d:\n", i)
		for j := range 100 {
			fmt.Fprintf(&values, "  # Number %d of the table, which is one of many that describe themselves.\n  option%d: text\n", j, j)
		}
	}
	return deployertest.Content{
		Files: map[string]string{"charts/vault.tgz": deployertest.Chart(t, "vault", map[string]string{
			"values.yaml": values.String(),
			"templates/vault.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vault}\n" +
				"data: {first: {{ .Values.table1.option7 | quote }}, second: {{ .Values.table99.option99 | quote }}, third: {{ .Values.plain9990 | quote }}}\n",
		})},
		Manifest: "components:\n  - {name: vault, chart: charts/vault.tgz, site: {required: [password]}}\n",
	}
}

// TestManyValues: the form with 20,000 values stays small, each value can be found, and what was typed is kept while others are shown.
func TestManyValues(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", manyValues(t))
	c := startOn(t, bed.Server, nil).in(t)
	site := "/environments/" + deployertest.Environment
	form := site + "/plan/add/values?solution=shop&version=1.0.0"
	small := func(a answer, controls int) answer {
		t.Helper()
		if n := strings.Count(a.body, `name="value:vault:`); a.StatusCode != http.StatusOK || len(a.body) > 400<<10 || n != controls {
			t.Fatalf("%d, %d bytes, %d values, want %d", a.StatusCode, len(a.body), n, controls)
		}
		return a
	}
	// turn presses a button of the form that shows other values.
	turn := func(a answer, change ...string) answer {
		t.Helper()
		typed, action := c.typed(a), action(t, a)
		for i := 0; i < len(change); i += 2 {
			typed.Set(change[i], change[i+1])
		}
		turned := c.do(http.MethodPost, action, typed)
		if turned.StatusCode != http.StatusSeeOther || !strings.Contains(turned.Header.Get("Location"), "/plan/add/values?") {
			t.Fatalf("%d to %s\n%.2000s", turned.StatusCode, turned.Header.Get("Location"), turned.body)
		}
		to, _, _ := strings.Cut(turned.Header.Get("Location"), "#")
		return c.get(to)
	}
	began := time.Now()
	first := small(c.get(form), 1)
	t.Logf("the first page has %d bytes and took %s", len(first.body), time.Since(began))
	for _, text := range []string{"Find a value", `value="vault:table1"`, "100 values", `value="vault:"`} {
		if !strings.Contains(first.body, text) {
			t.Errorf("nothing of %q", text)
		}
	}
	small(c.get(form+"&find=table99.option99"), 1)
	small(c.get(form+"&find=NUMBER+99+OF"), 199) // of each table, and all in table99
	if none := small(c.get(form+"&find=nothing"), 0); !strings.Contains(none.body, "Nothing matches") {
		t.Error("it does not report that nothing matches")
	}
	small(c.get(form+"&find=option"), 500)

	opened := small(turn(first, value("password"), "open-sesame", "open", "vault:table1"), 101)
	found := small(turn(opened, value("table1.option7"), "typed", "show", "find", "find", "table99.option99"), 1)
	if strings.Contains(found.body, "open-sesame") {
		t.Error("the page has the secret")
	}
	again := small(turn(found, value("table99.option99"), "found", "show", "find", "find", ""), 3)
	flat := small(turn(again, "open", "vault:"), 500) // of 10,000
	third := small(turn(flat, "show", "find", "find", "plain9990"), 1)

	typed := c.typed(third)
	typed.Set(value("plain9990"), "42")
	typed.Set("show", "find") // Enter in a field: the text of the search is the same
	plan := c.do(http.MethodPost, action(t, third), typed)
	if plan.StatusCode != http.StatusSeeOther || strings.Contains(plan.Header.Get("Location"), "/values?") {
		t.Fatalf("%d to %s\n%.2000s", plan.StatusCode, plan.Header.Get("Location"), plan.body)
	}
	c.ends(c.do(http.MethodPost, site+"/plan/add", c.fields(c.get(plan.Header.Get("Location")), "apply")))
	data, _ := bed.Server.Object("ConfigMap", deployertest.Environment, "vault").Object["data"].(map[string]any)
	if data["first"] != "typed" || data["second"] != "found" || data["third"] != "42" {
		t.Errorf("%v", data)
	}
	values, err := bed.SiteValues(t.Context(), deployer.ComponentsOptions{Environment: deployertest.Environment, Solution: "shop"})
	if err != nil || values["vault"]["password"] != "open-sesame" {
		t.Errorf("%v %v", values, err)
	}
}

// action is the address that the form with values is sent to.
func action(t *testing.T, a answer) string {
	t.Helper()
	_, address, _ := strings.Cut(a.body, `<form class="form values" method="post" action="`)
	address, _, found := strings.Cut(address, `"`)
	if !found {
		t.Fatalf("no form\n%.2000s", a.body)
	}
	return strings.ReplaceAll(address, "&amp;", "&")
}

// TestValuesFarAway: a value that is not on the page is shown when something is wrong with it, and another deployment in between is noticed.
func TestValuesFarAway(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", manyValues(t))
	c := startOn(t, bed.Server, nil).in(t)
	form := "/environments/" + deployertest.Environment + "/plan/add/values?solution=shop&version=1.0.0"
	a := c.do(http.MethodPost, form+"&find=table99.option99", url.Values{"seen": {"0"}, "find": {"table99.option99"}, value("plain5"): {"["}})
	if a.StatusCode != http.StatusBadRequest || !strings.Contains(a.body, `name="value:vault:password"`) || !strings.Contains(a.body, "Is required.") ||
		!strings.Contains(a.body, `name="value:vault:plain5"`) || strings.Count(a.body, `name="value:vault:`) != 3 {
		t.Errorf("%d, %d values\n%.3000s", a.StatusCode, strings.Count(a.body, `name="value:vault:`), a.body)
	}
	turned := c.post(form, "seen", "7", "show", "find", "find", "plain5")
	to, _, _ := strings.Cut(turned.Header.Get("Location"), "#")
	later := c.get(to)
	if a := c.do(http.MethodPost, action(t, later), c.typed(later)); a.StatusCode != http.StatusConflict {
		t.Errorf("a search hides that it was deployed again: %d", a.StatusCode)
	}
	many := url.Values{"seen": {"0"}}
	for i := range 3000 {
		many.Set(value(fmt.Sprint("plain", i)), "-1")
	}
	if a := c.do(http.MethodPost, form, many); a.StatusCode != http.StatusBadRequest || !strings.Contains(a.body, "--values") {
		t.Errorf("%d\n%.2000s", a.StatusCode, a.body)
	}
}
