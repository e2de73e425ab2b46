package console_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
)

// listeners records the connections that a page opens for changes.
const listeners = `window.listeners = [];
window.EventSource = class extends EventSource { constructor(url) { super(url); window.listeners.push(this); } };`

// listening opens another tab of the browser, whose listeners are kept.
func (b *browser) listening() *browser {
	b.Helper()
	one := b.tab()
	if _, err := chromedp.Call(one.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: listeners}); err != nil {
		b.Fatal(err)
	}
	return one
}

// hide does what a browser does whose user goes to another tab, or comes back: one without a window shows all of them.
func (b *browser) hide(hidden bool) {
	b.Helper()
	_, err := evaluate[bool](b, fmt.Sprintf(`Object.defineProperty(document, "hidden", {value: %t, configurable: true}),
		document.dispatchEvent(new Event("visibilitychange"))`, hidden))
	if err != nil {
		b.Fatal(err)
	}
}

// listens waits until a tab has this number of connections for changes.
func (b *browser) listens(want int) {
	b.Helper()
	got := -1
	if !poll(20*time.Second, func() bool {
		var err error
		got, err = evaluate[int](b, "listeners.filter(one => one.readyState === EventSource.OPEN).length")
		return err == nil && got == want
	}) {
		b.Fatalf("the tab has %d connections open, want %d", got, want)
	}
}

// connections is how many a browser has for a server without TLS.
const connections = 6

// TestTabs checks that a hidden tab holds none of the connections, and is up to date when it is shown again.
func TestTabs(t *testing.T) {
	bed := deployertest.New(t)
	bed.Imported("shop", "1.0.0", deployertest.Content{})
	b := open(t)
	c := serve(t, bed.Server.Kubeconfig(t))
	b.follows(c)
	var tabs []*browser
	for range connections + 1 {
		one := b.listening()
		one.do(chromedp.Navigate(c.Origin + "/environments"))
		one.find("heading", "Environments")
		one.listens(1)
		one.hide(true)
		one.listens(0)
		tabs = append(tabs, one)
	}
	bed.Namespace("production", "production")
	first := tabs[0]
	first.hide(false)
	first.find("link", "production")
	first.listens(1)
	bed.Namespace("staging", "staging")
	first.find("link", "staging")
}

// TestSilence checks that each event moves the time of the page, that a silent connection is replaced, and that a form is sent once.
func TestSilence(t *testing.T) {
	bed := deployertest.New(t)
	bed.Imported("shop", "1.0.0", deployertest.Content{})
	b := open(t)
	c := serve(t, bed.Server.Kubeconfig(t))
	b.follows(c)
	one := b.listening()
	const timers = `const set = window.setTimeout; window.setTimeout = (f, ms) => { if (ms !== 40000) return set(f, ms); window.silence = f; };`
	if _, err := chromedp.Call(one.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: timers}); err != nil {
		t.Fatal(err)
	}
	one.do(chromedp.Navigate(c.Origin + "/environments"))
	one.listens(1)
	is := func(what, expression string) {
		t.Helper()
		if !poll(20*time.Second, func() bool { yes, err := evaluate[bool](one, expression); return err == nil && yes }) {
			t.Fatalf("%s: not %s", what, expression)
		}
	}
	is("an event", `(made => { made.dateTime = "2020-01-01T00:00:00Z"; listeners[0].dispatchEvent(new Event("alive")); return !made.dateTime.startsWith("2020"); })(document.querySelector("footer time"))`)
	is("no event", `(silence(), document.getElementById("stale").textContent.startsWith("Connection lost") && listeners[0].readyState === EventSource.CLOSED && listeners.length === 2)`)
	is("another connection", `listeners[1].readyState === EventSource.OPEN && document.getElementById("stale").textContent === ""`)
	is("a form", `(form => {
		form.method = "post";
		form.action = "javascript:void(0)";
		document.querySelector("main").append(form);
		const sends = () => form.dispatchEvent(new Event("submit", {bubbles: true, cancelable: true}));
		return [sends(), sends(), (dispatchEvent(new Event("pageshow")), sends())].join() === "true,false,true";
	})(document.createElement("form"))`)
}

// TestLeft checks that a page that stays open when the session ends shows that in place, keeps the input, and sends no more requests.
// After another login it continues.
func TestLeft(t *testing.T) {
	bed := deployertest.New(t)
	bed.Namespace("production", "production")
	b := open(t)
	c := serve(t, bed.Server.Kubeconfig(t))
	b.follows(c)
	tab := b.listening()
	tab.do(chromedp.Navigate(c.Origin + "/environments"))
	tab.listens(1)
	tab.press("searchbox", "Filter environments")
	tab.do(chromedp.KeyEvent("production"))
	b.press("button", "Log out")
	b.find("heading", "Log in")
	const ended = "Your session has ended. This page is no longer up to date."
	tab.find("text", ended)
	tab.find("link", "Log in")
	tab.find("heading", "Environments")
	tab.listens(0)
	b.follows(c)
	for _, hidden := range []bool{true, false} {
		tab.hide(hidden)
	}
	tab.listens(1)
	if number, err := evaluate[int](tab, "listeners.length"); err != nil || number != 2 {
		t.Errorf("the tab has opened %d connections, want 2: %v", number, err)
	}
	if typed, err := evaluate[string](tab, `document.querySelector("#q").value`); err != nil || typed != "production" {
		t.Errorf("what was typed has become %q: %v", typed, err)
	}
	if at, err := tab.lookup("text", ended); err != nil || at != nil {
		t.Errorf("the page says that the session has ended: %v", err)
	}
}

// TestVisibleTabs: more tabs than connections, all of them seen, load and stay up to date.
func TestVisibleTabs(t *testing.T) {
	bed := deployertest.New(t)
	bed.Imported("shop", "1.0.0", deployertest.Content{})
	b := open(t)
	c := serve(t, bed.Server.Kubeconfig(t))
	b.follows(c)
	var tabs []*browser
	for range connections + 1 {
		one := b.tab()
		one.do(chromedp.Navigate(c.Origin + "/environments"))
		one.find("heading", "Environments")
		tabs = append(tabs, one)
	}
	bed.Namespace("production", "production")
	for _, one := range tabs {
		one.find("link", "production")
	}
}

// TestFormComesBack: what was typed into a form that was sent after the end of the session is in it again after the login.
func TestFormComesBack(t *testing.T) {
	bed := deployertest.New(t)
	bed.Imported("shop", "1.0.0", deployertest.Content{})
	b := open(t)
	c := serve(t, bed.Server.Kubeconfig(t))
	b.follows(c)
	other := b.tab()
	other.do(chromedp.Navigate(c.Origin + "/environments/new"))
	other.find("heading", "New environment")
	other.fill("Name", "fresh")
	other.fill("Description (optional)", "Typed & kept")
	b.press("button", "Log out")
	b.find("heading", "Log in")
	other.press("button", "Create")
	other.find("heading", "Log in")
	other.follows(c)
	other.do(chromedp.Navigate(c.Origin + "/environments/new"))
	got, err := evaluate[string](other, `document.querySelector("[name=name]").value + ", " + document.querySelector("[name=description]").value`)
	if err != nil || got != "fresh, Typed & kept" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestOldFormComesBack: such a form does not take back what another user has changed meanwhile.
func TestOldFormComesBack(t *testing.T) {
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{Fields: "size: {type: integer}, note: {type: string}, users: {type: array, items: {type: object, properties: {name: {type: string}}}}"})
	bed.Clock("shop", deployertest.Environment, "wall", "hands: 3, size: 1")
	b := open(t)
	c := serve(t, bed.Server.Kubeconfig(t))
	b.follows(c)
	edit := c.Origin + "/environments/" + deployertest.Environment + "/apps/" + deployertest.Environment + "/Clock/wall/edit"
	other := b.tab()
	other.do(chromedp.Navigate(edit))
	const buttons = `[...document.querySelectorAll("button[name=show]")].map(one => one.value).join()`
	shown, err := evaluate[string](other, buttons)
	if err != nil || !strings.Contains(shown, ",") {
		t.Errorf("the form has the buttons %s, %v", shown, err)
	}
	other.fill("Note", "typed")
	object := bed.Server.Object("Clock", deployertest.Environment, "wall")
	object.Object["spec"].(map[string]any)["size"] = int64(50)
	bed.Put(object)
	b.press("button", "Log out")
	b.find("heading", "Log in")
	other.press("button", "Save")
	other.find("heading", "Log in")
	other.follows(c)
	other.do(chromedp.Navigate(edit))
	if now, err := evaluate[string](other, buttons); err != nil || now != shown {
		t.Errorf("the buttons send %s, %v, and not %s", now, err, shown)
	}
	other.press("button", "Save")
	other.find("heading", "Progress")
	var spec map[string]any
	if !poll(20*time.Second, func() bool {
		spec, _ = bed.Server.Object("Clock", deployertest.Environment, "wall").Object["spec"].(map[string]any)
		return spec["note"] == "typed"
	}) || spec["size"] != int64(50) {
		t.Errorf("got %v", spec)
	}
}
