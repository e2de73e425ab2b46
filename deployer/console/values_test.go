package console_test

import (
	"html"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// vault is a Solution with a chart whose values only a site knows.
func vault(t *testing.T) deployertest.Content {
	t.Helper()
	return deployertest.Content{
		Files: map[string]string{"charts/vault.tgz": deployertest.Chart(t, "vault", map[string]string{
			"values.yaml":        "# Of the administrator.\npassword: ''\nreplicas: 1\nhosts: []\ntls: {mode: strict}\nstorage: {size: 8Gi}\nlabels: {}\n",
			"values.schema.json": `{"properties": {"replicas": {"type": "integer", "maximum": 9}, "hosts": {"type": "array", "items": {"type": "string"}}}}`,
			"templates/vault.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: vault}\nstringData: {password: {{ .Values.password | quote }}}\n---\n" +
				"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vault}\ndata: {replicas: {{ .Values.replicas | quote }}, hosts: {{ join \" \" .Values.hosts | quote }}, size: {{ .Values.storage.size | quote }}}\n",
		})},
		Manifest: "components:\n  - {name: vault, chart: charts/vault.tgz, site: {required: [password], locked: [tls]}}\n",
	}
}

// value is the name of a control.
func value(path string) string { return "value:vault:" + path }

// controls matches the controls of a form with values: inputs, texts of several lines, and selected options.
var controls = regexp.MustCompile(`(?s)<(?:input|textarea|select) id="[^"]*" name="([^"]*)"[^>]*?(?: value="([^"]*)"[^>]*>|>([^<]*)</textarea>|>(.*?)</select>)`)

// typed returns the fields of the form with values, as a browser sends them.
func (b *browser) typed(a answer) url.Values { b.Helper(); return b.typedIn(a, "form values") }

// typedIn returns the fields of a form of this class.
func (b *browser) typedIn(a answer, class string) url.Values {
	b.Helper()
	form := b.fields(a, class)
	_, inside, _ := strings.Cut(a.body, `class="`+class+`"`)
	for _, m := range controls.FindAllStringSubmatch(inside, -1) {
		_, option, _ := strings.Cut(m[4], " selected>")
		option, _, _ = strings.Cut(option, "<")
		form.Set(m[1], html.UnescapeString(m[2]+m[3]+option))
	}
	return form
}

// TestValuesForm is the life of a chart's values in a browser: a plan that needs one, the form, what is wrong beside its field, the plan with
// the values, and other values of the same version. No page ever has the secret.
func TestValuesForm(t *testing.T) {
	const secret = "open-sesame"
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", vault(t))
	c := startOn(t, bed.Server, nil).in(t)
	hidden := func(a answer) answer {
		t.Helper()
		if strings.Contains(a.body, secret) {
			t.Errorf("the page has the secret\n%s", a.body)
		}
		return a
	}
	site := "/environments/" + deployertest.Environment
	add := site + "/plan/add?solution=shop&version=1.0.0"
	form := site + "/plan/add/values?solution=shop&version=1.0.0"
	if a := c.get(add); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, "needs 1 value") || !strings.Contains(a.body, "/plan/add/values?") {
		t.Fatalf("%d, no way to the values\n%s", a.StatusCode, a.body)
	}
	empty := c.get(form)
	for _, text := range []string{
		`name="value:vault:password" required`, `type="password"`, "Of the administrator.", "default 1", "set by the vendor", `<summary><bdi>Storage</bdi>`,
		`name="unit:value:vault:storage.size"`, "one per line", "Replicas",
	} {
		if empty.StatusCode != http.StatusOK || !strings.Contains(empty.body, text) {
			t.Errorf("%d, nothing of %q\n%s", empty.StatusCode, text, empty.body)
		}
	}
	if strings.Contains(empty.body, `name="value:vault:tls.mode"`) {
		t.Error("a locked value has a control")
	}

	wrong := hidden(c.post(form, "seen", "0", value("password"), secret, value("replicas"), "10", value("hosts"), "a\r\nb"))
	for _, text := range []string{"Is more than 9.", `aria-invalid="true"`, ">a\nb</textarea>", "leave it empty to keep it", `role="alert"`} {
		if wrong.StatusCode != http.StatusBadRequest || !strings.Contains(wrong.body, text) {
			t.Errorf("%d, nothing of %q\n%s", wrong.StatusCode, text, wrong.body)
		}
	}
	typed := c.typed(wrong)
	typed.Set(value("replicas"), "3")
	typed.Set(value("storage.size"), "20")
	typed.Set("unit:"+value("storage.size"), "Gi")
	plan := c.do(http.MethodPost, form, typed)
	if plan.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d\n%s", plan.StatusCode, plan.body)
	}
	seen := hidden(c.get(plan.Header.Get("Location")))
	if !strings.Contains(seen.body, "vault.replicas") || !strings.Contains(seen.body, "4 values were changed") {
		t.Errorf("the plan does not list what was typed\n%s", seen.body)
	}
	c.ends(c.do(http.MethodPost, site+"/plan/add", c.fields(seen, "apply")))
	config := func(name string) any {
		t.Helper()
		data, _ := bed.Server.Object("ConfigMap", deployertest.Environment, "vault").Object["data"].(map[string]any)
		return data[name]
	}
	if config("replicas") != "3" || config("hosts") != "a b" || config("size") != "20Gi" {
		t.Errorf("%v", bed.Server.Object("ConfigMap", deployertest.Environment, "vault").Object)
	}
	if a := c.get(plan.Header.Get("Location")); a.StatusCode != http.StatusNotFound || !strings.Contains(a.body, "not kept any more") {
		t.Errorf("values that are deployed are kept: %d", a.StatusCode)
	}

	// Other values of the version that is deployed.
	page := c.get(site)
	_, link, _ := strings.Cut(page.body, `href="`+site+`/plan/upgrade/values?`)
	link, _, found := strings.Cut(link, `"`)
	if !found {
		t.Fatalf("no link to the values\n%s", page.body)
	}
	form = site + "/plan/upgrade/values?" + strings.ReplaceAll(link, "&amp;", "&")
	again := hidden(c.get(form))
	for _, text := range []string{`value="3"`, ">a\nb</textarea>", `value="20"`, "leave it empty to keep it"} {
		if again.StatusCode != http.StatusOK || !strings.Contains(again.body, text) {
			t.Errorf("%d, nothing of %q\n%s", again.StatusCode, text, again.body)
		}
	}
	typed = c.typed(again)
	old := typed.Get("seen")
	typed.Set(value("replicas"), "")
	typed.Set("seen", "0")
	if a := c.do(http.MethodPost, form, typed); a.StatusCode != http.StatusConflict || !strings.Contains(a.body, "was deployed again") {
		t.Errorf("another deployment: %d\n%s", a.StatusCode, a.body)
	}
	typed.Set("seen", old)
	seen = hidden(c.get(c.do(http.MethodPost, form, typed).Header.Get("Location")))
	if !strings.Contains(seen.body, "1 value was changed") {
		t.Errorf("%s", seen.body)
	}
	c.ends(c.do(http.MethodPost, site+"/plan/upgrade", c.fields(seen, "apply")))
	if config("replicas") != "1" || config("hosts") != "a b" {
		t.Errorf("%v", bed.Server.Object("ConfigMap", deployertest.Environment, "vault").Object)
	}
	values, err := bed.SiteValues(t.Context(), deployer.ComponentsOptions{Environment: deployertest.Environment, Solution: "shop"})
	if err != nil || values["vault"]["password"] != secret {
		t.Errorf("the secret was not kept: %v", err)
	}
	var document schema.SolutionValues
	if a := hidden(c.json(form, &document)); a.StatusCode != http.StatusOK || len(document.Components) != 1 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// TestForgedValues: what the form does not offer is refused, and changes nothing.
func TestForgedValues(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", vault(t))
	c := startOn(t, bed.Server, nil).in(t)
	site := "/environments/" + deployertest.Environment
	form := site + "/plan/add/values?solution=shop&version=1.0.0"
	bed.Writes()
	for name, test := range map[string]struct {
		fields []string
		want   string
	}{
		"a locked value":    {[]string{value("password"), "x", value("tls.mode"), "off"}, "Is locked by the vendor."},
		"nothing required":  {[]string{value("replicas"), "2"}, "Is required."},
		"no number":         {[]string{value("password"), "x", value("replicas"), "many"}, "is not a whole number."},
		"a value in a list": {[]string{value("password"), "x", value("hosts"), "[1]"}, "Item 1 got number, want string."},
	} {
		a := c.post(form, append([]string{"seen", "0"}, test.fields...)...)
		if a.StatusCode != http.StatusBadRequest || !strings.Contains(a.body, test.want) {
			t.Errorf("%s: %d, nothing of %q\n%s", name, a.StatusCode, test.want, a.body)
		}
		_, draft, _ := strings.Cut(a.body, `name="values" value="`)
		draft, _, _ = strings.Cut(draft, `"`)
		var refusal refused
		if p := c.json(site+"/plan/add?solution=shop&version=1.0.0&values="+draft, &refusal); draft == "" || p.StatusCode != http.StatusUnprocessableEntity || refusal.Code != report.Refused {
			t.Errorf("%s: the plan takes it: %d %s", name, p.StatusCode, p.body)
		}
	}
	if writes := bed.Writes(); len(writes) > 0 {
		t.Errorf("something changed: %q", writes)
	}
	other := startOn(t, bed.Server, nil).in(t)
	if a := other.get(site + "/plan/add?solution=shop&version=1.0.0&values=ABC"); a.StatusCode != http.StatusNotFound {
		t.Errorf("values of another browser: %d", a.StatusCode)
	}
}

// TestUntouchedValuesStay: a value that a page cannot show as it is stays when another one is changed, and so does one that was typed before.
func TestUntouchedValuesStay(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", deployertest.Content{
		Files: map[string]string{"charts/vault.tgz": deployertest.Chart(t, "vault", map[string]string{
			"values.yaml":          "replicas: 1\ncert: ''\nseparator: ','\npause: '-'\ntitle: ''\n",
			"templates/vault.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vault}\ndata: {replicas: {{ .Values.replicas | quote }}}\n",
		})},
		Manifest: "components:\n  - {name: vault, chart: charts/vault.tgz}\n",
	})
	r := deployer.Request{Verb: schema.VerbAdd, Environment: deployertest.Environment, Solution: "shop", Version: "1.0.0"}
	r.Timeout = time.Minute
	r.Rendering.Values = map[string]plan.SiteValues{"vault": {Values: map[string]any{"cert": "-----BEGIN\r\nEND\n", "separator": " ", "pause": " "}, Reset: true}}
	if _, err := bed.Perform(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	c := startOn(t, bed.Server, nil).in(t)
	form := "/environments/" + deployertest.Environment + "/plan/upgrade/values?solution=shop&version=1.0.0"
	typed := c.typed(c.get(form))
	typed.Set(value("title"), "a\u00a0b")
	a := c.get(c.do(http.MethodPost, form, typed).Header.Get("Location"))
	_, again, _ := strings.Cut(a.body, `href="/environments/`+deployertest.Environment+`/plan/upgrade/values`)
	again, _, _ = strings.Cut(again, `"`)
	form = "/environments/" + deployertest.Environment + "/plan/upgrade/values" + html.UnescapeString(again)
	typed = c.typed(c.get(form))
	typed.Set(value("replicas"), "3")
	typed.Set(value("pause"), "") // a value of spaces only is removed
	a = c.get(c.do(http.MethodPost, form, typed).Header.Get("Location"))
	c.ends(c.do(http.MethodPost, "/environments/"+deployertest.Environment+"/plan/upgrade", c.fields(a, "apply")))
	values, err := bed.SiteValues(t.Context(), deployer.ComponentsOptions{Environment: deployertest.Environment, Solution: "shop"})
	want := map[string]map[string]any{"vault": {"cert": "-----BEGIN\r\nEND\n", "replicas": 3.0, "separator": " ", "title": "a\u00a0b"}}
	if err != nil || !reflect.DeepEqual(values, want) {
		t.Errorf("%v\ngot  %q\nwant %q", err, values, want)
	}
}

// TestLostValues: a form whose typed secrets are not kept any more is shown again, with the other values that were typed.
func TestLostValues(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", vault(t))
	r := deployer.Request{Verb: schema.VerbAdd, Environment: deployertest.Environment, Solution: "shop", Version: "1.0.0"}
	r.Timeout = time.Minute
	r.Rendering.Values = map[string]plan.SiteValues{"vault": {Values: map[string]any{"password": "before"}, Reset: true}}
	if _, err := bed.Perform(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	b := startOn(t, bed.Server, nil)
	c := b.in(t)
	form := "/environments/" + deployertest.Environment + "/plan/upgrade/values?solution=shop&version=1.0.0"
	first := c.typed(c.get(form))
	first.Set(value("password"), "open-sesame")
	first.Set(value("replicas"), "10")
	typed := c.typed(c.do(http.MethodPost, form, first))
	typed.Set(value("replicas"), "3")
	b.clock.advance(2 * time.Hour)
	for _, button := range []string{"", page.ValuesFind} {
		typed.Set(page.ValuesShow, button)
		typed.Set(page.ValuesFind, "replicas")
		a := c.do(http.MethodPost, form, typed)
		if again := c.typed(a); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "type secrets again") || again.Get(value("replicas")) != "3" {
			t.Fatalf("%d, %v\n%s", a.StatusCode, again, content(a.body))
		}
	}
	typed.Set(page.ValuesShow, "")
	again := c.typed(c.do(http.MethodPost, form, typed))
	again.Set(value("password"), "open-sesame")
	a := c.do(http.MethodPost, form, again)
	if a = c.get(a.Header.Get("Location")); !strings.Contains(a.body, "<code>vault.password</code>, <code>vault.replicas</code>") {
		t.Errorf("the plan has other values\n%s", content(a.body))
	}
}
