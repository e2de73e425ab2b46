package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/schema/report"
)

const system = "{apiVersion: v1, kind: Namespace, metadata: {name: solutionctl-system}}"

// connectedWith connects to a server with a Lease, or without one.
func connectedWith(t *testing.T, lease string) (*clustertest.Server, *Cluster) {
	t.Helper()
	if lease == "" {
		return connected(t, system)
	}
	return connected(t, system, lease)
}

// heldBy returns the Lease of lock env-shop with a holder.
func heldBy(identity string) string {
	return fmt.Sprintf(`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: env-shop, namespace: solutionctl-system},
spec: {holderIdentity: %q, leaseDurationSeconds: 15, leaseTransitions: 7, acquireTime: "2026-01-02T03:04:05.000000Z", renewTime: "2026-01-02T03:04:15.000000Z"}}`, identity)
}

func leaseIn(s *clustertest.Server) string {
	lease := s.Object("Lease", SystemNamespace, "env-shop")
	if lease == nil {
		return "none"
	}
	return fmt.Sprint(person(lease), " ", transitions(lease), " ", promise(lease))
}

// until waits for a condition, and not for a time.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for tick := time.Tick(2 * time.Millisecond); !done(); {
		select {
		case <-tick:
		case <-t.Context().Done():
			t.Fatalf("never: %s", what)
		}
	}
}

// TestTake: who gets a lock, and what the others hear.
func TestTake(t *testing.T) {
	t.Parallel()
	alive := func(o *observer) { o.version, o.alive = "seen before", true }
	for name, test := range map[string]struct {
		lease  string          // "" if it was never held
		watch  func(*observer) // what was seen of its holder
		ended  string          // who is known to have ended
		answer func(*clustertest.Server)
		code   report.Code
		says   string
		after  string
		token  int64
	}{
		"the first":                       {after: "jane@host 1 1s", token: 1},
		"after its release":               {lease: heldBy(""), after: "jane@host 8 1s", token: 8},
		"from a process at work":          {lease: heldBy("bob@host X"), watch: alive, code: report.Locked, says: "bob@host is at work since 2026-01-02T03:04:05Z; nothing was changed", after: "bob@host 7 15s"},
		"from a dead process":             {lease: heldBy("bob@host X"), watch: func(o *observer) { o.version, o.since = "3", bootTime()-16*time.Second }, after: "jane@host 8 1s", token: 8},
		"from a process that has ended":   {lease: heldBy("bob@host X"), watch: alive, ended: "bob@host", after: "jane@host 8 1s", token: 8},
		"while another process has ended": {lease: heldBy("bob@host X"), watch: alive, ended: "bob", code: report.Locked, says: "bob@host is at work", after: "bob@host 7 15s"},
		"from a program with odd ideas":   {lease: strings.Replace(heldBy(""), "leaseTransitions: 7, ", "", 1), after: "jane@host 1 1s", token: 1},
		"by an attempt whose answer was lost": {lease: "", answer: func(s *clustertest.Server) {
			once(s, func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/leases") }, loseAnswer(s))
		}, after: "jane@host 1 1s", token: 1},
		"while another process is quicker, and releases it": {lease: "", answer: func(s *clustertest.Server) {
			once(s, func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/leases") }, func(w http.ResponseWriter, r *http.Request) {
				s.Put(t, heldBy(""))
				s.ServeHTTP(w, r)
			})
		}, after: "jane@host 8 1s", token: 8},
		"without the right to it": {lease: heldBy(""), answer: func(s *clustertest.Server) {
			once(s, method(http.MethodPut), fails(apierrors.NewForbidden(LeaseKind.GroupVersion().WithResource("leases").GroupResource(), "env-shop",
				errors.New(`User "jane" cannot update resource "leases" in API group "coordination.k8s.io" in the namespace "solutionctl-system"`))))
		}, code: report.Forbidden, says: "has no permission to update leases", after: " 7 15s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := connectedWith(t, test.lease)
			watch := newObserver()
			if test.watch != nil {
				test.watch(watch)
			}
			if name == "from a dead process" {
				watch.version = s.Object("Lease", SystemNamespace, "env-shop").GetResourceVersion()
			}
			if test.answer != nil {
				test.answer(s)
			}
			l, err := c.lock(t.Context(), "env-shop", LockOptions{
				Identity: "jane@host", Duration: time.Second,
				Ended: func(_ context.Context, holder string) bool { return holder == test.ended },
			}, watch)
			if got := leaseIn(s); got != test.after {
				t.Errorf("the Lease says %q, want %q", got, test.after)
			}
			if test.code != "" {
				if report.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%s: %v", report.CodeOf(err), err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if l.Check() != nil || l.Token() != test.token {
				t.Errorf("%v, token %d", l.Check(), l.Token())
			}
			held, err := c.Locks(t.Context())
			if err != nil || len(held) != 1 || held[0].Name != "env-shop" || held[0].Person != "jane@host" || held[0].Promised.Before(held[0].Since) {
				t.Errorf("%+v, %v", held, err)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			for range 2 { // once is enough, and twice does no harm
				if err := l.Release(ended); err != nil {
					t.Error(err)
				}
			}
			if got := leaseIn(s); !strings.HasPrefix(got, " ") || l.Check() == nil {
				t.Errorf("it was given back, and the Lease says %q", got)
			}
			if held, err := c.Locks(t.Context()); err != nil || len(held) > 0 {
				t.Errorf("%+v, %v", held, err)
			}
		})
	}
}

// TestKeep: what becomes of a lock while it is held.
func TestKeep(t *testing.T) {
	t.Parallel()
	take := func(t *testing.T) (*clustertest.Server, *Lock) {
		t.Helper()
		s, c := connected(t)
		l, err := c.Lock(t.Context(), "env-shop", LockOptions{Identity: "jane@host", Duration: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return s, l
	}
	t.Run("it is renewed", func(t *testing.T) {
		t.Parallel()
		s, l := take(t)
		version := func() string { return s.Object("Lease", SystemNamespace, "env-shop").GetResourceVersion() }
		for range 2 {
			before := version()
			until(t, "it is renewed", func() bool { return version() != before })
		}
		if err := errors.Join(l.Check(), l.Release(t.Context())); err != nil || leaseIn(s) != " 1 1s" {
			t.Errorf("%v, %s", err, leaseIn(s))
		}
	})
	t.Run("the answer to a renewal is lost", func(t *testing.T) {
		t.Parallel()
		s, l := take(t)
		var renewals atomic.Int32
		lose := loseAnswer(s)
		s.Answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPut || r.Context().Value(servedKey{}) != nil {
				return false
			}
			if renewals.Add(1) == 1 {
				lose(w, r.WithContext(context.WithValue(r.Context(), servedKey{}, true)))
			}
			return false
		}
		until(t, "it is renewed after that", func() bool { return renewals.Load() > 2 })
		if l.lost.Load() {
			t.Error("it was lost to ourselves")
		}
		if err := l.Release(t.Context()); err != nil || leaseIn(s) != " 1 1s" {
			t.Errorf("%v, %s", err, leaseIn(s))
		}
	})
	t.Run("another process acquires it", func(t *testing.T) {
		t.Parallel()
		s, l := take(t)
		s.Put(t, heldBy("bob@host X"))
		until(t, "it is lost", func() bool { return errors.Is(l.Check(), errTaken) })
		if err := l.Check(); report.CodeOf(err) != report.Interrupted || !strings.Contains(err.Error(), `the lock "env-shop" was taken by another process`) {
			t.Error(err)
		}
		_, err := l.cluster.Create(WithGuard(t.Context(), l), parsed(t, config("late", "1")), WriteOptions{})
		if report.CodeOf(err) != report.Interrupted || !strings.Contains(err.Error(), "create ConfigMap shop/late") || !strings.Contains(strings.Join(report.Hints(err), ""), "run the same command again") {
			t.Errorf("%v, %q", err, report.Hints(err))
		}
		if err := l.Release(t.Context()); err != nil || leaseIn(s) != "bob@host 7 15s" {
			t.Errorf("what others hold was given back: %v, %s", err, leaseIn(s))
		}
	})
	t.Run("it is given back while a renewal has no answer", func(t *testing.T) {
		t.Parallel()
		s, c := connected(t)
		renewed := make(chan struct{})
		once(s, method(http.MethodPut), func(_ http.ResponseWriter, r *http.Request) {
			s.ServeHTTP(httptest.NewRecorder(), r)
			close(renewed)
			<-r.Context().Done()
		})
		l, err := c.Lock(t.Context(), "env-shop", LockOptions{Identity: "jane@host", Duration: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		<-renewed
		if err := l.Release(t.Context()); err != nil || leaseIn(s) != " 1 1s" {
			t.Errorf("%v, %s", err, leaseIn(s))
		}
	})
	t.Run("the API server does not answer when it is given back", func(t *testing.T) {
		t.Parallel()
		s, l := take(t)
		l.stop()
		<-l.stopped
		once(s, method(http.MethodPut), func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // the end of a connection is noticed only after that
			<-r.Context().Done()
		})
		if err := l.Release(t.Context()); err != nil || leaseIn(s) != "jane@host 1 1s" {
			t.Errorf("%v, %s", err, leaseIn(s))
		}
	})
	t.Run("another process acquires it, and releases it before that is noticed", func(t *testing.T) {
		t.Parallel()
		s, l := take(t)
		s.Put(t, heldBy("bob@host X"))
		if err := l.Release(t.Context()); err != nil || leaseIn(s) != "bob@host 7 15s" {
			t.Errorf("what others hold was given back: %v, %s", err, leaseIn(s))
		}
	})
	t.Run("it is deleted", func(t *testing.T) {
		t.Parallel()
		s, l := take(t)
		if err := l.cluster.Delete(t.Context(), s.Object("Lease", SystemNamespace, "env-shop"), DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		until(t, "it is lost", func() bool { return errors.Is(l.Check(), errTaken) })
	})
	t.Run("the server is away for longer than it lasts, and it stays free", func(t *testing.T) {
		t.Parallel()
		s, l := take(t)
		var away atomic.Bool
		s.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
			if away.Load() {
				clustertest.Fail(w, apierrors.NewServiceUnavailable("away"))
			}
			return away.Load()
		}
		away.Store(true)
		until(t, "it is not certainly ours", func() bool { return errors.Is(l.Check(), errSilent) })
		go func() {
			until(t, "a write asks", func() bool { return errors.Is(l.Check(), errSilent) })
			away.Store(false)
		}()
		if _, err := l.cluster.Create(WithGuard(t.Context(), l), parsed(t, config("a", "1")), WriteOptions{}); err != nil {
			t.Errorf("a write does not wait until the lock is ours again: %v", err)
		}
		if err := l.Check(); err != nil {
			t.Error(err)
		}
	})
}

// TestLostAnswer checks that a Lease which an attempt without an answer has written is written again. Others count from that attempt on, so that one
// of them could hold the lock while it still counted as ours.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	// requests returns the methods of the requests about the Lease.
	requests := func(s *clustertest.Server) string {
		var all []string
		for _, r := range s.Requests() {
			if method, path, _ := strings.Cut(r, " "); strings.Contains(path, "/leases") {
				all = append(all, method)
			}
		}
		return strings.Join(all, " ")
	}
	for name, test := range map[string]struct{ lease, method, want string }{
		"create": {"", http.MethodPost, "GET POST POST GET PUT"},
		"take":   {heldBy(""), http.MethodPut, "GET PUT PUT GET PUT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := connectedWith(t, test.lease)
			once(s, method(test.method), loseAnswer(s))
			l, err := c.Lock(t.Context(), "env-shop", LockOptions{Identity: "jane@host"})
			if err != nil {
				t.Fatal(err)
			}
			if got := requests(s); got != test.want {
				t.Errorf("requests %q, want %q", got, test.want)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("renew", func(t *testing.T) {
		t.Parallel()
		s, c := connected(t)
		l, err := c.Lock(t.Context(), "env-shop", LockOptions{Identity: "jane@host"})
		if err != nil {
			t.Fatal(err)
		}
		l.stop()
		<-l.stopped
		spec := specOf(l.lease)
		spec["renewTime"] = "2026-01-02T03:04:05.000000Z"
		if _, err := l.write(t.Context(), l.lease, spec); err != nil { // an earlier renewal that timed out, and was carried out
			t.Fatal(err)
		}
		s.Requests()
		if _, err := l.renewOnce(t.Context(), time.Minute); err != nil {
			t.Error(err)
		}
		if got, want := requests(s), "PUT GET PUT"; got != want {
			t.Errorf("requests %q, want %q", got, want)
		}
	})
}

// TestDiscard: the Lease of a lock goes with what it protects, and only while it is ours.
func TestDiscard(t *testing.T) {
	t.Parallel()
	jane, bob := LockOptions{Identity: "jane@host", Duration: time.Second}, LockOptions{Identity: "bob@host", Duration: time.Second, Wait: time.Minute}
	t.Run("no process waits", func(t *testing.T) {
		t.Parallel()
		s, c := connected(t)
		l, err := c.Lock(t.Context(), "env-shop", jane)
		if err != nil {
			t.Fatal(err)
		}
		l.Discard()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Release(ended); err != nil || leaseIn(s) != "none" {
			t.Errorf("%v, %s", err, leaseIn(s))
		}
	})
	t.Run("a process waits", func(t *testing.T) {
		t.Parallel()
		s, c := connected(t)
		l, err := c.Lock(t.Context(), "env-shop", jane)
		if err != nil {
			t.Fatal(err)
		}
		recorder := &report.Recorder{}
		bob := bob
		bob.Sink = recorder
		got := make(chan error)
		go func() {
			second, err := c.Lock(t.Context(), "env-shop", bob)
			if err == nil {
				err = second.Check()
			}
			got <- err
		}()
		until(t, "a process waits", func() bool { return len(recorder.Events()) > 0 })
		l.Discard()
		if err := errors.Join(l.Release(t.Context()), <-got); err != nil || leaseIn(s) != "bob@host 1 1s" {
			t.Errorf("%v, %s", err, leaseIn(s))
		}
	})
	t.Run("it is renewed while it goes", func(t *testing.T) {
		t.Parallel()
		s, c := connected(t)
		l, err := c.Lock(t.Context(), "env-shop", jane)
		if err != nil {
			t.Fatal(err)
		}
		once(s, method(http.MethodDelete), func(w http.ResponseWriter, r *http.Request) {
			s.Put(t, heldBy(l.identity)) // by a renewal without an answer
			s.ServeHTTP(w, r)
		})
		l.Discard()
		if err := l.Release(t.Context()); err != nil || leaseIn(s) != "none" {
			t.Errorf("%v, %s", err, leaseIn(s))
		}
	})
	t.Run("a process takes it before it is deleted", func(t *testing.T) {
		t.Parallel()
		s, c := connected(t)
		l, err := c.Lock(t.Context(), "env-shop", jane)
		if err != nil {
			t.Fatal(err)
		}
		once(s, method(http.MethodDelete), func(w http.ResponseWriter, r *http.Request) {
			s.Put(t, heldBy("bob@host X"))
			s.ServeHTTP(w, r)
		})
		l.Discard()
		if err := l.Release(t.Context()); err != nil || leaseIn(s) != "bob@host 7 15s" {
			t.Errorf("%v, %s", err, leaseIn(s))
		}
	})
	t.Run("without the right to delete it", func(t *testing.T) {
		t.Parallel()
		s, c := connected(t)
		once(s, method(http.MethodDelete), fails(apierrors.NewForbidden(LeaseKind.GroupVersion().WithResource("leases").GroupResource(), "env-shop",
			errors.New(`User "jane" cannot delete resource "leases" in API group "coordination.k8s.io" in the namespace "solutionctl-system"`))))
		l, err := c.Lock(t.Context(), "env-shop", jane)
		if err != nil {
			t.Fatal(err)
		}
		l.Discard()
		if err := l.Release(t.Context()); err != nil || leaseIn(s) != " 1 1s" {
			t.Errorf("%v, %s", err, leaseIn(s))
		}
	})
}

// TestDiscardTogether: processes that delete the Lease after their work never work at the same time as another one.
func TestDiscardTogether(t *testing.T) {
	t.Parallel()
	s, c := connected(t)
	var working, done atomic.Int32
	var group errgroup.Group
	const people = 8
	for i := range people {
		group.Go(func() error {
			l, err := c.Lock(t.Context(), "env-shop", LockOptions{Identity: fmt.Sprintf("person-%d@host", i), Wait: time.Hour})
			if err != nil {
				return err
			}
			if working.Add(1) != 1 {
				t.Error("two work at the same time")
			}
			_, err = c.Create(WithGuard(t.Context(), l), parsed(t, config(fmt.Sprintf("of-%d", i), "1")), WriteOptions{})
			working.Add(-1)
			done.Add(1)
			l.Discard()
			return errors.Join(err, l.Release(t.Context()))
		})
	}
	if err := group.Wait(); err != nil || done.Load() != people || leaseIn(s) != "none" {
		t.Errorf("%v, %d done, %s", err, done.Load(), leaseIn(s))
	}
}

// TestLockAllOrNone checks that several locks are taken in the order of their names, each once, and all or none.
func TestLockAllOrNone(t *testing.T) {
	t.Parallel()
	s, c := connected(t)
	options := LockOptions{Identity: "jane@host", Duration: time.Second}
	holders := func() []string {
		var all []string
		for _, name := range s.Names("Lease") {
			_, short, _ := strings.Cut(name, "/")
			if lease := s.Object("Lease", SystemNamespace, short); holder(lease) != "" {
				all = append(all, short+" "+person(lease))
			}
		}
		return all
	}
	locks, err := c.LockAll(t.Context(), []string{"env-c", "env-a", "env-b", "env-a"}, options)
	if err != nil || len(locks) != 3 || locks.Check() != nil {
		t.Fatalf("%v, %v", locks, err)
	}
	if diff := cmp.Diff([]string{"env-a jane@host", "env-b jane@host", "env-c jane@host"}, holders()); diff != "" {
		t.Error(diff)
	}
	bob := options
	bob.Identity = "bob@host"
	others, err := c.LockAll(t.Context(), []string{"env-0", "env-b", "env-d"}, bob)
	if report.CodeOf(err) != report.Locked || !strings.Contains(err.Error(), "jane@host is at work") || others != nil {
		t.Errorf("%v, %v", others, err)
	}
	if diff := cmp.Diff([]string{"env-a jane@host", "env-b jane@host", "env-c jane@host"}, holders()); diff != "" {
		t.Errorf("who did not get all has some: %s", diff)
	}
	bob.Wait = time.Minute
	recorder := &report.Recorder{}
	bob.Sink = recorder
	got := make(chan error)
	go func() {
		others, err := c.LockAll(t.Context(), []string{"env-0", "env-b"}, bob)
		got <- errors.Join(err, others.Check(), others.Release(t.Context()))
	}()
	until(t, "a process waits", func() bool { return len(recorder.Events()) > 0 })
	if err := locks.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	events := recorder.Events()
	if events[0].Name != "env-b" || events[0].Note != "held by jane@host" || !slices.ContainsFunc(events, func(e report.Event) bool { return e.State == report.Done }) {
		t.Errorf("who waits is not told: %+v", events)
	}
	if left := holders(); len(left) > 0 {
		t.Errorf("%q", left)
	}
	if none, err := c.LockAll(t.Context(), nil, options); err != nil || len(none) > 0 || none.Check() != nil {
		t.Errorf("no locks: %v, %v", none, err)
	}
}

// TestManyLocks takes many locks a few at a time, waits for a held one, and has none after an interrupted wait.
func TestManyLocks(t *testing.T) {
	t.Parallel()
	s, c := connected(t)
	var running, most atomic.Int64
	s.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Context().Value(servedKey{}) != nil {
			return false
		}
		now := running.Add(1)
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
		}
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), servedKey{}, true)))
		running.Add(-1) // before a client has the answer and asks again
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
		return true
	}
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("env-%02d", i))
	}
	options := LockOptions{Identity: "jane@host", Duration: time.Minute} // none expires, however busy the machine is
	held := func() string {
		t.Helper()
		all, err := c.Locks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var text []string
		for _, l := range all {
			text = append(text, l.Name+" "+l.Person)
		}
		return strings.Join(text, ", ")
	}
	locks, err := c.LockAll(t.Context(), names, options)
	if err != nil || strings.Count(held(), "jane@host") != len(names) {
		t.Fatalf("%v: %s", err, held())
	}
	if err = locks.Release(t.Context()); err != nil || report.CodeOf(locks.Check()) != report.Interrupted || held() != "" {
		t.Errorf("%v, %v: %s", err, locks.Check(), held())
	}
	if most.Load() > InFlight {
		t.Errorf("%d requests at once", most.Load())
	}
	bob, err := c.Lock(t.Context(), names[20], LockOptions{Identity: "bob@host", Duration: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	options.Wait, options.Sink = time.Hour, cancels(cancel)
	if _, err := c.LockAll(ctx, names, options); !errors.Is(err, context.Canceled) || held() != names[20]+" bob@host" {
		t.Errorf("%v: %s", err, held())
	}
	if err := bob.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// cancels ends a wait when it is reported.
type cancels context.CancelFunc

func (c cancels) Emit(report.Event) { c() }

// TestReleaseInTime checks that locks which cannot be given back keep a command from its end no longer than one of them lasts, however many they are.
func TestReleaseInTime(t *testing.T) {
	t.Parallel()
	s, c := connected(t)
	var names []string
	for i := range 5 * atOnce {
		names = append(names, fmt.Sprintf("env-%02d", i))
	}
	locks, err := c.LockAll(t.Context(), names, LockOptions{Identity: "jane@host"})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range locks {
		l.stop()
		<-l.stopped
		l.duration = time.Second // of which a third is for each
	}
	var asked atomic.Int32
	s.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		asked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body) // the end of a connection is noticed only after that
		<-r.Context().Done()
		return true
	}
	if err := locks.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if n := asked.Load(); n > 4*atOnce {
		t.Errorf("%d requests", n)
	}
}

// TestLocksOfTheDead checks that several locks of a dead process are waited for together, and not one after the other.
func TestLocksOfTheDead(t *testing.T) {
	t.Parallel()
	_, c := connected(t)
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("env-%02d", i))
	}
	ctx, kill := context.WithCancel(t.Context())
	const duration = 3 * time.Second // a busy machine holds up a renewal for a second
	if _, err := c.LockAll(ctx, names, LockOptions{Identity: "jane@host", Duration: duration}); err != nil {
		t.Fatal(err)
	}
	kill()
	terms, cancel := context.WithTimeout(t.Context(), duration*time.Duration(len(names))/2) // one after the other would take twice as long
	defer cancel()
	locks, err := c.LockAll(terms, names, LockOptions{Identity: "bob@host", Duration: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := locks.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
