// Package console_test uses the web console in a browser.
package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/solutionctl/solutionctl/deployer/console"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

// program is Chromium itself: Debian's /usr/bin/chromium-headless-shell is a shell script that does not exec, so that a test that
// ends it leaves the browser behind.
const program = "/usr/lib/chromium/chromium-headless-shell"

// browser finds elements as users of a screen reader do: by role and name in the browser's accessibility tree.
type browser struct {
	*testing.T
	ctx      context.Context
	keyboard bool        // there is no mouse
	clicks   int         // on links, buttons and boxes
	cut      atomic.Bool // the page lost something to a change of the network
	leave    func()      // closes the tab
}

// A chromium is a browser that tests share, each with a window of its own: to start one costs a second of a processor. It is started when
// it is needed first, and again if it has ended, and TestMain ends it.
type chromium struct {
	more []chromedp.ExecAllocatorOption
	ctx  context.Context
	end  func()
}

var (
	seen = &chromium{}

	// unseen is for tests that only ask for styles and places. It draws nothing, so that whatever waits for a frame waits for long.
	unseen = &chromium{more: []chromedp.ExecAllocatorOption{chromedp.Flag("disable-threaded-compositing", true)}}
)

func TestMain(m *testing.M) {
	status := m.Run()
	for _, c := range []*chromium{seen, unseen} {
		if c.end != nil {
			c.end()
		}
	}
	os.Exit(status)
}

// switches trust the certificates of the tests' servers, and keep the browser from optimising code, as that of a page lives for seconds.
var switches = []chromedp.ExecAllocatorOption{
	chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.IgnoreCertErrors,
	chromedp.Flag("enable-blink-features", "ComputedAccessibilityInfo"), chromedp.Flag("js-flags", "--no-opt,--no-maglev"),
}

// start starts the browser.
func (c *chromium) start(t *testing.T) {
	t.Helper()
	options := slices.Concat(chromedp.DefaultExecAllocatorOptions[:], switches, c.more)
	allocator, release := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		cancel()
		release()
		t.Fatal(err)
	}
	c.ctx, c.end = ctx, func() {
		_ = chromedp.Cancel(ctx) // it waits for the browser to end
		cancel()
		release()
	}
}

// open opens a window, which has cookies and a cache of its own, until the test ends.
func (c *chromium) open(t *testing.T) *browser {
	t.Helper()
	if _, err := os.Stat(program); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("there is no browser: run .ci/setup")
		}
		t.Skip("there is no browser: run .ci/setup")
	}
	if c.ctx == nil || c.ctx.Err() != nil {
		c.start(t)
	}
	ctx, cancel := chromedp.NewContext(c.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil { // it waits for the window to be closed
			t.Log(err)
		}
		cancel()
	})
	b := &browser{T: t, ctx: ctx}
	b.begin()
	t.Cleanup(b.keep)
	return b
}

func open(t *testing.T) *browser {
	t.Helper()
	return seen.open(t)
}

// tab opens another tab of the browser.
func (b *browser) tab() *browser {
	b.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	b.Cleanup(cancel)
	one := &browser{T: b.T, ctx: ctx, leave: cancel}
	one.begin()
	return one
}

// begin starts what lives as long as the context. Nothing turns: it would be drawn sixty times a second.
func (b *browser) begin() {
	b.Helper()
	if err := chromedp.Do(b.ctx, chromedp.EmulateViewport(1280, 900)); err != nil {
		b.Fatal(err)
	}
	b.notices()
	b.look()
	if _, err := chromedp.Call(b.ctx, accessibility.Enable, cdp.Empty{}); err != nil { // its tree is kept: see finder
		b.Fatal(err)
	}
}

// withoutTree ends the accessibility tree, which costs more than the rest of a large page, for a test that finds nothing by its role.
func (b *browser) withoutTree() {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, accessibility.Disable, cdp.Empty{}); err != nil {
		b.Fatal(err)
	}
}

// keep leaves behind what a test that failed has seen.
func (b *browser) keep() {
	dir := os.Getenv("TEST_ARTIFACTS")
	if !b.Failed() || dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, testcluster.Deadline(10*time.Second))
	defer cancel()
	tree, err := chromedp.Call(ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		b.Log("no tree: ", err)
		return
	}
	var text strings.Builder
	for _, n := range tree.Nodes {
		if !n.Ignored && n.Role != nil && n.Name != nil {
			text.WriteString(string(n.Role.Value) + " " + string(n.Name.Value) + "\n")
		}
	}
	if err := os.WriteFile(filepath.Join(dir, b.file()+".txt"), []byte(text.String()), 0o600); err != nil {
		b.Log(err)
	}
	if picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100)); err != nil || os.WriteFile(filepath.Join(dir, b.file()+".png"), picture, 0o600) != nil {
		b.Log("no picture: ", err)
	}
}

// file is the name of the test as a file may have it.
func (b *browser) file() string { return strings.ReplaceAll(b.Name(), "/", "-") }

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, testcluster.Deadline(20*time.Second))
	defer cancel()
	err := chromedp.Do(ctx, steps...)
	for err != nil && strings.Contains(err.Error(), networkChanged) {
		b.cut.Store(false)
		err = chromedp.Do(ctx, steps...)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// networkChanged is how Chromium ends its connections when this host gets another address, as it does with each node of a
// cluster that another test starts.
const networkChanged = "net::ERR_NETWORK_CHANGED"

// notices listens for what the page that is open loses that way: itself, also when half of it is shown, its styles or its script.
func (b *browser) notices() {
	b.Helper()
	if err := chromedp.Listen(b.ctx, func(event any) {
		failed, ok := event.(*network.EventLoadingFailed)
		if ok && failed.ErrorText == networkChanged && slices.Contains(ofPage, failed.Type) {
			b.cut.Store(true)
		}
	}); err != nil {
		b.Fatal(err)
	}
}

var ofPage = []network.ResourceType{network.ResourceTypeDocument, network.ResourceTypeScript, network.ResourceTypeStylesheet}

// follows logs in with a new link of a console.
func (b *browser) follows(c *console.Console) {
	b.Helper()
	for again := true; again; again = !b.entered(c.Origin) {
		if err := chromedp.Do(b.ctx, chromedp.Navigate(c.NewLink())); err != nil && !strings.Contains(err.Error(), networkChanged) {
			b.Fatal(err)
		}
	}
	b.find("heading", "Solutions and environments")
}

// entered waits for what a console answers to a login. It reports false where the network changed meanwhile: a link or a code of the
// identity provider is for one login, so that the page cannot be loaded again.
func (b *browser) entered(origin string) bool {
	b.Helper()
	answered := fmt.Sprintf(`document.readyState === "complete" && location.origin === %q && !!document.querySelector("h1")`, origin)
	cut := false
	if poll(20*time.Second, func() bool {
		if cut = b.isCut(); cut {
			return true
		}
		yes, err := evaluate[bool](b, answered)
		return err == nil && yes
	}) {
		return !cut
	}
	b.find("heading", "Solutions and environments") // it reports what the page has instead
	return true
}

// finder finds a thing by role and name, and brings it into view. The browser computes both for the element, at once, from its
// accessibility tree, which it builds again for each element unless it keeps one. (The tree itself is built beside the page, and
// Chromium stalls for good when that is asked for at the wrong moment.)
const finder = `(role, name) => {
	const text = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	const tags = {heading: "h1, h2, h3", link: "a", button: "button, input, summary", textbox: "input, textarea", searchbox: "input", checkbox: "input"}; // asking all elements takes long
	const is = {
		text: () => { while (text.nextNode()) if (text.currentNode.data.trim() === name && text.currentNode.parentElement.checkVisibility()) return text.currentNode.parentElement; },
		element: () => [...document.body.querySelectorAll(tags[role] + ", [role=" + role + "]")].find(e => e.computedRole === role && e.computedName === name && e.checkVisibility()),
	};
	const found = document.readyState === "complete" && !document.isLeaving && (role === "text" ? is.text() : is.element());
	if (!found) return null;
	found.scrollIntoView({block: "center", behavior: "instant"});
	const at = found.getBoundingClientRect();
	return {x: at.x + at.width / 2, y: at.y + at.height / 2};
}`

// place is the middle of a thing, in pixels of the window.
type place struct{ X, Y float64 }

func (b *browser) lookup(role, name string) (*place, error) {
	arguments, err := json.Marshal([]string{role, name})
	if err != nil {
		return nil, err
	}
	return evaluate[*place](b, "("+finder+")(..."+string(arguments)+")")
}

// evaluate asks the page. A question that is lost in a navigation has an end, too.
func evaluate[T any](b *browser, question string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, testcluster.Deadline(time.Second))
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](question))
}

// poll asks until the answer is yes, and reports whether it was before the limit. It asks ever less often: each question makes the page work.
func poll(limit time.Duration, yes func() bool) bool {
	const longest = 160 * time.Millisecond
	pause := 10 * time.Millisecond
	for end := time.Now().Add(testcluster.Deadline(limit)); time.Now().Before(end); time.Sleep(pause) {
		if yes() {
			return true
		}
		pause = min(2*pause, longest)
	}
	return false
}

// answerOf asks the page until it answers.
func answerOf[T any](b *browser, question string) T {
	b.Helper()
	var value T
	var err error
	if !poll(20*time.Second, func() bool { value, err = evaluate[T](b, question); return err == nil }) {
		b.Fatalf("the page does not answer: %v", err)
	}
	return value
}

// find waits until there is something with this role and name.
func (b *browser) find(role, name string) *place {
	b.Helper()
	var at *place
	var err error
	if poll(20*time.Second, func() bool {
		if at, err = b.lookup(role, name); err == nil && at != nil {
			return true
		}
		b.mends()
		return false
	}) {
		return at
	}
	where, _ := evaluate[string](b, "location.href")
	text, _ := evaluate[string](b, "document.body.innerText")
	b.Fatalf("no %s %q at %s: %v\n%s", role, name, where, err, text)
	return nil
}

// isCut reports once whether the page, or a part of it, did not arrive.
func (b *browser) isCut() bool {
	if b.cut.Swap(false) {
		return true
	}
	broken, err := evaluate[bool](b, `location.protocol === "chrome-error:"`)
	return err == nil && broken
}

// mends loads the page again if it was cut off.
func (b *browser) mends() {
	b.Helper()
	if b.isCut() {
		b.do(chromedp.Reload())
	}
}

// arrives waits until the address of the page that is open has this in it.
func (b *browser) arrives(part string) {
	b.Helper()
	want, err := json.Marshal(part)
	if err != nil {
		b.Fatal(err)
	}
	b.until("the browser arrives at "+part, `document.readyState === "complete" && location.href.includes(`+string(want)+`)`)
}

// until waits until something is so on the page.
func (b *browser) until(what, question string) {
	b.Helper()
	b.within(20*time.Second, what, question)
}

// within is until for what may take longer.
func (b *browser) within(limit time.Duration, what, question string) {
	b.Helper()
	if poll(limit, func() bool {
		if yes, err := evaluate[bool](b, question); err == nil && yes {
			return true
		}
		b.mends()
		return false
	}) {
		return
	}
	where, _ := evaluate[string](b, "location.href")
	text, _ := evaluate[string](b, "document.body.innerText")
	b.Fatalf("not so: %s, at %s:\n%s", what, where, text)
}

// cannot expects a button that cannot be pressed.
func (b *browser) cannot(button string) {
	b.Helper()
	b.find("button", button)
	name, err := json.Marshal(button)
	if err != nil {
		b.Fatal(err)
	}
	if off, err := evaluate[bool](b, "[...document.querySelectorAll('button')].find(e => e.computedName === "+string(name)+").disabled"); err != nil || !off {
		b.Fatalf("button %s can be pressed: %v", button, err)
	}
}

// press clicks with the mouse, or in a test without one goes there with the keyboard.
func (b *browser) press(role, name string) {
	b.Helper()
	if role != "textbox" {
		b.clicks++
	}
	if b.keyboard {
		b.reach(role, name)
		key := kb.Enter
		if role == "checkbox" {
			key = " "
		}
		b.do(chromedp.KeyEvent(key))
		return
	}
	at := b.find(role, name)
	if role == "link" {
		b.leaves(at)
	}
	b.do(chromedp.MouseClickXY(at.X, at.Y))
}

// leaves marks a page that a click on a link at a place leaves, so that nothing is looked for on it any more: what both pages have may
// be somewhere else on the next one when the mouse gets there.
func (b *browser) leaves(at *place) {
	b.Helper()
	answerOf[bool](b, fmt.Sprintf(`(link => document.isLeaving = !!link && !link.target && !link.hasAttribute("download") && link.pathname !== location.pathname)(
		document.elementFromPoint(%f, %f)?.closest("a[href]"))`, at.X, at.Y))
}

// reach moves the focus to an element with the tabulator key, and checks that the focus is visible.
func (b *browser) reach(role, name string) {
	b.Helper()
	b.find(role, name)
	want, err := json.Marshal([]string{role, name})
	if err != nil {
		b.Fatal(err)
	}
	const mostSteps = 100
	for range mostSteps {
		at := answerOf[string](b, `(([role, name]) => {
			const e = document.activeElement;
			if (e === document.body || e.computedRole !== role || e.computedName !== name) return "";
			const style = getComputedStyle(e);
			return style.outlineStyle === "none" && style.boxShadow === "none" ? "unseen" : "here";
		})(`+string(want)+`)`)
		switch at {
		case "here":
			return
		case "unseen":
			b.Fatalf("nothing shows that the keyboard is at %s %q", role, name)
		}
		b.do(chromedp.KeyEvent(kb.Tab))
	}
	b.Fatalf("the keyboard does not lead to %s %q", role, name)
}

// fill types into a field, in place of its text.
func (b *browser) fill(name, text string) {
	b.Helper()
	if b.keyboard {
		b.reach("textbox", name)
	} else {
		b.press("textbox", name)
	}
	answerOf[bool](b, "document.activeElement.select(), true")
	ctx, cancel := context.WithTimeout(b.ctx, testcluster.Deadline(20*time.Second))
	defer cancel()
	if _, err := chromedp.Call(ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
		b.Fatal(err)
	}
}
