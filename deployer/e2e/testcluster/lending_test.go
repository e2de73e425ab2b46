package testcluster

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
)

// TestBorrow: a cluster has one test at a time, with its subtests, and the next test waits for it.
func TestBorrow(t *testing.T) {
	var l lending
	starts := 0
	borrow := func(tb testing.TB) *Cluster {
		tb.Helper()
		c, err := l.borrow(tb, func() (*Cluster, error) { starts++; return &Cluster{}, nil })
		if err != nil {
			tb.Fatal(err)
		}
		return c
	}
	t.Run("tests", func(t *testing.T) {
		first := borrow(t)
		t.Run("inside", func(t *testing.T) {
			if borrow(t) != first {
				t.Error("a subtest has another cluster than its test")
			}
		})
		if borrow(t) != first {
			t.Error("a test has two clusters")
		}
	})
	var using [lendable + 1]atomic.Bool // by cluster, in the order of their start
	t.Run("others", func(t *testing.T) {
		for range 20 {
			t.Run("one", func(t *testing.T) {
				t.Parallel()
				c := borrow(t)
				var n int
				l.locked(func() { n = slices.Index(l.started, c) })
				if !using[n].CompareAndSwap(false, true) {
					t.Error("two tests have one cluster")
				}
				t.Cleanup(func() { using[n].Store(false) })
			})
		}
	})
	if starts > lendable || len(l.started) != starts {
		t.Errorf("%d clusters were started, %d are known", starts, len(l.started))
	}
	failed := errors.New("no memory")
	var none lending
	for range lendable + 1 { // a failure keeps nothing
		if _, err := none.borrow(t, func() (*Cluster, error) { return nil, failed }); !errors.Is(err, failed) {
			t.Errorf("%v, want %v", err, failed)
		}
	}
}
