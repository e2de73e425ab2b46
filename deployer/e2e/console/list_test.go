package console_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
)

// TestList: a list keeps its search when it is sorted, and both when the cluster changes.
func TestList(t *testing.T) {
	bed := deployertest.New(t)
	for _, name := range []string{"alpha", "beta", "other"} {
		bed.Namespace(name, name)
	}
	b := open(t)
	c := serve(t, bed.Server.Kubeconfig(t))
	b.follows(c)
	b.do(chromedp.Navigate(c.Origin + "/environments"))
	b.find("link", "other")
	b.press("searchbox", "Filter environments")
	b.do(chromedp.KeyEvent("a"))
	b.until("the search is in the address", `location.search === "?q=a"`)
	const shown = `[...document.querySelectorAll("#matrix tbody tr:not([hidden]) th a")].map(a => a.textContent).join()`
	b.press("link", "Environment")
	b.until("the last environment comes first", `/sort=-environment/.test(location.search) && /q=a/.test(location.search) && `+shown+` === "beta,alpha"`)
	bed.Namespace("gamma", "gamma")
	b.until("a new one is at its place", shown+` === "gamma,beta,alpha"`)
	b.press("link", "Clear filters")
	b.until("all are shown", `location.search === "?sort=-environment" && `+shown+`.endsWith("other,gamma,beta,alpha")`)
}
