package console_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/page/pagetest"
)

// hurried makes the clock of a page a fast one.
const hurried = `{ const wait = setTimeout; window.setTimeout = (call, pause, ...rest) => wait(call, pause / 10, ...rest); }`

// TestBegun: a page whose connection is cut, or that gets no answer, reports that in a bounded time, with a link that loads it again, and does
// that by itself when the server can be reached again.
func TestBegun(t *testing.T) {
	const (
		whole   = iota
		silent  // the answer does not continue
		aborted // the connection ends
		away    // nothing is answered
	)
	pages, err := page.New("")
	if err != nil {
		t.Fatal(err)
	}
	view := pagetest.Samples(pagetest.Honest)["overview"]
	view.Feed = ""
	var state atomic.Int64
	shown := make(chan struct{}) // gets a value when the page asks whether the server can be reached, which it does once it is shown
	static := pages.Static()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if state.Load() == away {
			panic(http.ErrAbortHandler)
		}
		if r.URL.Path != "/" {
			if strings.HasPrefix(r.URL.Path, "/static/icon.") {
				select {
				case shown <- struct{}{}:
				default:
				}
			}
			static.ServeHTTP(w, r)
			return
		}
		begun, err := pages.Begin(w, r, view)
		if err != nil {
			t.Error(err)
		}
		switch state.Load() {
		case aborted:
			select { // Chromium runs no script of a page whose connection has ended by the time that it begins to parse
			case <-shown:
			case <-r.Context().Done():
			}
			panic(http.ErrAbortHandler)
		case silent:
			<-r.Context().Done()
		default:
			if err := begun.Finish(view); err != nil {
				t.Error(err)
			}
		}
	}))
	t.Cleanup(server.Close)
	b := open(t)
	if _, err := chromedp.Call(b.ctx, cdpage.AddScriptToEvaluateOnNewDocument, cdpage.AddScriptToEvaluateOnNewDocumentParams{Source: hurried}); err != nil {
		t.Fatal(err)
	}
	const isWhole = `!!document.querySelector("footer")`
	shows := func(text string) {
		t.Helper()
		b.until(text, `document.querySelector(".asking")?.textContent.includes("`+text+`") && document.querySelector(".asking a").href === location.href`)
	}
	begin := func(now int64) {
		t.Helper()
		state.Store(now)
		answerOf[bool](b, `setTimeout(() => { location.href = "`+server.URL+`/?`+t.Name()+`"; }), true`)
	}
	b.do(chromedp.Navigate(server.URL + "/static/"))

	begin(whole)
	b.until("the page is whole", isWhole)

	begin(silent)
	shows("did not arrive")
	state.Store(away)
	shows("Connection lost")
	state.Store(whole)
	b.until("the page comes when the server is back", isWhole)

	begin(aborted)
	shows("did not arrive") // at the deadline: for Chromium such a page is still loading
	state.Store(away)
	shows("Connection lost")
	state.Store(whole)
	b.until("the page comes when the server is back", isWhole)
}
