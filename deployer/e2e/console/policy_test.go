package console_test

import (
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// watchPolicy keeps what the policy of pages refuses, in each page that is opened from now on.
func (b *browser) watchPolicy() {
	b.Helper()
	const source = `window.violations = []; addEventListener("securitypolicyviolation", e => violations.push(e.effectiveDirective));`
	if _, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: source}); err != nil {
		b.Fatal(err)
	}
}

// TestPolicy runs on a page the scripts that an attacker could insert into unescaped text: the browser refuses all of them.
func TestPolicy(t *testing.T) {
	b := open(t)
	b.watchPolicy()
	b.do(chromedp.Navigate(serveSamples(t) + "/overview"))
	const attack = `(async () => {
		const refused = [], attempt = (name, act) => { try { act(); } catch { refused.push(name); } };
		attempt("HTML", () => { document.querySelector("h1").innerHTML = "<b>x</b>"; });
		attempt("a policy", () => { trustedTypes.createPolicy("theirs", {}); });
		attempt("a script", () => { const e = document.createElement("script"); e.textContent = "window.ran = true"; document.body.append(e); });
		const blocked = (directive, what) => new Promise(done => {
			addEventListener("securitypolicyviolation", e => { if (e.effectiveDirective === directive) { refused.push(directive); done(); } });
			what();
		});
		await blocked("img-src", () => { const e = new Image(); e.src = "https://elsewhere.example/x.png"; document.body.append(e); });
		await blocked("style-src-elem", () => { const e = document.createElement("style"); e.textContent = "body { display: none }"; document.body.append(e); });
		await blocked("connect-src", () => { fetch("https://elsewhere.example/").catch(() => {}); });
		await blocked("frame-src", () => { const e = document.createElement("iframe"); e.src = "https://elsewhere.example/"; document.body.append(e); });
		if (window.ran) refused.push("nothing");
		return refused;
	})()`
	got, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](attack, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	want := []string{"HTML", "a policy", "a script", "connect-src", "frame-src", "img-src", "style-src-elem"}
	if !slices.Equal(slices.Compact(got), want) {
		t.Errorf("refused is %q, want %q", got, want)
	}
}

// TestHabits checks that pages follow the preferences of the browser and the system.
func TestHabits(t *testing.T) {
	b := open(t)
	origin := serveSamples(t)
	ask := func(what, question string) {
		t.Helper()
		if yes, err := evaluate[bool](b, question); err != nil || !yes {
			t.Errorf("not so: %s, %v", what, err)
		}
	}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{}); err != nil { // it prefers nothing
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(origin + "/progress"))
	ask("what is at work turns", "document.getAnimations().length > 0")
	b.look() // prefers reduced motion
	ask("nothing moves", "document.getAnimations().length === 0")

	if _, err := chromedp.Call(b.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"}); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(origin + "/history"))
	b.until("a time is relative, and its exact one is that of the user", `(() => {
		const [time] = document.querySelectorAll("main time");
		return / ago$/.test(time.textContent) && /^Your time: .*5:30/.test(time.title);
	})()`)

	b.do(chromedp.Navigate(origin + "/plan"))
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print", Features: []*emulation.MediaFeature{scheme("dark")}}); err != nil {
		t.Fatal(err)
	}
	ask("paper has no navigation and no buttons", `![...document.querySelectorAll(".side, .button")].some(e => e.checkVisibility())`)
	ask("paper has what is folded", `[...document.querySelectorAll("main .change details > *")].every(e => e.getBoundingClientRect().height > 0)`)
	ask("paper is white", `getComputedStyle(document.body).backgroundColor === "rgb(255, 255, 255)"`)
}
