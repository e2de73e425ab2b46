package live

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
)

// watch looks again when something has changed until leave is called by as many as have called watch.
func (f *Feed) watch() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.viewers++; f.viewers > 1 {
		return
	}
	ctx, stop := context.WithCancel(f.Context)
	f.stop, f.news, f.apart, f.away = stop, make(chan struct{}), minInterval, false
	f.user.liveness.join(f)
	go f.keepLooking(ctx)
	go f.keepAsking(ctx)
}

func (f *Feed) keepLooking(ctx context.Context) {
	follower := f.follower(ctx)
	defer follower.Close()
	for same := 0; ctx.Err() == nil; same++ { // reads in a row that have found no change
		soonest := f.After(minInterval)
		before := f.digest()
		f.lookAgain(ctx)     // errors are part of the snapshot
		debug.FreeOSMemory() // in a large cluster a read takes several times the memory of its result, and the next one may be far away
		if f.digest() != before && !follower.IsFlapping() {
			same = 0
		}
		changed, apart := f.follow(follower, same)
		if changed == nil {
			f.lookAfter(minInterval)
		} else {
			f.lookAfter(min(apart, quiet))
		}
		if f.rest(ctx, changed, apart, soonest) {
			same = -1
		}
	}
}

// follower returns a follower of nothing yet, on the clock of the feed.
func (f *Feed) follower(ctx context.Context) *cluster.Follower {
	follower := f.Cluster.Follower(ctx)
	follower.Now, follower.After, follower.Answered = f.Now, f.After, f.user.liveness.answered
	return follower
}

// follow watches what was read, and returns how changes are reported and when to read again without one, after so many reads that have found
// none.
func (f *Feed) follow(follower *cluster.Follower, same int) (changed <-chan struct{}, apart time.Duration) {
	const most = 10 // doublings
	if reads := f.followable(); reads == nil || !follower.Follow(reads) {
		return nil, min(minInterval<<min(same, most), quiet)
	}
	if same > 0 && f.isReady() {
		return follower.Changed(), still
	}
	return follower.Changed(), min(maxInterval<<min(same, most), still)
}

// rest waits until the cluster is to be read again, and reports whether something has happened.
func (f *Feed) rest(ctx context.Context, changed <-chan struct{}, apart time.Duration, soonest <-chan time.Time) bool {
	for due := f.Now().Add(apart); ; {
		step := apart
		if changed != nil {
			step = min(due.Sub(f.Now()), quiet)
		}
		select {
		case <-ctx.Done():
			return true
		case <-f.wake:
			return true
		case <-f.After(step):
			if changed == nil || !f.Now().Before(due) || !f.isValid(ctx) {
				return false
			}
		case <-changed:
			for _, moment := range []<-chan time.Time{f.After(settleTime), soonest} {
				select {
				case <-ctx.Done():
				case <-moment:
				}
			}
			return true
		}
	}
}

// isValid reports whether the last snapshot is still the state of the cluster while no watch reports a change: it is not old, and the user
// has the same permissions.
func (f *Feed) isValid(ctx context.Context) bool {
	f.mu.Lock()
	last := f.last
	f.mu.Unlock()
	now := f.Now()
	if last.Stale != nil || now.Sub(last.at) >= still {
		return false
	}
	asking, stop := context.WithTimeout(cluster.WithRetry(ctx, readRetry), readTimeout)
	defer stop()
	if !f.user.permissions.unchanged(asking, f.Source, last.reads.Namespaces(), last.at) {
		return false
	}
	f.user.liveness.answered()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rested = now
	return true
}

// digest identifies what was read last, "" before that.
func (f *Feed) digest() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil {
		return ""
	}
	return f.last.digest
}

// isReady reports whether everything is ready. Then only leases expire, which matter to those who wait, and rights are withdrawn.
func (f *Feed) isReady() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last != nil && f.last.isReady()
}

// followable returns the reads of the last snapshot, nil when it failed: then only another read can find changes.
func (f *Feed) followable() *cluster.Reads {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil || f.err != nil {
		return nil
	}
	return f.last.reads
}

func (f *Feed) lookAfter(apart time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apart = apart
}

func (f *Feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.viewers--; f.viewers == 0 {
		f.stop()
		f.user.liveness.leave(f)
	}
}
