package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/page/pagetest"
	"github.com/solutionctl/solutionctl/schema"
)

// TestPreview: the rows of a page whose health is still being checked can be seen at once, and are in the same place when health is there, with and
// without the script.
func TestPreview(t *testing.T) {
	pages, err := page.New("")
	if err != nil {
		t.Fatal(err)
	}
	status := pagetest.Status(pagetest.Honest, 60)
	for _, e := range status.Environments {
		for _, n := range e.Namespaces {
			for i := range n.Deployments {
				d := &n.Deployments[i]
				*d = schema.DeploymentStatus{Solution: d.Solution, Version: "1.10.0", Wanted: "1.10.0", Health: schema.HealthReady}
			}
		}
	}
	whole := pagetest.Samples(pagetest.Honest)["overview"]
	whole.Feed, whole.Notices = "", nil
	whole.Content = &page.Overview{Status: status, Actions: []page.Action{{Label: page.Text("action.createEnvironment"), URL: "/environments/new"}}}
	title, preview := whole, whole
	title.Content, preview.Content = page.PreviewOverview(nil, page.Listing{}), page.PreviewOverview(pagetest.Preview(status), page.Listing{})
	next := make(chan struct{})
	static := pages.Static()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			static.ServeHTTP(w, r)
			return
		}
		begun, err := pages.Begin(w, r, title)
		if err == nil {
			err = begun.Preview(preview)
		}
		<-next
		if err == nil {
			err = begun.Finish(whole)
		}
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	const (
		rows = `JSON.stringify([...document.querySelectorAll("main tbody a")].filter(a => a.checkVisibility()).slice(0, 40)` +
			`.map(a => [a.getAttribute("href"), Math.round(a.getBoundingClientRect().top)]))`
		shifts = `window.shifted = 0; new PerformanceObserver(list => { for (const e of list.getEntries()) window.shifted += e.value; }).observe({type: "layout-shift", buffered: true});`
	)
	for _, test := range []struct {
		script        bool
		width, height int64
	}{{true, 1280, 900}, {true, 390, 800}, {false, 1280, 900}, {true, 2560, 1400}} {
		t.Run(fmt.Sprintf("script %t, %d wide", test.script, test.width), func(t *testing.T) {
			b := open(t)
			b.do(chromedp.EmulateViewport(test.width, test.height))
			disabled := !test.script
			if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: disabled}); err != nil {
				t.Fatal(err)
			}
			if _, err := chromedp.Call(b.ctx, cdpage.AddScriptToEvaluateOnNewDocument, cdpage.AddScriptToEvaluateOnNewDocumentParams{Source: shifts}); err != nil {
				t.Fatal(err)
			}
			if _, err := chromedp.Call(b.ctx, cdpage.Navigate, cdpage.NavigateParams{URL: server.URL + "/"}); err != nil {
				t.Fatal(err)
			}
			var early, late [][2]any
			b.until("the preview is shown", `document.querySelectorAll(".preview tbody tr").length >= 50 && !document.querySelector("footer") &&
				getComputedStyle(document.querySelector(".preview")).display === "grid"`) // it has the styles
			if err := json.Unmarshal([]byte(answerOf[string](b, rows)), &early); err != nil || len(early) < 40 {
				t.Fatalf("%d rows can be seen: %v", len(early), err)
			}
			if text := answerOf[string](b, `document.querySelector(".checking").innerText`); text != page.Text("frame.checking") {
				t.Errorf("the status is %q", text)
			}
			next <- struct{}{}
			b.until("the page is whole", `!!document.querySelector("footer") && document.readyState === "complete"`)
			if err := json.Unmarshal([]byte(answerOf[string](b, rows)), &late); err != nil || fmt.Sprint(late) != fmt.Sprint(early) {
				t.Errorf("the rows were at\n%v\nand are at\n%v (%v)", early, late, err)
			}
			if seen := answerOf[int](b, `[...document.querySelectorAll("h1")].filter(e => e.checkVisibility()).length`); seen != 1 {
				t.Errorf("%d titles can be seen", seen)
			}
			if test.script {
				if shift := answerOf[float64](b, "window.shifted"); shift > 0 {
					t.Errorf("the layout shifts by %f", shift)
				}
				if left := answerOf[int](b, `document.querySelectorAll(".preview, .checking").length`); left > 0 {
					t.Errorf("%d parts of the preview are left", left)
				}
			}
		})
	}
}
