// Package console_test uses the web console in a browser.
package console_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// program is Chromium itself: Debian's /usr/bin/chromium-headless-shell is a shell script that does not exec, so that whoever
// ends it leaves the browser behind.
const program = "/usr/lib/chromium/chromium-headless-shell"

// browser finds things as people do who hear a page: by role and name, in the browser's accessibility tree.
type browser struct {
	*testing.T
	ctx context.Context
}

func open(t *testing.T) *browser {
	t.Helper()
	if _, err := os.Stat(program); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("there is no browser: run .ci/setup")
		}
		t.Skip("there is no browser: run .ci/setup")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox)
	ctx, cancel := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...) // t.Context ends before Cleanup
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil { // it waits for the browser to end
			t.Log(err)
		}
		cancel()
	})
	b := &browser{t, ctx}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900)); err != nil { // the browser lives as long as this context
		t.Fatal(err)
	}
	t.Cleanup(b.keep)
	return b
}

// keep leaves behind what a test that failed has seen.
func (b *browser) keep() {
	dir := os.Getenv("TEST_ARTIFACTS")
	if !b.Failed() || dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
	defer cancel()
	if picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100)); err != nil || os.WriteFile(filepath.Join(dir, b.Name()+".png"), picture, 0o600) != nil {
		b.Log("no picture: ", err)
	}
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
	if err := os.WriteFile(filepath.Join(dir, b.Name()+".txt"), []byte(text.String()), 0o600); err != nil {
		b.Log(err)
	}
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.Fatal(err)
	}
}

var errNone = errors.New("none")

func (b *browser) lookup(role, name string) (cdp.BackendNodeID, error) {
	ctx, cancel := context.WithTimeout(b.ctx, 2*time.Second) // a call that is lost in a navigation
	defer cancel()
	// Chromium stalls for good when its accessibility tree is asked for while a page loads.
	if state, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.readyState")); err != nil || state != "complete" {
		return 0, errors.Join(errNone, err)
	}
	doc, err := chromedp.Call(ctx, dom.GetDocument, dom.GetDocumentParams{})
	if err != nil {
		return 0, err
	}
	found, err := chromedp.Call(ctx, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{BackendNodeID: doc.Root.BackendNodeID, Role: role, AccessibleName: name})
	if err != nil {
		return 0, err
	}
	for _, n := range found.Nodes {
		if !n.Ignored {
			return n.BackendDOMNodeID, nil
		}
	}
	return 0, errNone
}

// find waits until there is something with this role and name.
func (b *browser) find(role, name string) cdp.BackendNodeID {
	b.Helper()
	var err error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var id cdp.BackendNodeID
		if id, err = b.lookup(role, name); err == nil {
			return id
		}
	}
	at, _ := chromedp.Run(b.ctx, chromedp.Location())
	text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	b.Fatalf("no %s %q at %s: %v\n%s", role, name, at, err, text)
	return 0
}

// press clicks with the mouse.
func (b *browser) press(role, name string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
	defer cancel()
	for {
		id := b.find(role, name)
		_, err := chromedp.Call(ctx, dom.ScrollIntoViewIfNeeded, dom.ScrollIntoViewIfNeededParams{BackendNodeID: id})
		var quads dom.GetContentQuadsResult
		if err == nil {
			quads, err = chromedp.Call(ctx, dom.GetContentQuads, dom.GetContentQuadsParams{BackendNodeID: id})
		}
		if err == nil && len(quads.Quads) > 0 {
			q := quads.Quads[0]
			b.do(chromedp.MouseClickXY((q[0]+q[4])/2, (q[1]+q[5])/2))
			return
		}
		if ctx.Err() != nil {
			b.Fatalf("%s %q cannot be clicked: %v", role, name, err)
		}
	}
}

// fill types into a field.
func (b *browser) fill(role, name, text string) {
	b.Helper()
	id := b.find(role, name)
	if _, err := chromedp.Call(b.ctx, dom.Focus, dom.FocusParams{BackendNodeID: id}); err != nil {
		b.Fatal(err)
	}
	if _, err := chromedp.Call(b.ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
		b.Fatal(err)
	}
}
