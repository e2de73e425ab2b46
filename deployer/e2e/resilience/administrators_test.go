package resilience_test

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/proxy"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema/report"
)

// as returns the bed as another administrator sees it, whose requests are noted in the journal.
func (b *bed) as(name string, j *proxy.Journal, faults ...proxy.Fault) *bed {
	b.Helper()
	other := *b
	other.Kubeconfig = proxy.New(b.T, b.Server, append([]proxy.Fault{j.Of(name)}, faults...)...).Kubeconfig
	return &other
}

// start starts a command whose outcome finish returns.
func (b *bed) start(v verb, more ...string) *exec.Cmd {
	b.Helper()
	cmd := b.command(v, more...)
	cmd.Stderr = &bytes.Buffer{}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return cmd
}

// results are how two verbs ended, and what there was then.
type results struct {
	first, second report.Code
	dump          string
}

// TestTwoAdministrators runs two verbs at once. The result is that of both one after the other, in one of the two orders, and they take
// turns as a whole.
func TestTwoAdministrators(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name          string
		before        []verb
		first, second verb
	}{
		{"add and add", []verb{"env create ENV", "activate NAME 1.0.0"}, "add ENV NAME 1.0.0", "add ENV NAME 1.1.0"},
		{"upgrade and remove", []verb{"env create ENV", "activate NAME 1.1.0", "add ENV NAME 1.0.0"}, "upgrade ENV NAME 1.1.0", "remove ENV NAME"},
		{"upgrade and roll back", []verb{"env create ENV", "activate NAME 1.1.0", "add ENV NAME 1.0.0"}, "upgrade ENV NAME 1.1.0", "rollback ENV NAME"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.name != "upgrade and remove" {
				testcluster.Long(t, "TestTwoAdministrators/upgrade_and_remove")
			}
			prepared := func() *bed {
				b := newBed(t)
				for _, v := range test.before {
					b.must(v)
				}
				return b
			}
			one, other := prepared(), prepared()
			var forth, back results
			forth.first, forth.second, forth.dump = one.run(test.first).Code, one.run(test.second).Code, one.dump()
			back.second, back.first, back.dump = other.run(test.second).Code, other.run(test.first).Code, other.dump()

			b := prepared()
			var journal proxy.Journal
			alice, bob := b.as("alice", &journal), b.as("bob", &journal)
			first, second := alice.start(test.first, "--lock-wait", "2m"), bob.start(test.second, "--lock-wait", "2m")
			got := results{first: alice.finish(first).Code, second: bob.finish(second).Code}
			if got.dump = b.dump(); got != forth && got != back {
				t.Errorf("%s ended with %q, %s with %q, which is neither of %q, %q and %q, %q:\n%s", test.first, got.first, test.second, got.second,
					forth.first, forth.second, back.first, back.second, got.dump)
			}
			if turns := turns(journal.Entries()); len(turns) > 2 {
				t.Errorf("they changed things in turns: %v", turns)
			}
		})
	}
}

// turns lists the users of changes, once for each time that the user changes.
func turns(entries []proxy.Entry) []string {
	var clients []string
	for _, e := range entries {
		if e.Write {
			clients = append(clients, e.Client)
		}
	}
	return slices.Compact(clients)
}

// held reports that a request has come. Its answer, which the server gives at once, is kept back until it is released.
func held(reached chan<- struct{}, release <-chan struct{}) proxy.Fault {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		if proxy.IsWatch(r) {
			reached <- struct{}{}
			<-release
			return false
		}
		answer := httptest.NewRecorder()
		forward.ServeHTTP(answer, r)
		reached <- struct{}{}
		<-release
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // the client may be gone
		return true
	}
}

// TestSecondAdministrator checks that a user who does not wait gets the name of the lock's holder, and that both finish.
func TestSecondAdministrator(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.must("env create ENV")
	b.must("activate NAME 1.0.0")
	reached, release := make(chan struct{}), make(chan struct{})
	var journal proxy.Journal
	alice := b.as("alice", &journal, proxy.When(proxy.IsWrite, proxy.At(2, held(reached, release))))
	add := alice.start("add ENV NAME 1.0.0")
	<-reached
	bob := b.as("bob", &journal)
	b.refused(bob.finish(bob.command("remove ENV NAME")), report.Locked, "alice@", "nothing was changed", "--lock-wait")
	close(release)
	if o := alice.finish(add); o.Status != 0 {
		t.Errorf("exit status %d:\n%s", o.Status, o.Text)
	}
	if who := turns(journal.Entries()); !slices.Equal(who, []string{"alice"}) {
		t.Errorf("%v changed something", who)
	}
}

// stopped is for how long an administrator's process is stopped.
const stopped = time.Minute

// TestStopped stops the process that holds the lock for a minute, in which another process acquires it. After its stop it changes nothing
// more, and reports that it was interrupted.
func TestStopped(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		where func(*http.Request) bool
		at    int64
		other verb
	}{
		{"between two changes", proxy.IsWrite, 3, "remove ENV NAME"},
		{"while it waits, for what is removed", isWaiting, 1, "remove ENV NAME"},
		{"while it waits, for what is done again", isWaiting, 1, "add ENV NAME 1.0.0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.name != "between two changes" {
				testcluster.Long(t, "TestStopped/between_two_changes")
			}
			b := newBed(t)
			b.must("env create ENV")
			b.must("activate NAME 1.0.0")
			reached, release := make(chan struct{}), make(chan struct{})
			var journal proxy.Journal
			alice := b.as("alice", &journal, proxy.When(test.where, proxy.At(test.at, held(reached, release))))
			add := alice.start("add ENV NAME 1.0.0")
			<-reached
			enough := time.After(stopped)
			if err := add.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			b.must(test.other)
			before := b.dump() + b.lockVersion()
			<-enough
			noted := len(journal.Entries())
			if err := add.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			close(release)
			b.refused(alice.finish(add), report.Interrupted, "lock")
			for _, e := range journal.Entries()[noted:] {
				if e.Write {
					t.Errorf("after it went on: %s %s", e.Method, e.URI)
				}
			}
			if after := b.dump() + b.lockVersion(); before != after {
				t.Errorf("before it went on:\n%s\nafterwards:\n%s", before, after)
			}
		})
	}
}

// lockVersion changes whenever the lock of the environment is acquired, renewed or released.
func (b *bed) lockVersion() string {
	b.Helper()
	return b.get(leases, cluster.SystemNamespace, "env-"+b.Env).GetResourceVersion()
}

// isWaiting reports whether a request is the watch of a process that waits for deployed objects.
func isWaiting(r *http.Request) bool {
	return proxy.IsWatch(r) && strings.HasSuffix(r.URL.Path, "/deployments")
}

// TestClocks: people whose clocks are twenty minutes apart share a cluster as others do.
func TestClocks(t *testing.T) {
	t.Parallel()
	clock := func(skew time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(skew) } }
	for name, skew := range map[string]time.Duration{"the holder's is ahead": 10 * time.Minute, "the holder's is behind": -10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if skew < 0 {
				testcluster.Long(t, "TestClocks/the_holder's_is_ahead")
			}
			b := newBed(t)
			b.must("env create ENV")
			b.must("activate NAME 1.0.0")
			reached, release := make(chan struct{}), make(chan struct{})
			var journal proxy.Journal
			slow := b.as("holder", &journal, proxy.When(proxy.IsWrite, proxy.At(2, held(reached, release))))
			holder := connect(t, cluster.Options{Kubeconfig: slow.Kubeconfig, Now: clock(skew)})
			other := connect(t, cluster.Options{Now: clock(-skew)})
			other.LockWait = 0
			add := deployer.AddOptions{Environment: b.Env, Solution: b.Name, Version: "1.0.0", Rendering: plan.Rendering{Webhook: new(true)}}
			ended := make(chan error, 1)
			go func() {
				_, err := holder.Add(t.Context(), add)
				ended <- err
			}()
			<-reached
			if _, err := other.Add(t.Context(), add); report.CodeOf(err) != report.Locked {
				t.Errorf("the other one while the holder is at work: %v", err)
			}
			close(release)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			b.abandonedLock(clock(skew)())
			other.LockWait = time.Minute
			if done, err := other.Add(t.Context(), add); err != nil || !done.Empty() {
				t.Errorf("the other one afterwards: %+v, %v", done, err)
			}
		})
	}
}

// abandonedLock leaves the lock of the environment as a process does that was killed at this time of its clock.
func (b *bed) abandonedLock(at time.Time) {
	b.Helper()
	lease := b.get(leases, cluster.SystemNamespace, "env-"+b.Env)
	for field, value := range map[string]any{"holderIdentity": "dead@elsewhere x", "renewTime": at.UTC().Format("2006-01-02T15:04:05.000000Z")} {
		if err := unstructured.SetNestedField(lease.Object, value, "spec", field); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := b.Cluster.Update(context.WithoutCancel(b.Context()), lease, cluster.WriteOptions{}); err != nil {
		b.Fatal(err)
	}
}
