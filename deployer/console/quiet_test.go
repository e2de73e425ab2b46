package console_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorization "k8s.io/api/authorization/v1"

	"github.com/solutionctl/solutionctl/deployer/console"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
)

// haste is how much faster the clock of a console goes in tests about minutes in which nothing happens.
const haste = 40

// hasten makes the clock of a console a fast one.
func hasten(o *console.Options) {
	began := time.Now()
	o.Now = func() time.Time { return began.Add(haste * time.Since(began)) }
	o.After = func(d time.Duration) <-chan time.Time { return time.After(d / haste) }
}

// requests are the requests that an API server got, as "GET /api/v1/pods". A watch has the time for which it is asked to stay open.
type requests struct {
	mu   sync.Mutex
	list []string
}

func (q *requests) add(r *http.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, r.Method+" "+r.URL.String())
}

func (q *requests) take() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer func() { q.list = nil }()
	return q.list
}

// isIdle reports whether a request belongs to a console that only checks whether anything has changed.
func isIdle(request string) bool {
	return strings.Contains(request, "GET /version") || strings.Contains(request, "rulesreviews") || strings.Contains(request, "accessreviews")
}

// settled waits until a console does not read the cluster for more than a minute, and returns the earlier requests.
func (q *requests) settled(t *testing.T) (before []string) {
	t.Helper()
	for range 20 {
		time.Sleep(90 * time.Second / haste)
		last := q.take()
		if before = append(before, last...); !slices.ContainsFunc(last, func(r string) bool { return strings.Contains(r, "/deployments") }) {
			return before
		}
	}
	t.Fatalf("the console reads the cluster all the time:\n%s", strings.Join(before, "\n"))
	return nil
}

// broken has what keeps a cluster from being ready for long: a container that ends again and again, and the lock of a process that has died.
func broken(b *deployertest.Bed) {
	b.Deleted("Deployment", deployertest.Environment, "shop-operator")
	b.Server.Put(b.TB, `{apiVersion: v1, kind: Pod, metadata: {name: shop-operator-1, namespace: site, labels: {app: shop-operator}},
spec: {containers: [{name: main, image: x}]}, status: {phase: Running, containerStatuses: [
  {name: main, restartCount: 7, state: {waiting: {reason: CrashLoopBackOff, message: back-off}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}}`)
	b.Server.Put(b.TB, `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: env-site, namespace: solutionctl-system},
spec: {holderIdentity: joe@gone, leaseDurationSeconds: 30, acquireTime: "2026-01-01T00:00:00.000000Z", renewTime: "2026-01-01T00:00:00.000000Z"}}`)
}

// TestQuiet counts the requests of open pages while nothing happens, in a cluster where everything is ready and in one where something is
// broken: those of minutes between two reads, and the shares of a read and of the watches that are opened again.
func TestQuiet(t *testing.T) {
	visited := "/events?environment=" + deployertest.Environment
	for name, test := range map[string]struct {
		may     func(b *deployertest.Bed)
		streams []string
		read    float64  // requests of one read, every 20 minutes
		also    []string // what is read while nothing happens: to find a change that no watch reports to this user
	}{
		"administrator of a broken application": {broken, []string{"/events", visited}, 44, nil},
		"administrator":                         {func(*deployertest.Bed) {}, []string{"/events", "/events", "/events", visited}, 44, nil},
		"operator": {func(b *deployertest.Bed) {
			b.Server.May = func(a authorization.ResourceAttributes) bool { return a.Verb != "*" }
		}, []string{"/events", "/events"}, 22, nil},
		"visitor": {func(b *deployertest.Bed) { b.Only(deployertest.Environment, nil) }, []string{visited, visited}, 55, []string{
			"/api/v1/namespaces/" + deployertest.Environment, "/monitoring", "/api", "/apis", "/customresourcedefinitions",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits
			bed := deployertest.New(t)
			bed.Added("shop", "1.0.0", deployertest.Content{})
			b := startOn(t, bed.Server, hasten)
			test.may(bed)
			var asked requests
			permit := b.api.Answer
			b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool { asked.add(r); return permit(w, r) }
			for _, stream := range test.streams {
				c := b.in(t)
				c.get("/")
				c.followNames(stream)("changed")
			}
			before := asked.settled(t)
			var minutes float64
			idle, others := []string(nil), []string{""}
			for tries := 0; len(others) > 0 && tries < 5; tries++ { // a busy machine makes the API server look absent, and then the cluster is read again
				started := time.Now()
				time.Sleep(10 * time.Minute / haste) // each request that is repeated is repeated within it
				idle, minutes = asked.take(), time.Since(started).Minutes()*haste
				others = slices.DeleteFunc(slices.Clone(idle), func(r string) bool {
					path, _, _ := strings.Cut(r, "?")
					return isIdle(r) || slices.ContainsFunc(test.also, func(end string) bool { return strings.HasSuffix(path, end) })
				})
			}
			if len(others) > 0 {
				t.Errorf("while nothing happens:\n%s", strings.Join(others, "\n"))
			}
			watches := slices.DeleteFunc(slices.Clone(before), func(r string) bool { return !strings.Contains(r, "timeoutSeconds=3000") })
			all := float64(len(idle))/minutes + float64(len(watches))/50 + test.read/20
			t.Logf("%.1f requests a minute, of which %.1f are for checks; %d watches", all, float64(len(idle))/minutes, len(watches))
			if all > 10 {
				t.Errorf("more than 10 requests a minute:\n%s\n%s", strings.Join(idle, "\n"), strings.Join(watches, "\n"))
			}
		})
	}
}

// TestQuietEnds: in a cluster that is read every 20 minutes, a change is shown at once, and a permission that is withdrawn within a minute.
func TestQuietEnds(t *testing.T) {
	t.Parallel() // it waits
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{})
	b := startOn(t, bed.Server, hasten)
	var mu sync.Mutex
	withdrawn := false
	bed.Server.May = func(a authorization.ResourceAttributes) bool {
		mu.Lock()
		defer mu.Unlock()
		return a.Verb != "*" && (!withdrawn || a.Resource != "namespaces")
	}
	var asked requests
	b.api.Answer = func(_ http.ResponseWriter, r *http.Request) bool { asked.add(r); return false }
	c := b.in(t)
	c.get("/")
	next := c.followNames("/events")
	next("changed")
	asked.settled(t)
	lists := func() int {
		return len(slices.DeleteFunc(asked.take(), func(r string) bool {
			return !strings.HasPrefix(r, "GET /api/v1/namespaces?") || strings.Contains(r, "watch")
		}))
	}
	mu.Lock()
	withdrawn = true
	mu.Unlock()
	for end := time.Now().Add(12 * time.Minute / haste); lists() == 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not read again after a permission was withdrawn")
		}
	}
	since := time.Now()
	bed.Namespace("more", "more")
	next("changed")
	t.Logf("a change is shown after %s", time.Since(since))
}
