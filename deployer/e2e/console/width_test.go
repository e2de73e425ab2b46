package console_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/solutionctl/solutionctl/deployer/console/page/pagetest"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

// hostile makes of a text one that wants to be code, and ends with a word of two hundred wide letters.
func hostile(text string) string {
	return text + `<img src=x onerror=alert(1)>` + strings.Repeat("W", 200)
}

// overflowing lists what is wider than its place, or is cut off there: what scrolls by itself is meant to.
const overflowing = `(() => {
	const wide = [], root = document.documentElement;
	if (root.scrollWidth > root.clientWidth) wide.push("the page: " + root.scrollWidth + " in " + root.clientWidth);
	const aside = e => e && (e.matches("select, svg") || getComputedStyle(e).clipPath !== "none" || getComputedStyle(e).overflowX === "auto" || aside(e.parentElement));
	for (const e of document.body.querySelectorAll("*")) {
		if (e.scrollWidth <= e.clientWidth + 1 || !e.checkVisibility() || getComputedStyle(e).display === "inline" || e.matches("input, textarea, .skip") || aside(e)) continue;
		wide.push(e.tagName + "." + e.className + " " + e.scrollWidth + " in " + e.clientWidth + ": " + e.textContent.trim().slice(0, 40));
	}
	return wide;
})()`

// overflowing asks the page that is open. It may have thousands of elements.
func (b *browser) overflowing() []string {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, testcluster.Deadline(time.Minute))
	defer cancel()
	wide, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](overflowing))
	if err != nil {
		b.Fatal(err)
	}
	return wide
}

// TestWidths: nothing is wider than its place in a window of any width, however long the names are, and none of them becomes more than text. 320
// pixels are also what 1280 have at a zoom of 400 %.
func TestWidths(t *testing.T) {
	all := unseen.open(t)
	all.watchPolicy()
	all.withoutTree()
	origin := serveSamples(t)
	named := pagetest.Large(pagetest.Honest)
	for name, view := range pagetest.Samples(hostile) {
		named["hostile/"+name] = view
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		t.Run(name, func(t *testing.T) {
			b := &browser{T: t, ctx: all.ctx}
			t.Cleanup(b.keep)
			b.do(chromedp.Navigate(fmt.Sprintf("%s/%s", origin, name)))
			b.isSample(named[name])
			widths := []int64{320, 768, 1280, 2560, 3840}
			if testing.Short() {
				widths = []int64{320, 768, 1280} // wider windows only have more room; 'make check' has all
				if strings.HasPrefix(name, "large-") {
					widths = []int64{320, 1280}
				}
			}
			for _, width := range widths {
				b.do(chromedp.EmulateViewport(width, 900))
				for _, what := range b.overflowing() {
					t.Errorf("%d pixels: %s", width, what)
				}
				if wrong, err := evaluate[[]string](b, `[...violations, ...[...document.images].map(e => e.outerHTML)]`); err != nil || len(wrong) > 0 {
					t.Errorf("%d pixels: a name is more than text: %q, %v", width, wrong, err)
				}
			}
		})
	}
}
