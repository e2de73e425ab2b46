package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	between "github.com/solutionctl/solutionctl/deployer/e2e/proxy"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/schema/report"
)

func lockNames(t *testing.T, from, to int) []string {
	t.Helper()
	var names []string
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprintf("%s-%02d", lockName(t), i))
	}
	return names
}

// allFree fails for every lock that somebody has.
func allFree(t *testing.T, names []string) {
	t.Helper()
	c := connect(t, cluster.Options{})
	for _, name := range names {
		lease, err := c.Get(t.Context(), leaseKind, cluster.SystemNamespace, name)
		if err != nil {
			t.Fatal(err)
		}
		if lease != nil && lease.Object["spec"].(map[string]any)["holderIdentity"] != "" {
			t.Errorf("somebody has %s: %v", name, lease.Object["spec"])
		}
	}
}

// TestLockAll takes many locks a few at a time, and none when somebody else has one of them.
func TestLockAll(t *testing.T) {
	var inFlight, most atomic.Int64
	count := func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		n := inFlight.Add(1)
		for before := most.Load(); n > before && !most.CompareAndSwap(before, n); before = most.Load() {
		}
		forward.ServeHTTP(&answering{w, sync.OnceFunc(func() { inFlight.Add(-1) })}, r)
		return true
	}
	c := connect(t, cluster.Options{Kubeconfig: between.New(t, testcluster.Shared(t), count).Kubeconfig})
	other := connect(t, cluster.Options{})
	names := lockNames(t, 0, 30)
	locks, err := c.LockAll(t.Context(), names, cluster.LockOptions{Identity: "alice@node1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names { // each of them is renewed
		for first := leaseTime(t, other, name, "acquireTime"); leaseTime(t, other, name, "renewTime").Equal(first); {
			if err = locks.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err = other.LockAll(t.Context(), lockNames(t, 25, 35), short("bob@node2"))
	check(t, err, report.Locked, "alice@node1 is at work")
	if err = locks.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if code := report.CodeOf(locks.Check()); code != report.Interrupted {
		t.Errorf("locks that were released are still good: %q", code)
	}
	if most.Load() > 8 {
		t.Errorf("%d requests at once", most.Load())
	}
	allFree(t, lockNames(t, 0, 35))

	one, err := other.Lock(t.Context(), names[20], short("bob@node2"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.LockAll(t.Context(), names, cluster.LockOptions{Identity: "alice@node1"})
	check(t, err, report.Locked, "bob@node2 is at work")
	ctx, cancel := context.WithCancel(t.Context())
	patient := cluster.LockOptions{Identity: "alice@node1", Wait: time.Hour, Sink: sinkFunc(func(report.Event) { cancel() })}
	if _, err = c.LockAll(ctx, names, patient); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err = one.Release(t.Context()); err != nil {
		t.Error(err)
	}
	allFree(t, names)
}

// answering calls a function before the client can have any part of the answer: what comes after that, such as the return of
// the handler, may happen while the client already sends its next request.
type answering struct {
	http.ResponseWriter
	begins func()
}

func (a *answering) WriteHeader(status int) {
	a.begins()
	a.ResponseWriter.WriteHeader(status)
}

func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }

type sinkFunc func(report.Event)

func (f sinkFunc) Emit(e report.Event) { f(e) }

// TestLockAllAtOnce checks that people who want some of the same locks get them in turn.
func TestLockAllAtOnce(t *testing.T) {
	finished := make(chan error)
	inside := make(chan int, 1)
	sets := [][]string{lockNames(t, 0, 12), lockNames(t, 6, 18), lockNames(t, 3, 9), append(lockNames(t, 8, 12), lockNames(t, 0, 2)...)}
	for i, names := range sets {
		c := connect(t, cluster.Options{})
		go func() {
			options := short(fmt.Sprintf("person%d@node", i))
			options.Wait, options.Sink = time.Hour, report.Discard
			var failed error
			for range 3 {
				locks, err := c.LockAll(t.Context(), names, options)
				if err != nil {
					failed = err
					break
				}
				select {
				case inside <- i:
				default:
					failed = fmt.Errorf("person %d is at work beside another one", i)
				}
				_, err = c.Get(t.Context(), namespaceKind, "", "default")
				<-inside
				failed = errors.Join(failed, err, locks.Release(t.Context()))
			}
			finished <- failed
		}()
	}
	for range sets {
		if err := <-finished; err != nil {
			t.Error(err)
		}
	}
	allFree(t, lockNames(t, 0, 18))
}

// TestLocksOfSomebodyDead waits once for all locks that a process had that was killed.
func TestLocksOfSomebodyDead(t *testing.T) {
	names := lockNames(t, 0, 20)
	c, other := connect(t, cluster.Options{}), connect(t, cluster.Options{})
	ctx, kill := context.WithCancel(t.Context())
	if _, err := c.LockAll(ctx, names, short("alice@node1")); err != nil {
		t.Fatal(err)
	}
	kill()
	terms, cancel := context.WithTimeout(t.Context(), 10*short("").Duration) // one after the other would take twice as long
	defer cancel()
	locks, err := other.LockAll(terms, names, short("bob@node2"))
	if err != nil {
		t.Fatal(err)
	}
	if err = locks.Release(t.Context()); err != nil {
		t.Error(err)
	}
	allFree(t, names)
}

// TestReleaseDuringRenewal gives a lock back that was renewed by a request of which nobody has seen the answer.
func TestReleaseDuringRenewal(t *testing.T) {
	renewed := make(chan struct{})
	var once sync.Once
	silent := func(_ http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/leases/") {
			return false
		}
		mine := false
		once.Do(func() { mine = true })
		if !mine {
			return false
		}
		forward.ServeHTTP(httptest.NewRecorder(), r)
		close(renewed)
		<-r.Context().Done()
		return true
	}
	c := connect(t, cluster.Options{Kubeconfig: between.New(t, testcluster.Shared(t), silent).Kubeconfig})
	lock, err := c.Lock(t.Context(), lockName(t), short("alice@node1"))
	if err != nil {
		t.Fatal(err)
	}
	<-renewed
	if err = lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
	allFree(t, []string{lockName(t)})
}
