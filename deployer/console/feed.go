package console

import (
	"context"
	"errors"
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// While somebody watches, a change in the cluster makes for another look, and so does time: leases run out, pods grow old. Without
// anybody who watches, what is younger than fresh is shown as it is.
const (
	interval = 2 * time.Second        // between two looks at least, and when nobody tells of changes
	longest  = 15 * time.Second       // between two looks
	gather   = 100 * time.Millisecond // changes seldom come alone
	fresh    = time.Second
	sight    = pageTimeout * 5 / 6     // for a look, which ends before whoever waits for it gives up
	retry    = 2 * time.Second         // for which a look tries to reach an API server that does not answer: it is told then, and there is another look
	pulse    = time.Second             // between two questions whether the API server is there, while somebody watches
	unheard  = 1500 * time.Millisecond // after which it is not
	soon     = 50 * time.Millisecond   // a browser that has to wait longer gets the frame of its page first
)

// pageTimeout bounds the time in which a page is answered.
const pageTimeout = 30 * time.Second

// maxFeeds bounds the feeds of one user; those without viewers make room.
const maxFeeds = 50

// source is where a feed gets its snapshots from, with the rights of one user.
type source struct {
	Context context.Context // ends what goes on while browsers watch
	Now     func() time.Time
	Cluster *cluster.Cluster
	See     func(ctx context.Context) (*snapshot, error)         // reads everything that is shown
	Ask     func(ctx context.Context) (*schema.AlertList, error) // asks Prometheus
}

// feed keeps the last snapshot of an identity and, while some of its browsers watch, gets new ones: one request of each
// kind, however many browsers there are.
type feed struct {
	source

	mu      sync.Mutex
	last    *snapshot
	looking chan struct{}  // closed when the look that is under way has ended; nil when there is none
	reads   *cluster.Reads // of that look
	err     error          // of the last look
	expired bool           // something was changed since it began
	news    chan struct{}  // closed when last changes
	viewers int
	stop    context.CancelFunc
	wake    chan struct{} // has something when the next look is due at once
	apart   time.Duration // how long after a look the next one begins, unless a change is told

	heard  heard
	asking chan struct{} // closed when the answer is there; nil while nobody is asked
}

// feeds are those of an identity: of everything, and of the environments that a visitor looks at.
type feeds struct {
	mu  sync.Mutex
	all map[survey.EnvironmentOptions]*feed
}

// of returns the feed of something, which is made when nobody has looked at it for long.
func (l *feeds) of(what survey.EnvironmentOptions, from source) *feed {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.all[what]; f != nil {
		return f
	}
	if len(l.all) >= maxFeeds {
		maps.DeleteFunc(l.all, func(_ survey.EnvironmentOptions, f *feed) bool { return f.isIdle() })
	}
	f := &feed{source: from, wake: make(chan struct{}, 1)}
	if l.all == nil {
		l.all = map[survey.EnvironmentOptions]*feed{}
	}
	l.all[what] = f
	return f
}

// isFresh tells whether the last snapshot can be shown as it is. While browsers watch, changes make for other ones, and in a large
// cluster a look takes longer than a page may.
func (f *feed) isFresh(now time.Time) bool {
	if f.last == nil || f.last.stale != nil || f.last.refused != nil || f.expired {
		return false
	}
	age := now.Sub(f.last.at)
	return age < fresh || f.viewers > 0 && age < f.apart+pageTimeout
}

// expire makes the next looks new ones: something was changed.
func (l *feeds) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.all {
		f.expire()
	}
}

func (f *feed) isIdle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.viewers == 0 && f.looking == nil
}

// look returns a snapshot that is younger than fresh. When there can be none the last one is returned, which says so; the
// error is for when there never was one, and for whoever may not see it any more. Slow, unless it is nil, is called when the API
// server has begun to answer and the rest takes its time.
func (f *feed) look(ctx context.Context, slow func()) (*snapshot, error) {
	f.mu.Lock()
	if f.isFresh(f.Now()) {
		defer f.mu.Unlock()
		return f.last, nil
	}
	looking, reads := f.startLook(ctx)
	f.mu.Unlock()
	if slow != nil && takesLong(ctx, looking, reads) {
		slow()
	}
	select {
	case <-looking:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil || f.last.refused != nil || report.CodeOf(f.err) == report.Unauthenticated {
		return nil, f.err
	}
	return f.last, nil
}

// startLook returns the look that is under way, or a new one, and what it reads. The caller has the lock of the feed.
func (f *feed) startLook(ctx context.Context) (ended <-chan struct{}, reads *cluster.Reads) {
	if f.looking == nil {
		f.looking, f.expired = make(chan struct{}), false
		// Others wait for it as well: it does not end because one of them goes away.
		var shared context.Context
		shared, f.reads = cluster.WithReads(context.WithoutCancel(ctx))
		go f.lookNow(shared, f.looking, f.reads)
	}
	return f.looking, f.reads
}

// lookAgain waits for the end of a look.
func (f *feed) lookAgain(ctx context.Context) {
	f.mu.Lock()
	looking, _ := f.startLook(ctx)
	f.mu.Unlock()
	select {
	case <-looking:
	case <-ctx.Done():
	}
}

// takesLong waits for a look until it ends soon or the API server, which knows the user, turns out to need more time.
func takesLong(ctx context.Context, looking <-chan struct{}, reads *cluster.Reads) bool {
	timely, stop := context.WithTimeout(ctx, soon)
	defer stop()
	for _, moment := range []<-chan struct{}{timely.Done(), reads.Begun()} {
		select {
		case <-moment:
		case <-looking:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (f *feed) lookNow(ctx context.Context, looking chan struct{}, reads *cluster.Reads) {
	ctx, cancel := context.WithTimeout(cluster.WithRetry(ctx, retry), sight)
	defer cancel()
	at := f.Now()
	next, err := f.See(ctx)
	err = orTooSlow(err)
	if err == nil {
		next.at, next.reads, next.digest = at, reads, digest(next.status, next.working(at), next.environment, next.loader)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looking, f.err = nil, err
	defer close(looking)
	switch {
	case err == nil:
	case f.last == nil:
		return
	case report.CodeOf(err) == report.Forbidden || report.CodeOf(err) == report.NotFound:
		next = &snapshot{digest: "refused", at: at, refused: err}
	default: // what was seen stays
		next = f.last.outdated(err)
	}
	next.heard = heard{}
	if f.Now().Sub(f.heard.when) < pageTimeout { // else nobody has watched since
		next.heard = f.heard
	}
	f.publish(next)
}

// keepAsking asks whether the API server is there: a watch does not tell that it hangs, and the next look may be far away.
func (f *feed) keepAsking(ctx context.Context) {
	away := false
	for ctx.Err() == nil {
		asking, stop := context.WithTimeout(cluster.WithRetry(ctx, 0), unheard)
		err := orTooSlow(f.Cluster.Ping(asking))
		stop()
		code := report.CodeOf(err)
		if err != nil && ctx.Err() == nil && code != report.Forbidden && code != report.Unauthenticated {
			away = true
			f.miss(err)
		} else if away {
			away = false
			f.lookSoon()
		}
		select {
		case <-ctx.Done():
		case <-time.After(pulse):
		}
	}
}

// miss says that nothing newer than the last snapshot can be had.
func (f *feed) miss(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last != nil && f.last.stale == nil && f.last.refused == nil {
		f.publish(f.last.outdated(why))
	}
}

// lookSoon makes the next look one that begins now.
func (f *feed) lookSoon() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// publish makes a snapshot the last one. The caller has the mutex.
func (f *feed) publish(next *snapshot) {
	changed := f.last == nil || next.mark() != f.last.mark()
	f.last = next
	if changed && f.news != nil {
		close(f.news)
		f.news = make(chan struct{})
	}
}

// expire makes the next look a new one.
func (f *feed) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expired = true
}

// watch looks again when something has changed until leave is called by as many as have called watch.
func (f *feed) watch() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.viewers++; f.viewers > 1 {
		return
	}
	ctx, stop := context.WithCancel(f.Context)
	f.stop, f.news, f.apart = stop, make(chan struct{}), interval
	go f.keepLooking(ctx)
	go f.keepHearing(ctx)
	go f.keepAsking(ctx)
}

func (f *feed) keepLooking(ctx context.Context) {
	follower := f.Cluster.Follower(ctx)
	defer follower.Close()
	for ctx.Err() == nil {
		soonest := time.After(interval)
		f.lookAgain(ctx)     // what goes wrong is part of the snapshot
		debug.FreeOSMemory() // in a large cluster a look takes several times of what is kept, and the next one may be far away
		var changed <-chan struct{}
		apart := interval
		if reads := f.followable(); reads != nil && follower.Follow(reads) {
			changed, apart = follower.Changed(), longest
		}
		f.lookAfter(apart)
		select {
		case <-ctx.Done():
		case <-f.wake:
		case <-time.After(apart):
		case <-changed:
			for _, moment := range []<-chan time.Time{time.After(gather), soonest} {
				select {
				case <-ctx.Done():
				case <-moment:
				}
			}
		}
	}
}

// followable is what the last look has read, nil when it failed: then only another one tells whether anything has changed.
func (f *feed) followable() *cluster.Reads {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil || f.err != nil {
		return nil
	}
	return f.last.reads
}

func (f *feed) lookAfter(apart time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apart = apart
}

func (f *feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.viewers--; f.viewers == 0 {
		f.stop()
	}
}

// next waits until something else is seen than what a browser has.
func (f *feed) next(ctx context.Context, seen string) (*snapshot, error) {
	for {
		f.mu.Lock()
		last, news := f.last, f.news
		f.mu.Unlock()
		if last != nil && last.mark() != seen {
			return last, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// orTooSlow says in words that nobody waits any longer.
func orTooSlow(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && report.CodeOf(err) == report.Failure {
		return report.Errorf(report.Timeout, "the API server takes too long to answer").WithHint("try again later: %s", report.Run("deploy doctor"))
	}
	return err
}
