package console_test

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/solutionctl/solutionctl/deployer/console/page/pagetest"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

// listSizes are the numbers of objects in the lists of pages.
var listSizes = []int{0, 1, 60}

// design lists what is wrong with the layout of a page, as far as a machine can judge it.
//
//go:embed testdata/design.js
var design string

// TestDesign judges the layout of each page with lists, with no, one and sixty objects in them, in a phone, a laptop and a large window: everything
// is in the window, readable and large enough to press; an empty page leads on; at most one action stands out. Colours are judged by
// TestAccessibility, and here only in 'make check'. DESIGN_PICTURES names a directory for pictures of all of them.
func TestDesign(t *testing.T) {
	pictures := os.Getenv("DESIGN_PICTURES")
	all := unseen.open(t)
	if pictures != "" {
		all = open(t)
	}
	all.withoutTree()
	origin := serveSamples(t)
	for _, n := range listSizes {
		named := pagetest.Sized(n)
		for _, name := range slices.Sorted(maps.Keys(named)) {
			t.Run(fmt.Sprintf("%d/%s", n, name), func(t *testing.T) {
				b := &browser{T: t, ctx: all.ctx}
				t.Cleanup(b.keep)
				b.do(chromedp.Navigate(fmt.Sprintf("%s/%d/%s", origin, n, name)))
				b.isSample(named[name])
				for _, width := range []int64{320, 1280, 1920} {
					if testing.Short() && (n == 1 || width == 1280 || n == 0 && width > 320) {
						continue // 'make check' has all: less is in those pages, and what is between fits if the extremes do
					}
					b.do(chromedp.EmulateViewport(width, 900))
					found := b.faults("")
					if width == 320 || !testing.Short() { // a phone finds what is wider than its place
						found = append(found, b.overflowing()...)
					}
					for _, what := range found {
						t.Errorf("%d pixels: %s", width, what)
					}
					if pictures != "" {
						b.photograph(filepath.Join(pictures, fmt.Sprintf("%d-%s-%d", n, name, width)))
					}
				}
				if !testing.Short() {
					b.judgeColours()
				}
			})
		}
	}
}

// faults asks the page that is open, after a script has spoilt it.
func (b *browser) faults(fault string) []string {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, testcluster.Deadline(time.Minute))
	defer cancel()
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](fault+";"+design))
	if err != nil {
		b.Fatal(err)
	}
	return found
}

// judgeColours judges the contrasts of the page that is open, light and dark.
func (b *browser) judgeColours() {
	b.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](axe))
	for _, name := range []string{"light", "dark"} {
		b.look(scheme(name))
		for _, v := range b.judge(colours) {
			for _, n := range v.Nodes {
				b.Errorf("%s: %s: %v: %s", name, v.Help, n.Target, n.FailureSummary)
			}
		}
	}
	b.look()
}

// TestDesignJudge: each rule of the design finds its fault.
func TestDesignJudge(t *testing.T) {
	b := unseen.open(t)
	origin := serveSamples(t)
	for name, test := range map[string]struct{ fault, want string }{
		"outside":   {`main.querySelector("h1").style.cssText = "position: absolute; left: 1900px; white-space: nowrap"`, "outside the window"},
		"overlap":   {`main.querySelector(".lead, p").style.cssText = "position: relative; top: -30px"`, "overlaps"},
		"small":     {`document.querySelector(".button").style.cssText = "min-height: 0; height: 12px; padding: 0"`, "too small to press"},
		"cut":       {`main.querySelector("h1").style.cssText = "width: 3rem; overflow: hidden; white-space: nowrap; text-overflow: ellipsis"`, "is cut off"},
		"long line": {`{ const p = main.querySelector("section p.help"); p.textContent = "word ".repeat(200); p.style.maxWidth = "none"; }`, "characters in a line"},
		"loud":      {`for (const a of document.querySelectorAll(".button")) a.classList.add("primary")`, "primary actions"},
	} {
		t.Run(name, func(t *testing.T) {
			b.do(chromedp.EmulateViewport(1920, 900), chromedp.Navigate(origin+"/60/environment"))
			if found := b.faults(""); len(found) > 0 {
				t.Fatalf("before: %q", found)
			}
			if found := fmt.Sprint(b.faults(test.fault)); !strings.Contains(found, test.want) {
				t.Errorf("not found: %s, in %s", test.want, found)
			}
		})
	}
}

// photograph keeps pictures of the page that is open, whole, light and dark.
func (b *browser) photograph(file string) {
	b.Helper()
	for _, look := range []string{"light", "dark"} {
		b.look(scheme(look))
		ctx, cancel := context.WithTimeout(b.ctx, testcluster.Deadline(20*time.Second))
		picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(60))
		cancel()
		if err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(file+"-"+look+".jpg", picture, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	b.look()
}
