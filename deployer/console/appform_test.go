package console_test

import (
	"fmt"
	"html"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
)

// wallOf starts a console with an application of these fields, and returns a function that reads its spec.
func wallOf(t *testing.T, fields, spec string) (c *browser, b *bench, bed *deployertest.Bed, edit string, read func() string) {
	t.Helper()
	bed = deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{Fields: fields})
	bed.Clock("shop", deployertest.Environment, "wall", spec)
	b = startOn(t, bed.Server, nil)
	return b.in(t), b, bed, "/environments/" + deployertest.Environment + "/apps/" + deployertest.Environment + "/Clock/wall/edit", func() string {
		return fmt.Sprint(bed.Server.Object("Clock", deployertest.Environment, "wall").Object["spec"])
	}
}

// TestApplicationChangedByTwo: a form keeps the changes of other users, and asks where both have changed one field.
func TestApplicationChangedByTwo(t *testing.T) {
	c, _, bed, edit, spec := wallOf(t, "size: {type: integer}, note: {type: string}, later: {type: string}", "hands: 3, size: 1, note: a, later: kept")
	form := c.typedIn(c.get(edit), "form")
	object := bed.Server.Object("Clock", deployertest.Environment, "wall")
	object.Object["spec"].(map[string]any)["size"] = int64(50)
	bed.Put(object)
	form.Del("spec.later") // of a form that is older than the field
	form.Set("spec.note", "b")
	c.ends(c.do(http.MethodPost, edit, form))
	if got := spec(); got != "map[hands:3 later:kept note:b size:50]" {
		t.Errorf("after a change of another field: %s", got)
	}

	form.Set("spec.size", "7")
	a := c.do(http.MethodPost, edit, form)
	if a.StatusCode != http.StatusConflict || !strings.Contains(a.body, "was changed since this form was opened, and is now: 50") {
		t.Fatalf("both have changed the size: %d\n%s", a.StatusCode, content(a.body))
	}
	c.ends(c.do(http.MethodPost, edit, c.typedIn(a, "form")))
	if got := spec(); got != "map[hands:3 later:kept note:b size:7]" {
		t.Errorf("after the user has seen it: %s", got)
	}
}

const secretFields = "password: {type: string, minLength: 3}, labels: {type: object, additionalProperties: {type: string}}, " +
	"users: {type: array, items: {type: object, properties: {name: {type: string}, apiKey: {type: string}}}}"

// TestApplicationSecretsStay: a secret that was typed is used although the form was shown again, and the user is asked for it when it is lost.
func TestApplicationSecretsStay(t *testing.T) {
	c, b, _, edit, spec := wallOf(t, secretFields, "hands: 3, password: before")
	form := c.typedIn(c.get(edit), "form")
	form.Set("spec.hands", "many")
	form.Set("spec.password", "typed secret")
	refused := c.do(http.MethodPost, edit, form)
	if refused.StatusCode != http.StatusBadRequest || strings.Contains(refused.body, "typed secret") {
		t.Fatalf("%d\n%s", refused.StatusCode, content(refused.body))
	}
	again := c.typedIn(refused, "form")
	again.Set("spec.hands", "4")
	again.Set("show", "yaml")
	shown := c.do(http.MethodPost, edit, again)
	if shown.StatusCode != http.StatusOK || !strings.Contains(shown.body, "password: (hidden)") || strings.Contains(shown.body, "typed secret") {
		t.Fatalf("as YAML: %d\n%s", shown.StatusCode, content(shown.body))
	}
	last := c.typedIn(shown, "form")
	b.clock.advance(2 * time.Hour)
	lost := c.do(http.MethodPost, edit, last)
	if lost.StatusCode != http.StatusOK || !strings.Contains(lost.body, "type secrets again") || spec() != "map[hands:3 password:before]" {
		t.Fatalf("a lost secret: %d, %s\n%s", lost.StatusCode, spec(), content(lost.body))
	}
	form = c.typedIn(lost, "form")
	form.Set("spec.password", "no")
	form = c.typedIn(c.do(http.MethodPost, edit, form), "form")
	form.Set("spec.password", "typed secret")
	c.ends(c.do(http.MethodPost, edit, form))
	if got := spec(); got != "map[hands:4 password:typed secret]" {
		t.Errorf("got %s", got)
	}

	apps := "/environments/" + deployertest.Environment + "/apps"
	a := c.post(apps, "kind", "Clock", "name", "tower", "spec.hands", "2", "spec.password", "typed secret", "show", "rows")
	c.ends(c.do(http.MethodPost, apps, c.typedIn(a, "form")))
	if got := fmt.Sprint(b.api.Object("Clock", deployertest.Environment, "tower").Object["spec"]); got != "map[hands:2 password:typed secret]" {
		t.Errorf("a new one: %s", got)
	}
}

// TestApplicationSecretsInside: a list or a map with a secret inside is not shown, and stays.
func TestApplicationSecretsInside(t *testing.T) {
	c, _, _, edit, spec := wallOf(t, secretFields, "hands: 3, labels: {token: hunter2}, users: [{name: ann, apiKey: hunter2}]")
	a := c.get(edit)
	if strings.Contains(html.UnescapeString(a.body), "hunter2") || strings.Count(a.body, `type="password"`) != 1 || strings.Count(a.body, `class="secret"`) != 2 {
		t.Errorf("the form has a secret\n%s", content(a.body))
	}
	form := c.typedIn(a, "form")
	form.Set("spec.hands", "4")
	c.ends(c.do(http.MethodPost, edit, form))
	if got := spec(); got != "map[hands:4 labels:map[token:hunter2] users:[map[apiKey:hunter2 name:ann]]]" {
		t.Errorf("got %s", got)
	}
}

// TestApplicationUntouchedStay: a field that a page cannot show as it is keeps its value when another field is saved.
func TestApplicationUntouchedStay(t *testing.T) {
	const own = `note: "a\u00a0b ", cert: "x\r\ny\n", gap: " ", users: [{name: "ann\n"}]`
	c, _, _, edit, spec := wallOf(t, "note: {type: string}, cert: {type: string}, gap: {type: string}, users: {type: array, items: {type: object, properties: {name: {type: string}}}}",
		"hands: 3, "+own)
	want := strings.Replace(spec(), "hands:3", "hands:4", 1)
	form := c.typedIn(c.get(edit), "form")
	if got := form.Get("spec.cert"); got != "x\ny\n" {
		t.Errorf("the certificate is shown as %q", got)
	}
	form.Set("spec.hands", "4")
	form.Set("show", "yaml")
	a := c.do(http.MethodPost, edit, form)
	if text := html.UnescapeString(a.body); !strings.Contains(text, `gap: ' '`) || !strings.Contains(text, `cert: "x\r\ny\n"`) {
		t.Errorf("the YAML has other values\n%s", content(a.body))
	}
	form.Del("show")
	c.ends(c.do(http.MethodPost, edit, form))
	if got := spec(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestApplicationDottedField: a field whose name has a dot is shown, and can be removed.
func TestApplicationDottedField(t *testing.T) {
	c, _, _, edit, spec := wallOf(t, "config: {type: object, properties: {log.level: {type: string}}}", "hands: 3, config: {log.level: debug}")
	form := c.typedIn(c.get(edit), "form")
	if name := `spec.config.log\.level`; form.Get(name) != "debug" {
		t.Errorf("shown as %v", form)
	} else {
		form.Set(name, "")
	}
	c.ends(c.do(http.MethodPost, edit, form))
	if got := spec(); strings.Contains(got, "debug") {
		t.Errorf("after it was removed: %s", got)
	}
}
