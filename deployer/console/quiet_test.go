package console_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
)

// TestQuiet counts the requests of open pages in a cluster where everything is ready and nothing happens, in the second minute. In short mode
// TestRevokedMeanwhile and TestHangingServer have the events that end such a minute.
func TestQuiet(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes two minutes")
	}
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{})
	b := startOn(t, bed.Server, nil)
	var asked atomic.Int64
	b.api.Answer = func(http.ResponseWriter, *http.Request) bool { asked.Add(1); return false }
	for range 3 {
		c := b.in(t)
		c.get("/")
		c.followNames("/events")("changed")
	}
	time.Sleep(time.Minute)
	before := asked.Load()
	time.Sleep(time.Minute)
	if n := asked.Load() - before; n > 50 {
		t.Errorf("%d requests in a minute without any change", n)
	} else {
		t.Logf("%d requests", n)
	}
}
