package survey

import (
	"context"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// A watched status is read again when something changes that it was read from, and from time to time: leases expire.
const (
	gatherChanges = 200 * time.Millisecond // changes seldom come alone
	readUnwatched = 5 * time.Second        // between two reads where changes cannot be watched, and after an error
	readAtLatest  = 30 * time.Second
)

// WatchStatus passes on the status of the cluster, and each later one, until ctx is done, without an error. It watches the objects that the
// status was read from. An API server that cannot be reached later is passed on as an error, without a status. The error of show, and
// any other error, ends the watch.
func (v *Survey) WatchStatus(ctx context.Context, o StatusOptions, show func(*schema.Status, error) error) error {
	follower := v.Cluster.Follower(ctx)
	defer follower.Close()
	for first := true; ; first = false {
		reading, reads := cluster.WithReads(ctx)
		status, err := v.Status(reading, o)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && (first || report.CodeOf(err) != report.Unavailable) {
			return err
		}
		if failure := show(status, err); failure != nil {
			return failure
		}
		wait := readAtLatest
		if err != nil || !follower.Follow(reads) {
			wait = readUnwatched
		}
		if !awaitChanges(ctx, follower.Changed(), wait) {
			return nil
		}
	}
}

// awaitChanges waits for a change and those that come with it, but not longer than most. It reports false when ctx is done.
func awaitChanges(ctx context.Context, changed <-chan struct{}, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	case <-changed:
		return cluster.Sleep(ctx, gatherChanges) == nil
	}
}
