package testcluster

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
)

// shared are the clusters of this process's tests. Go offers a test no other way to what its TestMain has made.
var shared struct {
	options Options
	sync.Mutex
	cluster *Cluster
	err     error
	lent    lending
}

// Main runs the tests of a package, which can ask for a cluster with these options, and exits.
//
//	func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{}) }
//
// Parallel tests wait for clusters and not for each other: few clusters run at once, so that all of these tests may wait for one.
// Where TEST_KUBERNETES=oldest, clusters without a node that runs containers are of [OldestKubernetes].
func Main(m *testing.M, o Options) {
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	o.Oldest, o.OneProcessor = oldest(o), true
	shared.options = o
	shared.lent.limit = o.Lent
	parallel := "100"
	if IsAlone() {
		parallel = "1"
	}
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ignore := context.AfterFunc(ctx, func() { os.Exit(finish(1)) })
	status := m.Run()
	ignore()
	stop()
	os.Exit(finish(status))
}

// oldest reports whether a cluster is to be of [OldestKubernetes]. It reads the environment, because a flag would have to be defined in
// every package.
func oldest(o Options) bool { return os.Getenv("TEST_KUBERNETES") == "oldest" && !o.Node }

// Shared returns the cluster that all tests of the package share. The first call starts it. Where this host lacks what it
// needs, the test is skipped, except where CI=true.
func Shared(tb testing.TB) *Cluster {
	tb.Helper()
	if shared.options.Node {
		RequireNode(tb)
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster == nil && shared.err == nil {
		shared.cluster, shared.err = Start(context.Background(), shared.options)
	}
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.cluster
}

// Borrow returns a cluster of the package that no other test uses until this one ends, and waits for it. There are at most two, or as many
// as [Options].Lent, started when they are needed: tests that change the whole cluster, and wait for it, run side by side. They call
// tb.Parallel first. What a test and its subtests borrow is one cluster.
func Borrow(tb testing.TB) *Cluster {
	tb.Helper()
	c, err := shared.lent.borrow(tb, func() (*Cluster, error) { return Start(context.Background(), shared.options) })
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// StartFor starts a cluster for one test, after which it ends. When the test has failed, the logs stay. It waits while as many of them run
// as the machine carries: a test calls it once.
func StartFor(tb testing.TB, o Options) *Cluster {
	tb.Helper()
	if o.Node {
		RequireNode(tb)
	}
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	o.Oldest, o.OneProcessor = o.Oldest || oldest(o), true
	if err := Build(tb.Context(), o); err != nil { // before a slot is taken
		tb.Fatal(err)
	}
	slot, err := takeSlot(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if failure := slot.Close(); failure != nil {
			tb.Error(failure)
		}
	})
	c, err := Start(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			logs, err := c.keepLogs()
			tb.Logf("the logs of the cluster are in %s", logs)
			if err != nil {
				tb.Error(err)
			}
		} else if err := c.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

// RequireNode skips a test where a cluster cannot have a real node; where CI=true, the test fails.
func RequireNode(tb testing.TB) {
	tb.Helper()
	if err := CheckNode(); err != nil {
		if os.Getenv("CI") == "true" {
			tb.Fatal(err)
		}
		tb.Skip(err)
	}
}

// Long skips a test in short mode, in which 'make test' runs; 'make check' runs it. Instead names the test that checks the most important
// part of it in short mode.
func Long(tb testing.TB, instead string) {
	tb.Helper()
	if testing.Short() {
		tb.Skipf("a long test: 'make check' runs it, and in short mode there is %s", instead)
	}
}

// finish stops the clusters. When tests have failed, the logs stay.
func finish(status int) int {
	shared.Lock()
	defer shared.Unlock()
	clusters := shared.lent.started
	if shared.cluster != nil {
		clusters = append(clusters, shared.cluster)
	}
	shared.cluster, shared.lent.started = nil, nil
	for _, c := range clusters {
		var err error
		if status == 0 {
			err = c.Stop()
		} else {
			var dir string
			dir, err = c.keepLogs()
			fmt.Fprintf(os.Stderr, "the logs of the cluster are in %s\n", dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	return status
}
