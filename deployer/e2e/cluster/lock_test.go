package cluster_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/schema/report"
)

var leaseKind = schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}

// soon is when a short lock runs out. Its holder keeps it while an API server with much to do answers in two thirds of that.
const soon = 6 * time.Second

// short is a lock that runs out soon.
func short(identity string) cluster.LockOptions {
	return cluster.LockOptions{Identity: identity, Duration: soon}
}

// waiting is for a process that waits for the holder, which can still renew its lease when it is stopped: with a request on its way.
func waiting(identity string) cluster.LockOptions {
	return cluster.LockOptions{Identity: identity, Wait: time.Hour, Sink: report.Discard}
}

func lockName(t *testing.T) string {
	t.Helper()
	return strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
}

func TestLock(t *testing.T) {
	t.Parallel()
	c, other := connect(t, cluster.Options{}), connect(t, cluster.Options{})
	ctx := t.Context()
	lock, err := c.Lock(ctx, lockName(t), short("alice@node1"))
	if err != nil {
		t.Fatal(err)
	}
	if err = lock.Check(); err != nil {
		t.Error(err)
	}
	_, err = other.Lock(ctx, lockName(t), short("bob@node2"))
	check(t, err, report.Locked, "alice@node1 is at work since 20", "nothing was changed", "--lock-wait 5m")
	if name, _, _ := strings.Cut(err.Error(), " is at work"); name != "alice@node1" {
		t.Errorf("the holder is %q", name)
	}
	free, err := other.Lock(ctx, lockName(t)+"-another", short("bob@node2"))
	if err != nil {
		t.Fatalf("a lock of another name: %v", err)
	}
	if err := free.Release(ctx); err != nil {
		t.Error(err)
	}

	// Who waits gets it when it is free, and learns for whom they wait.
	var sink report.Recorder
	options := short("bob@node2")
	options.Wait, options.Sink = time.Hour, &sink
	type result struct {
		lock *cluster.Lock
		err  error
	}
	got := make(chan result)
	go func() {
		second, err := other.Lock(ctx, lockName(t), options)
		got <- result{second, err}
	}()
	for len(sink.Events()) == 0 {
		select {
		case r := <-got:
			t.Fatalf("%+v while the lock is held", r)
		default:
		}
	}
	if e := sink.Events()[0]; e.Step != "lock" || e.State != report.Started || e.Note != "held by alice@node1" {
		t.Errorf("event %+v", e)
	}
	if err := lock.Release(ctx); err != nil {
		t.Error(err)
	}
	if err := lock.Check(); report.CodeOf(err) != report.Interrupted {
		t.Errorf("a lock that was released is still good: %v", err)
	}
	if err := lock.Release(ctx); err != nil {
		t.Errorf("release again: %v", err)
	}
	second := <-got
	if second.err != nil {
		t.Fatal(second.err)
	}
	if second.lock.Token() <= lock.Token() {
		t.Errorf("token %d after %d", second.lock.Token(), lock.Token())
	}
	if events := sink.Events(); events[len(events)-1].State != report.Done {
		t.Errorf("last event %+v", events[len(events)-1])
	}

	// It is renewed for longer than it lasts by itself.
	first := leaseTime(t, c, lockName(t), "renewTime")
	for leaseTime(t, c, lockName(t), "renewTime").Sub(first) < 2*options.Duration {
		if err := second.lock.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if err := second.lock.Release(ctx); err != nil {
		t.Error(err)
	}
}

func leaseTime(t *testing.T, c *cluster.Cluster, name, field string) time.Time {
	t.Helper()
	lease, err := c.Get(t.Context(), leaseKind, cluster.SystemNamespace, name)
	if err != nil || lease == nil {
		t.Fatalf("%v, %v", lease, err)
	}
	at, err := time.Parse(time.RFC3339Nano, lease.Object["spec"].(map[string]any)[field].(string))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestServerGone checks that a write gives up when the API server does not come back, that the lock is lost by then, and
// that the user hears of it once.
func TestServerGone(t *testing.T) {
	t.Parallel()
	server := testcluster.Borrow(t)
	var sink report.Recorder
	c := connect(t, cluster.Options{Retry: soon, Sink: &sink})
	ns := namespace(t, c)
	lock, err := c.Lock(t.Context(), lockName(t), short("alice@node1"))
	if err != nil {
		t.Fatal(err)
	}
	server.StopAPIServer()
	_, unguarded := c.Create(t.Context(), object(t, configMap(ns, "one", "x")), cluster.WriteOptions{})
	_, guarded := c.Create(cluster.WithGuard(t.Context(), lock), object(t, configMap(ns, "two", "x")), cluster.WriteOptions{})
	if err := lock.Release(t.Context()); err != nil {
		t.Errorf("release of a lock that is lost: %v", err)
	}
	if err := server.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Version(t.Context()); err != nil {
		t.Error(err)
	}
	var told []report.State
	for _, e := range sink.Events() {
		told = append(told, e.State)
	}
	if want := []report.State{report.Started, report.Done}; !slices.Equal(told, want) {
		t.Errorf("the user was told %v, want %v: %+v", told, want, sink.Events())
	}
	check(t, unguarded, report.Unavailable, "create ConfigMap "+ns+"/one", "API server "+server.Host+": it does not answer: connection refused")
	check(t, guarded, report.Interrupted, "create ConfigMap "+ns+"/two", "was not renewed in time")
}

func mustGetLease(t *testing.T, c *cluster.Cluster, name string) *unstructured.Unstructured {
	t.Helper()
	lease, err := c.Get(t.Context(), leaseKind, cluster.SystemNamespace, name)
	if err != nil || lease == nil {
		t.Fatalf("%v, %v", lease, err)
	}
	return lease
}

// helperEnvironment makes this test program another administrator's process.
const helperEnvironment = "SOLUTIONCTL_TEST_LOCK"

// TestHelperProcess is not a test: it holds a lock and writes a ConfigMap for every line of its standard input.
func TestHelperProcess(t *testing.T) {
	t.Parallel()
	setting := os.Getenv(helperEnvironment)
	if setting == "" {
		t.Skip("runs as another process only")
	}
	fields := strings.Fields(setting)
	kubeconfig, name, ns := fields[0], fields[1], fields[2]
	c := connect(t, cluster.Options{Kubeconfig: kubeconfig})
	lock, err := c.Lock(t.Context(), name, short("alice@node1"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("locked %d\n", lock.Token())
	ctx := cluster.WithGuard(t.Context(), lock)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		_, err := c.Create(ctx, object(t, configMap(ns, lines.Text(), "x")), cluster.WriteOptions{})
		fmt.Printf("wrote %s: %s\n", lines.Text(), report.CodeOf(err))
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// helper is another process that holds a lock.
type helper struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startHelper(t *testing.T, name, namespace string) *helper {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperProcess$")
	cmd.Env = append(os.Environ(), helperEnvironment+"="+testcluster.Borrow(t).Kubeconfig+" "+name+" "+namespace)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := &helper{cmd, in, bufio.NewScanner(out)}
	t.Cleanup(func() {
		_ = h.Process.Signal(syscall.SIGCONT)
		_ = h.Process.Kill()
		_ = h.Wait()
	})
	return h
}

// expect reads the next line of the other process.
func (h *helper) expect(t *testing.T, want string) {
	t.Helper()
	if !h.out.Scan() || !strings.HasPrefix(h.out.Text(), want) {
		t.Fatalf("the other process says %q, want %q", h.out.Text(), want)
	}
}

func (h *helper) write(t *testing.T, name string) {
	t.Helper()
	if _, err := fmt.Fprintln(h.in, name); err != nil {
		t.Fatal(err)
	}
}

func (h *helper) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := h.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// TestStoppedHolder checks that a process that is stopped loses the lock, that the next one gets it, and that the first
// can write nothing when it comes back.
func TestStoppedHolder(t *testing.T) {
	t.Parallel()
	c := connect(t, cluster.Options{})
	ns := namespace(t, c)
	alice := startHelper(t, lockName(t), ns)
	alice.expect(t, "locked 1")
	alice.write(t, "first")
	alice.expect(t, "wrote first: ")

	_, err := c.Lock(t.Context(), lockName(t), short("bob@node2"))
	check(t, err, report.Locked, "alice@node1")

	alice.signal(t, syscall.SIGSTOP)
	lock, err := c.Lock(t.Context(), lockName(t), waiting("bob@node2"))
	if err != nil {
		t.Fatal(err)
	}
	if lock.Token() != 2 {
		t.Errorf("token %d, want 2", lock.Token())
	}
	alice.write(t, "second")
	alice.signal(t, syscall.SIGCONT)
	alice.expect(t, "wrote second: interrupted")
	if err := lock.Check(); err != nil {
		t.Errorf("the new holder: %v", err)
	}
	if o, err := c.Get(t.Context(), configMapKind, ns, "second"); o != nil || err != nil {
		t.Errorf("it was written: %v, %v", o, err)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestStoppedHolderAlone checks that a stopped process continues if its lock was still free when it woke up.
func TestStoppedHolderAlone(t *testing.T) {
	t.Parallel()
	c := connect(t, cluster.Options{})
	ns := namespace(t, c)
	alice := startHelper(t, lockName(t), ns)
	alice.expect(t, "locked 1")
	alice.signal(t, syscall.SIGSTOP)
	for renewed := leaseTime(t, c, lockName(t), "renewTime"); time.Since(renewed) < soon; {
		runtime.Gosched()
	}
	alice.write(t, "second")
	alice.signal(t, syscall.SIGCONT)
	alice.expect(t, "wrote second: ")
	if o, err := c.Get(t.Context(), configMapKind, ns, "second"); o == nil || err != nil {
		t.Errorf("it was not written: %v", err)
	}
}

// TestKilledHolder checks that the lock of a process that was killed is free before long.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	c := connect(t, cluster.Options{})
	ns := namespace(t, c)
	alice := startHelper(t, lockName(t), ns)
	alice.expect(t, "locked 1")
	alice.signal(t, syscall.SIGKILL)
	lock, err := c.Lock(t.Context(), lockName(t), waiting("bob@node2"))
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestManyWantTheLock checks that never two have it at once.
func TestManyWantTheLock(t *testing.T) {
	t.Parallel()
	const people = 8
	inside, finished := make(chan int, 1), make(chan error)
	for i := range people {
		c := connect(t, cluster.Options{})
		go func() {
			lock, err := c.Lock(t.Context(), lockName(t), waiting(fmt.Sprintf("person%d@node", i)))
			if err != nil {
				finished <- err
				return
			}
			select {
			case inside <- i:
			default:
				err = fmt.Errorf("person %d has the lock while %d has it", i, <-inside)
			}
			for range 20 {
				if _, getErr := c.Get(t.Context(), namespaceKind, "", "default"); getErr != nil {
					err = getErr
				}
			}
			<-inside
			if releaseErr := lock.Release(t.Context()); releaseErr != nil {
				err = releaseErr
			}
			finished <- err
		}()
	}
	for range people {
		if err := <-finished; err != nil {
			t.Error(err)
		}
	}
	lease := mustGetLease(t, connect(t, cluster.Options{}), lockName(t))
	if n := lease.Object["spec"].(map[string]any)["leaseTransitions"]; n != int64(people) {
		t.Errorf("the lock changed hands %v times, want %d", n, people)
	}
}
