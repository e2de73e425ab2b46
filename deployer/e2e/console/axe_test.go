package console_test

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/page/pagetest"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

var update = flag.Bool("update", false, "take the pictures of the guide again")

// axe judges accessibility: https://github.com/dequelabs/axe-core, under the Mozilla Public License (testdata/axe.LICENSE).
//
//go:embed testdata/axe.min.js
var axe string

// serveSamples serves each page of package pagetest under its name: the honest ones at /, hostile ones below /hostile/, those with n objects
// in each list below /n/.
func serveSamples(t *testing.T) (origin string) {
	t.Helper()
	pages, err := page.New("")
	if err != nil {
		t.Fatal(err)
	}
	named := pagetest.Samples(pagetest.Honest)
	maps.Copy(named, pagetest.Large(pagetest.Honest))
	for name, view := range pagetest.Samples(hostile) {
		named["hostile/"+name] = view
	}
	for _, n := range listSizes {
		for name, view := range pagetest.Sized(n) {
			named[fmt.Sprintf("%d/%s", n, name)] = view
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /static/", pages.Static())
	mux.HandleFunc("GET /{name...}", func(w http.ResponseWriter, r *http.Request) {
		view, found := named[r.PathValue("name")]
		if !found {
			w.WriteHeader(http.StatusNoContent) // no stream, for good
			return
		}
		w.Header().Set("Content-Security-Policy", page.ContentSecurityPolicy)
		if err := pages.Respond(w, r, http.StatusOK, view); err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// look makes the browser one that prefers something. Nothing moves: a colour that is on its way to another one has neither's contrast.
func (b *browser) look(features ...*emulation.MediaFeature) {
	b.Helper()
	features = append(slices.Clone(features), &emulation.MediaFeature{Name: "prefers-reduced-motion", Value: "reduce"})
	ctx, cancel := context.WithTimeout(b.ctx, testcluster.Deadline(20*time.Second))
	defer cancel()
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		b.Fatal(err)
	}
}

// violation is a problem that axe reports for a page.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct {
		Target         []any
		FailureSummary string
	}
}

// The rules of axe that a look is judged by.
const (
	allRules      = `{runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}`
	colours       = `{preload: false, runOnly: {type: "rule", values: ["color-contrast"]}}` // which needs no style sheets from the server
	allButColours = `{runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], rules: {"color-contrast": {enabled: false}}}`
)

// judge asks axe about the page that is open.
func (b *browser) judge(rules string) []violation {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, testcluster.Deadline(time.Minute))
	defer cancel()
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]violation](`(async () => (await axe.run(document, {resultTypes: ["violations"],
		...`+rules+`})).violations)()`, chromedp.EvalAwaitPromise))
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
	all := unseen.open(t)
	all.withoutTree()
	origin := serveSamples(t)
	samples := pagetest.Samples(pagetest.Honest)
	samples["large-values"] = pagetest.Large(pagetest.Honest)["large-values"] // has what no small form has
	type look struct {
		name     string
		features []*emulation.MediaFeature
		rules    string
	}
	looks := []look{
		{"light", []*emulation.MediaFeature{scheme("light")}, allRules},
		{"dark", []*emulation.MediaFeature{scheme("dark")}, colours}, // the rest is as in light
	}
	if !testing.Short() { // 'make check' also looks at the colours of the user, whose contrast axe does not know
		looks = append(looks, look{"forced colours", []*emulation.MediaFeature{scheme("dark"), {Name: "forced-colors", Value: "active"}}, allButColours})
	}
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		t.Run(name, func(t *testing.T) {
			b := &browser{T: t, ctx: all.ctx}
			t.Cleanup(b.keep)
			for _, width := range []int64{1280, 320} {
				if testing.Short() && width < 1280 {
					continue // 'make check' looks at narrow windows, too
				}
				b.do(chromedp.EmulateViewport(width, 900), chromedp.Navigate(origin+"/"+name))
				b.isSample(samples[name])
				b.do(chromedp.Evaluate[chromedp.Void](axe))
				for _, look := range looks {
					b.look(look.features...)
					for _, v := range b.judge(look.rules) {
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

// isSample fails unless the open page is the sample: axe reports no problem for most error pages.
func (b *browser) isSample(view page.View) {
	b.Helper()
	headings, err := evaluate[[]string](b, `[...document.querySelectorAll("h1")].map(e => e.textContent)`)
	if err != nil || len(headings) != 1 || headings[0] != view.Title() {
		b.Fatalf("not the page: %q, %v", headings, err)
	}
}

// TestJudge: what everybody relies on finds something.
func TestJudge(t *testing.T) {
	b := unseen.open(t)
	origin := serveSamples(t)
	b.do(chromedp.Navigate(origin+"/login"), chromedp.Evaluate[chromedp.Void](axe),
		chromedp.Evaluate[chromedp.Void](`document.querySelector("h1").style.color = "#999"; document.querySelectorAll("label").forEach(e => e.remove())`))
	var ids []string
	for _, v := range b.judge(allRules) {
		ids = append(ids, v.ID)
	}
	if found := fmt.Sprint(ids); !strings.Contains(found, "label") {
		t.Errorf("a field without a label is no violation, only %s", found)
	}
}

// TestPictures takes the pictures of the guide with -update, and checks that they are there.
func TestPictures(t *testing.T) {
	const guide = "../../../docs/guides/console"
	names := []string{"overview-start", "overview", "environment", "plan", "progress", "progress-done"}
	var b *browser
	if *update {
		b = open(t)
		b.do(chromedp.EmulateViewport(1280, 800))
		noon := fmt.Sprintf("Date.now = () => %d", pagetest.Noon.UnixMilli())
		if _, err := chromedp.Call(b.ctx, cdpage.AddScriptToEvaluateOnNewDocument, cdpage.AddScriptToEvaluateOnNewDocumentParams{Source: noon}); err != nil {
			t.Fatal(err)
		}
	}
	origin := serveSamples(t)
	for _, name := range names {
		for _, look := range []string{"light", "dark"} {
			file := filepath.Join(guide, name+"-"+look+".webp")
			if *update {
				b.do(chromedp.Navigate(origin + "/" + name))
				b.look(scheme(look))
				ctx, cancel := context.WithTimeout(b.ctx, testcluster.Deadline(20*time.Second))
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
