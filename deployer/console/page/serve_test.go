package page_test

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
)

var serveAt = flag.String("serve", "", "serve the sample pages at this `ADDRESS`, for people to look at, in place of testing")

// TestServe shows the samples to people: /light/NAME and /dark/NAME, and "large" with 200 environments.
func TestServe(t *testing.T) {
	if *serveAt == "" {
		t.Skip("only with -serve")
	}
	mux := http.NewServeMux()
	for _, scheme := range []string{"light", "dark"} {
		p, err := page.New("/" + scheme)
		if err != nil {
			t.Fatal(err)
		}
		static := p.Static()
		all := samples(func(text string) string { return text })
		all["large"] = page.View{Frame: all["overview"].Frame, Content: &page.Overview{Status: sampleStatus(func(text string) string { return text }, 200)}}
		mux.HandleFunc("GET /"+scheme+"/static/", func(w http.ResponseWriter, r *http.Request) {
			r.URL.Path = strings.TrimPrefix(r.URL.Path, "/"+scheme)
			r.Header.Del("Accept-Encoding")
			recorded := httptest.NewRecorder()
			static.ServeHTTP(recorded, r)
			w.Header().Set("Content-Type", recorded.Header().Get("Content-Type"))
			_, _ = w.Write([]byte(strings.Replace(recorded.Body.String(), "color-scheme: light dark;", "color-scheme: "+scheme+";", 1)))
		})
		mux.HandleFunc("GET /"+scheme+"/{name}", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Security-Policy", page.ContentSecurityPolicy)
			v, ok := all[r.PathValue("name")]
			if !ok {
				http.NotFound(w, r)
				return
			}
			v.Now = time.Now()
			v.Feed = ""
			if err := p.Render(w, v); err != nil {
				t.Error(err)
			}
		})
	}
	server := &http.Server{Addr: *serveAt, Handler: mux, ReadHeaderTimeout: time.Minute}
	t.Fatal(server.ListenAndServe())
}
