package console_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/schema"
)

// TestNamedCluster: every page has the recorded name of the cluster on its colour, and in the title of the tab, as text.
func TestNamedCluster(t *testing.T) {
	bed := deployertest.New(t)
	if _, err := bed.NameCluster(t.Context(), "Berlin <b>", "red"); err != nil {
		t.Fatal(err)
	}
	c := startOn(t, bed.Server, nil).in(t)
	for _, path := range []string{"/", "/environments/" + deployertest.Environment, "/settings", "/nothing"} {
		a := c.get(path)
		for _, text := range []string{`class="named n-red"`, "<bdi>Berlin &lt;b&gt;</bdi>", "· Berlin &lt;b&gt; · solutionctl</title>"} {
			if !strings.Contains(a.body, text) {
				t.Errorf("%s: %d, nothing of %q\n%s", path, a.StatusCode, text, a.body)
			}
		}
	}
}

// TestFrameAsksOnce: a frame that is sent early asks for the name of the cluster, also when there is none, only before that was read.
func TestFrameAsksOnce(t *testing.T) {
	var asked atomic.Int64
	b := startOn(t, deployertest.New(t).Server, nil)
	b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		switch r.URL.Path {
		case "/api/v1/namespaces":
			time.Sleep(200 * time.Millisecond) // so frames are early
		case "/api/v1/namespaces/solutionctl-system/configmaps/clustername":
			asked.Add(1)
		}
		return b.authenticate(w, r)
	}
	c := b.in(t)
	for range 3 {
		b.clock.advance(time.Hour) // each page reads the cluster
		c.get("/")
	}
	if n := asked.Load(); n > 4 { // each read, and the first frame
		t.Errorf("three pages asked %d times for the name of the cluster", n)
	}
}

// TestStatesPage: each page of a user leads to the meaning of the states.
func TestStatesPage(t *testing.T) {
	c := startOn(t, deployertest.New(t).Server, nil).in(t)
	if a := c.get("/"); !strings.Contains(a.body, `href="/states"`) {
		t.Errorf("no link\n%s", a.body)
	}
	a := c.get("/states")
	for _, s := range schema.States() {
		if a.StatusCode != http.StatusOK || !strings.Contains(a.body, "<span>"+s.Meaning+"</span>") {
			t.Errorf("%d, nothing of %q\n%s", a.StatusCode, s.Meaning, a.body)
		}
	}
}
