package console_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/solutionctl/solutionctl/deployer/console/page"
)

var update = flag.Bool("update", false, "take the pictures of the guide again")

// axe judges accessibility: https://github.com/dequelabs/axe-core, under the Mozilla Public License (testdata/axe.LICENSE).
//
//go:embed testdata/axe.min.js
var axe string

// samples are the pages that package page compares with: a page of each kind.
const samples = "../../console/page/testdata"

// assets are the files that a page refers to: their names have a digest, which the samples leave out.
var assets = regexp.MustCompile(`/static/([a-z]+)\.([0-9a-f]{12}\.)?([a-z]+)`)

// serveSamples serves each sample under its name.
func serveSamples(t *testing.T) (origin string) {
	t.Helper()
	pages, err := page.New("")
	if err != nil {
		t.Fatal(err)
	}
	any := httptest.NewRecorder()
	if err := pages.Render(any, page.View{Frame: page.Frame{Now: time.Now()}, Content: &page.Login{}}); err != nil {
		t.Fatal(err)
	}
	named := map[string]string{}
	for _, found := range assets.FindAllStringSubmatch(any.Body.String(), -1) {
		named[found[1]+"."+found[3]] = found[0]
	}
	mux := http.NewServeMux()
	mux.Handle("GET /static/", pages.Static())
	mux.HandleFunc("GET /{name}", func(w http.ResponseWriter, r *http.Request) {
		text, err := os.ReadFile(filepath.Join(samples, r.PathValue("name")+".html"))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", page.ContentSecurityPolicy)
		_, _ = w.Write(assets.ReplaceAllFunc(text, func(path []byte) []byte {
			found := assets.FindSubmatch(path)
			return []byte(named[string(found[1])+"."+string(found[3])])
		}))
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }) // no stream, for good
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// look makes the browser one that prefers something. Nothing moves: a colour that is on its way to another one has neither's contrast.
func (b *browser) look(features ...*emulation.MediaFeature) {
	b.Helper()
	features = append(slices.Clone(features), &emulation.MediaFeature{Name: "prefers-reduced-motion", Value: "reduce"})
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		b.Fatal(err)
	}
}

// violation is what axe has against a page.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct {
		Target         []any
		FailureSummary string
	}
}

// judge asks axe about the page that is open, but for some rules.
func (b *browser) judge(without ...string) []violation {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	rules, err := json.Marshal(append([]string{}, without...))
	if err != nil {
		b.Fatal(err)
	}
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]violation](`(async () => (await axe.run(document, {resultTypes: ["violations"],
		runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
		rules: Object.fromEntries(`+string(rules)+`.map(rule => [rule, {enabled: false}]))})).violations)()`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatal(err)
	}
	return found
}

// scheme is light or dark.
func scheme(name string) *emulation.MediaFeature {
	return &emulation.MediaFeature{Name: "prefers-color-scheme", Value: name}
}

// TestAccessibility judges a page of each kind, light, dark and with the colours of the user, wide and narrow.
func TestAccessibility(t *testing.T) {
	all := open(t)
	origin := serveSamples(t)
	files, err := filepath.Glob(filepath.Join(samples, "*.html"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d samples, %v", len(files), err)
	}
	looks := []struct {
		name     string
		features []*emulation.MediaFeature
		without  []string
	}{
		{"light", []*emulation.MediaFeature{scheme("light")}, nil},
		{"dark", []*emulation.MediaFeature{scheme("dark")}, nil},
		// Their contrast is that of the system, which axe does not know.
		{"forced colours", []*emulation.MediaFeature{scheme("dark"), {Name: "forced-colors", Value: "active"}}, []string{"color-contrast"}},
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".html")
		t.Run(name, func(t *testing.T) {
			b := &browser{T: t, ctx: all.ctx}
			t.Cleanup(b.keep)
			for _, width := range []int64{1280, 320} {
				if testing.Short() && width < 1280 {
					continue // 'make check' looks at narrow windows, too
				}
				b.do(chromedp.EmulateViewport(width, 900), chromedp.Navigate(origin+"/"+name))
				b.isSample(file)
				b.do(chromedp.Evaluate[chromedp.Void](axe))
				for _, look := range looks {
					if look.without != nil && width < 1280 { // nothing is laid out in another way for it
						continue
					}
					b.look(look.features...)
					for _, v := range b.judge(look.without...) {
						for _, n := range v.Nodes {
							t.Errorf("%s, %d pixels: %s (%s): %s\n%v: %s", look.name, width, v.ID, v.Impact, v.Help, n.Target, n.FailureSummary)
						}
					}
				}
				b.look()
				if wide, err := evaluate[int64](b, "document.documentElement.scrollWidth"); err != nil || wide > width {
					t.Errorf("the page is %d pixels wide in a window of %d, %v", wide, width, err)
				}
			}
		})
	}
}

// isSample fails unless the page that is open is the sample: axe has nothing against most pages that tell of an error.
func (b *browser) isSample(file string) {
	b.Helper()
	want, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	headings, err := evaluate[[]string](b, `[...document.querySelectorAll("h1")].map(e => e.outerHTML)`)
	if err != nil || len(headings) != 1 || !strings.Contains(string(want), headings[0]) {
		b.Fatalf("not the page: %q, %v", headings, err)
	}
}

// TestJudge: what everybody relies on finds something.
func TestJudge(t *testing.T) {
	b := open(t)
	origin := serveSamples(t)
	b.do(chromedp.Navigate(origin+"/login"), chromedp.Evaluate[chromedp.Void](axe),
		chromedp.Evaluate[chromedp.Void](`document.querySelector("h1").style.color = "#999"; document.querySelectorAll("label").forEach(e => e.remove())`))
	var ids []string
	for _, v := range b.judge() {
		ids = append(ids, v.ID)
	}
	if found := fmt.Sprint(ids); !strings.Contains(found, "label") {
		t.Errorf("a field without a label is no violation, only %s", found)
	}
}

// TestPictures takes the pictures of the guide with -update, and checks that they are there.
func TestPictures(t *testing.T) {
	const guide = "../../../docs/guides/console"
	names := []string{"overview", "environment", "plan", "progress"}
	var b *browser
	if *update {
		b = open(t)
		b.do(chromedp.EmulateViewport(1280, 800))
	}
	origin := serveSamples(t)
	for _, name := range names {
		for _, look := range []string{"light", "dark"} {
			file := filepath.Join(guide, name+"-"+look+".webp")
			if *update {
				b.do(chromedp.Navigate(origin + "/" + name))
				b.look(scheme(look))
				ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
				quality := int64(80)
				picture, err := chromedp.Call(ctx, cdpage.CaptureScreenshot, cdpage.CaptureScreenshotParams{Format: "webp", Quality: &quality})
				cancel()
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, picture.Data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if info, err := os.Stat(file); err != nil || info.Size() > 100<<10 {
				t.Errorf("%s: %v, %v", file, info, err)
			}
		}
	}
}
