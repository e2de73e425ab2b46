package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
)

// writer is the log of every container: its last lines, and those that a test adds while it is followed.
type writer struct{ more chan string }

func (w writer) answer(rw http.ResponseWriter, r *http.Request) bool {
	if !strings.HasSuffix(r.URL.Path, "/log") {
		return false
	}
	_, _ = fmt.Fprintln(rw, "2026-11-27T10:00:00Z started")
	if r.URL.Query().Get("follow") != "true" {
		return true
	}
	for {
		_ = http.NewResponseController(rw).Flush()
		select {
		case text := <-w.more:
			_, _ = fmt.Fprintln(rw, text)
		case <-r.Context().Done():
			return true
		}
	}
}

// TestLogs follows the log of a container on a cluster in memory. A flood of lines that want to be code neither stops the page nor becomes
// more than text, and the reader who has scrolled up is not disturbed.
func TestLogs(t *testing.T) {
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{})
	operator := bed.Server.Object("Deployment", deployertest.Environment, "shop-operator")
	bed.Server.Put(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: shop-operator-x, namespace: site, uid: pod-x,
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: shop-operator, uid: %q, controller: true}]},
spec: {nodeName: node-1, containers: [{name: manager}]}, status: {containerStatuses: [{name: manager, ready: false, state: {running: {}}}]}}`, operator.GetUID()))
	log := writer{make(chan string)}
	bed.Server.Answer = log.answer
	b := open(t)
	b.watchPolicy()
	c := serve(t, bed.Server.Kubeconfig(t))
	b.follows(c)
	b.goes(c.Origin + "/environments/site")
	b.press("link", "Objects and pods")
	b.press("link", "Logs manager")
	b.find("heading", "Logs of shop in site")
	const text = `document.getElementById("log").textContent`
	log.more <- "2026-11-27T10:00:01Z <img src=x onerror=alert(1)>"
	b.until("a new line appears", text+`.endsWith("started\n11-27 10:00:01 <img src=x onerror=alert(1)>\n")`)
	for i := range 30 {
		lines := strings.Repeat("2026-11-27T10:00:02Z <script>alert(1)</script>"+strings.Repeat("W", 500)+"\n", 1000)
		log.more <- lines + fmt.Sprintf("2026-11-27T10:00:02Z flood %d", i)
	}
	log.more <- "2026-11-27T10:00:03Z after the flood"
	b.until("the last line appears", text+`.endsWith("10:00:03 after the flood\n")`)
	b.until("lines are left out", `/… \d+ lines left out/.test(`+text+`) || `+text+`.length < 310000`)
	b.until("the reader is at the end", `(log => log.scrollTop + log.clientHeight > log.scrollHeight - 5)(document.getElementById("log"))`)
	b.until("nothing is more than text", `document.images.length === 0 && violations.length === 0 && `+text+`.length < 500000`)

	answerOf[bool](b, `(document.getElementById("log").scrollTop = 0, true)`)
	log.more <- "2026-11-27T10:00:04Z one more"
	b.until("the reader stays above", text+`.includes("one more") && document.getElementById("log").scrollTop === 0`)

	b.fill("Filter (optional)", "START")
	b.press("button", "Show")
	b.arrives("q=START")
	b.until("only lines with the word are left", text+` === "11-27 10:00:00 started\n"`)
	b.press("link", "Pause")
	b.arrives("follow=no")
	b.find("link", "Follow")
	b.until("nothing is followed", `document.getElementById("stale").dataset.feed === undefined`)
}
