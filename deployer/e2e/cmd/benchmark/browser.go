//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// loaded has the measurements of a browser about a page.
type loaded struct {
	Byte, Paint   float64
	Content       float64 // the first frame that can have the first row
	Whole         float64 // the first frame that can have the whole page, with health
	End, Shift    float64
	Bytes, Script float64
	Style         float64
	Requests      int
	Moved         []string // what the largest shift of the layout moved, from where to where
}

const reportLoaded = `new Promise(resolve => {
	const report = () => {
		const all = performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation"));
		const size = end => all.filter(e => new URL(e.name).pathname.endsWith(end)).reduce((sum, e) => sum + e.encodedBodySize, 0);
		const paint = performance.getEntriesByName("first-contentful-paint")[0];
		if (!paint) return setTimeout(report, 50);
		const [page] = performance.getEntriesByType("navigation");
		resolve({Byte: page.responseStart, Content: window.contentAt, Whole: window.wholeAt, End: page.responseEnd, Paint: paint.startTime, Shift: window.layoutShift, Moved: window.moved, Requests: all.filter(e => e.initiatorType !== "other" || e.transferSize > 0).length,
			Bytes: all.reduce((sum, e) => sum + e.transferSize, 0), Script: size(".js"), Style: size(".css")});
	};
	setTimeout(report, 1000); // what moves later counts, too
})`

// load opens the overview in a browser that has nothing of it, on this machine and as over a slow connection with a slow processor.
func (u *consoleUnderTest) load(ctx context.Context) error {
	if _, err := os.Stat(chromium); err != nil {
		row("in a browser", "there is none")
		return nil
	}
	if err := u.loadTimes(ctx, "unwatched"); err != nil {
		return err
	}
	stream, err := u.watch(ctx)
	if err != nil {
		return err
	}
	defer stream.close()
	return u.loadTimes(ctx, "another tab is open")
}

// loadTimes measures how long a browser takes for a page of that many rows, and how much it loads that no user sees.
func (u *consoleUnderTest) loadTimes(ctx context.Context, when string) error {
	for _, slow := range []bool{false, true} {
		var all []loaded
		var contents, wholes []float64
		for range 5 {
			one, err := u.open(ctx, slow)
			if err != nil {
				return err
			}
			all, contents, wholes = append(all, one), append(contents, one.Content), append(wholes, one.Whole)
		}
		slices.SortFunc(all, func(a, b loaded) int { return int(a.Paint - b.Paint) })
		got := all[len(all)/2]
		how := "on this machine"
		if slow {
			how = "at slow 4G with a quarter of the processor"
		} else {
			row("script and styles, compressed", "%.1f KB, %.1f KB", got.Script/1000, got.Style/1000)
			row("first load", "%.1f KB, %d requests", got.Bytes/1000, got.Requests)
		}
		most := slices.MaxFunc(all, func(a, b loaded) int { return cmp.Compare(a.Shift, b.Shift) })
		row("layout shift "+how+", "+when+", at most", "%.3f %s", most.Shift, strings.Join(most.Moved, "; "))
		row("first byte, first paint, first row, health, last byte "+how+", "+when, "%.2f s, %.2f s, %.2f s, %.2f s, %.2f s",
			got.Byte/1000, got.Paint/1000, median(contents)/1000, median(wholes)/1000, got.End/1000)
	}
	return nil
}

func (u *consoleUnderTest) open(ctx context.Context, slow bool) (got loaded, err error) {
	ctx, end := context.WithTimeout(ctx, time.Minute)
	defer end()
	ctx, cancel := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox)...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if err = chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900)); err != nil {
		return got, err
	}
	if slow {
		// The numbers by which browsers' own tools slow a page down as on a slow 4G.
		conditions := &network.Conditions{Latency: 150, DownloadThroughput: 1.6e6 / 8, UploadThroughput: 750e3 / 8}
		if _, err = chromedp.Call(ctx, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: []*network.Conditions{conditions}}); err != nil {
			return got, err
		}
		if _, err = chromedp.Call(ctx, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 4}); err != nil {
			return got, err
		}
	}
	at, err := url.Parse(u.origin)
	if err != nil {
		return got, err
	}
	for _, cookie := range u.client.Jar.Cookies(at) {
		secure := strings.HasPrefix(cookie.Name, "__")
		if _, err = chromedp.Call(ctx, network.SetCookie, network.SetCookieParams{Name: cookie.Name, Value: cookie.Value, URL: u.origin, Path: "/", Secure: &secure}); err != nil {
			return got, err
		}
	}
	const observe = `window.layoutShift = 0;
window.moved = [];
let largest = 0;
const place = r => r.x + "," + r.y + " " + r.width + "x" + r.height;
new PerformanceObserver(list => {
	for (const e of list.getEntries()) {
		window.layoutShift += e.value;
		if (e.value <= largest) continue;
		largest = e.value;
		window.moved = e.sources.map(s => (s.node ? s.node.nodeName + "." + s.node.className : "removed") + " from " + place(s.previousRect) + " to " + place(s.currentRect));
	}
}).observe({type: "layout-shift", buffered: true});

const note = (name, selector) => {
	const parts = new MutationObserver(() => {
		if (!document.querySelector(selector)) return;
		parts.disconnect();
		requestAnimationFrame(() => { window[name] = performance.now(); });
	});
	parts.observe(document, {childList: true, subtree: true});
};
note("contentAt", 'a[href^="/environments/env-"]');
note("wholeAt", "footer");`
	if _, err = chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: observe}); err != nil {
		return got, err
	}
	if err = chromedp.Do(ctx, chromedp.Navigate(u.origin+"/")); err != nil {
		return got, err
	}
	got, err = chromedp.Run(ctx, chromedp.Evaluate[loaded](reportLoaded, chromedp.EvalAwaitPromise))
	if err == nil && (got.Script == 0 || got.Style == 0 || got.Content == 0) {
		err = errors.New("the browser shows another page")
	}
	return got, err
}
