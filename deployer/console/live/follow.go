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
	f.user.pulse.join(f)
	go f.keepLooking(ctx)
	go f.keepHearing(ctx)
}

func (f *Feed) keepLooking(ctx context.Context) {
	follower := f.follower(ctx)
	defer follower.Close()
	for ctx.Err() == nil {
		soonest := f.After(minInterval)
		before := f.digest()
		f.lookAgain(ctx)     // errors are part of the snapshot
		debug.FreeOSMemory() // in a large cluster a read takes several times the memory of its result, and the next one may be far away
		changed, apart := f.follow(follower, before)
		f.lookAfter(apart)
		f.rest(ctx, changed, apart, soonest)
	}
}

// follower returns a follower of nothing yet, on the clock of the feed.
func (f *Feed) follower(ctx context.Context) *cluster.Follower {
	follower := f.Cluster.Follower(ctx)
	follower.After, follower.Answered = f.After, f.user.pulse.beat
	return follower
}

// follow watches what was read, and returns how changes are reported and when to read again without one. Before is the digest of the
// snapshot before.
func (f *Feed) follow(follower *cluster.Follower, before string) (changed <-chan struct{}, apart time.Duration) {
	reads := f.followable()
	if reads == nil || !follower.Follow(reads) {
		return nil, minInterval
	}
	if f.isQuiet(before) {
		return follower.Changed(), quiet
	}
	return follower.Changed(), maxInterval
}

// rest waits until the cluster is to be read again.
func (f *Feed) rest(ctx context.Context, changed <-chan struct{}, apart time.Duration, soonest <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
			return
		case <-f.After(apart):
			if apart == quiet && f.isValid(ctx) {
				continue
			}
			return
		case <-changed:
			for _, moment := range []<-chan time.Time{f.After(settleTime), soonest} {
				select {
				case <-ctx.Done():
				case <-moment:
				}
			}
			return
		}
	}
}

// isValid reports whether the last snapshot, of a cluster where everything is ready, is still the state of the cluster: it is not old,
// no watch has reported a change, and the user has the same permissions.
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
	f.user.pulse.beat()
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

// isQuiet reports whether everything is ready, as it was in the snapshot with this digest. Then only leases expire, which matter to those
// who wait, and rights are withdrawn.
func (f *Feed) isQuiet(before string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last != nil && f.last.digest == before && f.last.isReady()
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
		f.user.pulse.leave(f)
	}
}
