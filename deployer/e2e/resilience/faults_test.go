package resilience_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/e2e/proxy"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/schema/report"
)

// mayFail are the codes with which a verb may end when the server or the network fails for long. Running it again finishes
// the work.
var mayFail = map[report.Code]bool{report.Unavailable: true, report.Interrupted: true}

// livesAs leads the life of a Solution and compares the cluster after each verb with that of a clean life. What fails for a
// reason that may pass is run again.
func (b *bed) livesAs(clean []string) {
	b.Helper()
	for i, v := range life {
		for tries := 1; ; tries++ {
			o := b.run(v)
			if o.Status == 0 {
				break
			}
			if !mayFail[o.Code] || tries == 10 {
				b.Fatalf("%s, try %d: exit status %d\n%s", v, tries, o.Status, o.Text)
			}
			b.Logf("%s, try %d: %s", v, tries, o.Text)
		}
		if diff := cmp.Diff(clean[i], b.dump()); diff != "" {
			b.Errorf("after %s: -clean +this\n%s", v, diff)
		}
	}
}

var clean struct {
	sync.Mutex
	dumps []string
}

// cleanLife returns the dump after each verb of an undisturbed life, which is run once.
func cleanLife(t *testing.T) []string {
	t.Helper()
	clean.Lock()
	defer clean.Unlock()
	if clean.dumps != nil {
		return clean.dumps
	}
	b := newBed(t)
	var dumps []string
	for _, v := range life {
		b.must(v)
		dumps = append(dumps, b.dump())
	}
	clean.dumps = dumps
	return dumps
}

// TestFaults leads lives behind a server that throttles and fails, and a network that loses what it carries.
func TestFaults(t *testing.T) {
	t.Parallel()
	clean := cleanLife(t)
	throttled := proxy.Answer(http.StatusTooManyRequests, "Retry-After", "1")
	errors := proxy.OneOf(proxy.Answer(http.StatusInternalServerError), proxy.Answer(http.StatusServiceUnavailable),
		proxy.Answer(http.StatusGatewayTimeout), proxy.Answer(http.StatusBadGateway))
	for _, test := range []struct {
		name  string
		fault func(p *proxy.Proxy) proxy.Fault
	}{
		{"throttled", func(*proxy.Proxy) proxy.Fault { return proxy.Sometimes(15, 1, throttled) }},
		{"server errors", func(*proxy.Proxy) proxy.Fault { return proxy.Sometimes(8, 2, errors) }},
		{"requests lost", func(*proxy.Proxy) proxy.Fault { return proxy.Sometimes(8, 3, proxy.Cut) }},
		{"answers lost", func(*proxy.Proxy) proxy.Fault { return proxy.Sometimes(6, 4, proxy.Lose) }},
		{"answers to changes lost", func(*proxy.Proxy) proxy.Fault {
			return proxy.When(proxy.IsWrite, proxy.Sometimes(2, 5, proxy.Lose))
		}},
		{"connections reset", func(p *proxy.Proxy) proxy.Fault { return proxy.Sometimes(20, 6, proxy.Reset(p)) }},
		{"watches break off", func(*proxy.Proxy) proxy.Fault { return proxy.BreakWatch(1) }},
		{"watches end, no bookmarks", func(*proxy.Proxy) proxy.Fault { return proxy.ShortWatch }},
		{"history forgotten", func(*proxy.Proxy) proxy.Fault {
			return proxy.When(proxy.IsWatch, proxy.Sometimes(2, 7, proxy.OneOf(proxy.ExpiredWatch, proxy.ExpiringWatch)))
		}},
		{"everything at once", func(p *proxy.Proxy) proxy.Fault {
			return proxy.Sometimes(8, 8, proxy.OneOf(throttled, errors, proxy.Lose, proxy.BreakWatch(1), proxy.Cut, proxy.Reset(p), proxy.ExpiredWatch))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.name != "everything at once" { // which loses answers, too
				testcluster.Long(t, "everything at once")
			}
			b := newBed(t)
			p := proxy.New(t, b.Server)
			p.Set(test.fault(p))
			b.Kubeconfig = p.Kubeconfig
			b.livesAs(clean)
		})
	}
}

// TestCompaction makes etcd drop its history while watches and lists are open.
func TestCompaction(t *testing.T) {
	t.Parallel()
	testcluster.Long(t, "TestFaults/everything_at_once")
	clean := cleanLife(t)
	server := testcluster.StartFor(t, options)
	b := newBedOn(t, server)
	p := proxy.New(t, server)
	b.Kubeconfig = p.Kubeconfig
	forget := proxy.Do(func() {
		if err := server.Compact(t.Context()); err != nil {
			t.Error(err)
		}
	})
	p.Set(proxy.When(proxy.IsWatch, proxy.OneOf(forget, proxy.ShortWatch)), proxy.When(proxy.IsWrite, proxy.Sometimes(3, 9, forget)))
	b.livesAs(clean)
}
