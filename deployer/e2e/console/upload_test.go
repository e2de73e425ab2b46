package console_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/console"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/deployer/deployertest/vendortest"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/hostd"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// choose puts a file into a field.
func (b *browser) choose(id, path string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, testcluster.Deadline(20*time.Second))
	defer cancel()
	expression, err := json.Marshal(id)
	if err != nil {
		b.Fatal(err)
	}
	found, err := chromedp.Call(ctx, runtime.Evaluate, runtime.EvaluateParams{Expression: "document.getElementById(" + string(expression) + ")"})
	if err != nil {
		b.Fatal(err)
	}
	if _, err = chromedp.Call(ctx, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: []string{path}, ObjectID: found.Result.ObjectID}); err != nil {
		b.Fatal(err)
	}
}

// breaking ends a connection in the middle of a body.
type breaking struct {
	io.ReadCloser
	left int
}

func (r *breaking) Read(p []byte) (int, error) {
	if r.left <= 0 {
		panic(http.ErrAbortHandler)
	}
	n, err := r.ReadCloser.Read(p)
	r.left -= n
	return n, err
}

// TestUpload sends an archive by mouse, loses the file and then the connection on the way, and once more when the page asks for the judgement.
func TestUpload(t *testing.T) {
	b := open(t)
	api, vendor, dir := clustertest.Start(t), vendortest.New(t), t.TempDir()
	kubeconfig := api.Kubeconfig(t)
	connect := func() (*cluster.Cluster, error) {
		return cluster.Connect(cluster.Options{Kubeconfig: kubeconfig, Now: time.Now})
	}
	places := host.Places{Store: filepath.Join(dir, "store"), Configuration: filepath.Join(dir, "solutions.yaml"), Nginx: filepath.Join(dir, "nginx")}
	var c *console.Console
	var pieces, judgements atomic.Int32
	var moved atomic.Pointer[string] // a file that is lost with the next piece
	listening := make(chan struct{})
	listens := sync.OnceFunc(func() { close(listening) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := moved.Load(); r.Method == http.MethodPatch && path != nil {
			_ = os.Remove(*path)
			panic(http.ErrAbortHandler)
		}
		if r.Method == http.MethodPatch && pieces.Add(1) == 1 {
			r.Body = &breaking{r.Body, 10 << 20}
		}
		if strings.HasPrefix(r.URL.Path, "/import/") && r.Method == http.MethodGet {
			switch {
			case strings.HasSuffix(r.URL.Path, "/events"):
				listens()
			case r.Header.Get("Sec-Fetch-Dest") == "empty" && judgements.Add(1) == 1:
				http.Error(w, "a proxy has no time", http.StatusBadGateway)
				return
			}
		}
		c.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	c, err := console.New(ctx, console.Options{
		Connect: func(session.Token) (*cluster.Cluster, error) { return connect() },
		Archives: &hostd.Desk{
			Open: func() (*host.Host, error) { return host.Open(places) }, Connect: func(string) (*cluster.Cluster, error) { return connect() },
			Options: host.ImportOptions{State: filepath.Join(dir, "state.json"), Mount: host.MountNever, Trusted: func() (*trust.Store, error) {
				if pieces.Load() > 0 {
					<-listening // the judgement comes when the page waits for it
				}
				return vendor.Trusted()
			}},
			Version: "1.0.0-test", Host: "here", Now: time.Now,
		},
		Uploads: filepath.Join(dir, "uploads"), Origin: server.URL, Links: true, Version: "1.0.0-test", Host: "here", Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(); c.Wait() })

	path, foreign := vendor.Archive(t, "1.0.0", 40<<20), vendortest.New(t).Archive(t, "1.0.0", 0)
	b.follows(c)
	b.press("link", "Import")
	b.find("heading", "Import")
	b.choose("bundle", sign.BundleName(foreign, ""))
	b.choose("archive", path)
	b.press("button", "Upload")
	reports := func(words string) {
		t.Helper()
		if !poll(20*time.Second, func() bool {
			shown, failure := evaluate[bool](b, "document.querySelector('form[data-upload] [role=status]').textContent.includes('"+words+"')")
			return failure == nil && shown
		}) {
			text, _ := evaluate[string](b, "document.body.innerText")
			t.Fatalf("the page does not have %q:\n%s", words, text)
		}
	}
	reports("trusted") // why a stranger's archive is refused
	if pieces.Load() > 0 {
		t.Error("a piece of it was sent")
	}
	b.choose("bundle", sign.BundleName(path, ""))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lost := filepath.Join(dir, filepath.Base(path))
	if err = os.WriteFile(lost, data, 0o600); err != nil {
		t.Fatal(err)
	}
	moved.Store(&lost)
	b.choose("archive", lost)
	b.press("button", "Upload")
	reports("cannot be read any more")
	moved.Store(nil)
	b.choose("archive", path)
	other := b.tab()
	other.do(chromedp.Navigate(server.URL))
	other.press("button", "Log out")
	other.find("heading", "Log in")
	b.press("button", "Upload")
	b.find("text", "Your session has ended. This page is no longer up to date.")
	other.follows(c)
	b.press("button", "Upload") // what was chosen is still there
	b.find("heading", "Import demo 1.0.0?")
	b.find("heading", "Who signed it")
	if n := pieces.Load(); n < 3 {
		t.Errorf("%d pieces were sent: the connection was not lost", n)
	}
	if judgements.Load() < 2 {
		t.Error("the page has not asked for the judgement again")
	}
	s, err := store.Open(places.Store)
	if err != nil {
		t.Fatal(err)
	}
	// holds waits until the operation on the page has ended, and looks at what the store has then.
	holds := func(want ...string) {
		t.Helper()
		b.find("heading", "Progress")
		for end := time.Now().Add(testcluster.Deadline(20 * time.Second)); ; time.Sleep(20 * time.Millisecond) {
			if over, err := evaluate[bool](b, `document.readyState === "complete" && !document.querySelector('form[action$="/stop"]')`); err == nil && over {
				break
			}
			if time.Now().After(end) {
				t.Fatal("the operation does not end")
			}
		}
		entries, err := s.Entries()
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, e := range entries {
			ids = append(ids, e.ID())
		}
		if !slices.Equal(ids, want) {
			t.Errorf("the store has %q, want %q", ids, want)
		}
	}
	b.press("button", "Import")
	holds("demo-1.0.0")
	b.do(chromedp.Navigate(c.Origin + "/solutions"))
	b.press("link", "demo")
	b.press("link", "Unimport 1.0.0")
	b.fill("Type demo-1.0.0 to confirm", "demo-1.0.0")
	b.press("button", "Unimport")
	holds()
}
