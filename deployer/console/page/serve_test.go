package page_test

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/page/pagetest"
	"github.com/solutionctl/solutionctl/schema/report"
)

var (
	serveAt    = flag.String("serve", "", "serve the sample pages at this `ADDRESS`, for people to look at, in place of testing")
	serveExtra = flag.String("serve-extra", "", "a script, a `FILE`, to run on each of these pages as well, such as a judge of accessibility")
)

// TestServe serves the samples for viewing: /light/NAME and /dark/NAME; "large-" samples have 200 of everything, "live"
// has an operation in progress, and names that begin with "evil-" have hostile strings.
func TestServe(t *testing.T) {
	if *serveAt == "" {
		t.Skip("only with -serve")
	}
	mux := http.NewServeMux()
	for _, scheme := range []string{"light", "dark"} {
		serveSamples(t, mux, scheme)
	}
	server := &http.Server{Addr: *serveAt, Handler: mux, ReadHeaderTimeout: time.Minute}
	t.Fatal(server.ListenAndServe())
}

func serveSamples(t *testing.T, mux *http.ServeMux, scheme string) {
	t.Helper()
	p := newPages(t, "/"+scheme)
	static := p.Static()
	all := pagetest.Samples(pagetest.Honest)
	maps.Copy(all, pagetest.Large(pagetest.Honest))
	for name, v := range pagetest.Samples(func(text string) string { return text + `<img src=x onerror=alert(1)>` + strings.Repeat("W", 200) }) {
		all["evil-"+name] = v
	}
	mux.HandleFunc("GET /"+scheme+"/static/", func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = strings.TrimPrefix(r.URL.Path, "/"+scheme)
		r.Header.Del("Accept-Encoding")
		recorded := httptest.NewRecorder()
		static.ServeHTTP(recorded, r)
		text := strings.Replace(recorded.Body.String(), "color-scheme: light dark;", "color-scheme: "+scheme+";", 1)
		w.Header().Set("Content-Type", recorded.Header().Get("Content-Type"))
		if *serveExtra != "" && strings.HasSuffix(r.URL.Path, ".js") {
			extra, err := os.ReadFile(*serveExtra)
			if err != nil {
				t.Error(err)
			}
			text += "\n" + string(extra)
		}
		_, _ = w.Write([]byte(text))
	})
	var fetched atomic.Int64
	mux.HandleFunc("GET /"+scheme+"/live", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", page.ContentSecurityPolicy)
		content := pagetest.Progress(pagetest.Honest)
		v := page.View{Frame: all["progress"].Frame, Content: content}
		v.Feed = "/live/events"
		if fetched.Add(1)%2 == 0 {
			content.Running = pagetest.Run(pagetest.Honest, new(pagetest.Noon))
			content.Problem = page.ProblemOf(report.Errorf(report.Timeout, "it was not ready in time"))
		}
		if err := p.Render(w, v); err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("GET /"+scheme+"/live/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 20 {
			fmt.Fprintf(w, "id: %d\nevent: changed\ndata:\n\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
		fmt.Fprintf(w, "event: end\ndata:\n\n")
	})
	mux.HandleFunc("GET /"+scheme+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", page.ContentSecurityPolicy)
		v, ok := all[r.PathValue("name")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		v.Now, v.Feed = time.Now(), ""
		if err := p.Render(w, v); err != nil {
			t.Error(err)
		}
	})
}
