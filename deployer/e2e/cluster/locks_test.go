package cluster_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/cluster"
)

func lockNames(t *testing.T, from, to int) []string {
	t.Helper()
	var names []string
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprintf("%s-%02d", lockName(t), i))
	}
	return names
}

// allFree fails for every lock that is held.
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

// TestLockAllAtOnce checks that people who want some of the same locks get them in turn.
func TestLockAllAtOnce(t *testing.T) {
	t.Parallel()
	finished := make(chan error)
	inside := make(chan int, 1)
	sets := [][]string{lockNames(t, 0, 12), lockNames(t, 6, 18), lockNames(t, 3, 9), append(lockNames(t, 8, 12), lockNames(t, 0, 2)...)}
	for i, names := range sets {
		c := connect(t, cluster.Options{})
		go func() {
			options := waiting(fmt.Sprintf("person%d@node", i))
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
