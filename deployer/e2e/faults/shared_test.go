//go:build linux

package faults

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

// lane is that of all tests: a cluster, its archives and the versions that it has imported take as long as killing a verb three times.
var lane struct {
	sync.Mutex
	*Lane
}

// SharedLane returns the lane of all tests, one of which prepares it, with the program of the checkout. It goes with the shared cluster.
func SharedLane(t *testing.T) *Lane {
	t.Helper()
	lane.Lock()
	defer lane.Unlock()
	if lane.Lane != nil {
		return lane.Lane
	}
	c := testcluster.Shared(t)
	dir := filepath.Join(c.Dir, "lane")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if lane.Lane, err = NewLane(context.WithoutCancel(t.Context()), c, testcluster.Program(t, c.Dir), dir); err != nil {
		t.Fatal(err)
	}
	return lane.Lane
}
