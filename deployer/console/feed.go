package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/deployer/loader"
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
	sight    = patience * 5 / 6        // for a look, which ends before whoever waits for it gives up
	retry    = 2 * time.Second         // for which a look tries to reach an API server that does not answer: it is told then, and there is another look
	pulse    = time.Second             // between two questions whether the API server is there, while somebody watches
	unheard  = 1500 * time.Millisecond // after which it is not
	soon     = 50 * time.Millisecond   // a browser that has to wait longer gets the frame of its page first
)

// snapshot is what a user saw of the cluster, or of an environment, at one moment.
type snapshot struct {
	status      *schema.Status
	locks       []cluster.Held
	loader      *schema.LoadProgress      // nil where it never ran, or the user may not see it
	unloaded    error                     // why the user does not see it
	reads       *cluster.Reads            // what it was made of
	environment *schema.EnvironmentStatus // of a visitor, who sees nothing else
	heard                                 // which is asked for apart
	digest      string                    // of all that is shown
	at          time.Time
	// stale tells since when there is nothing newer, and why.
	stale *page.Stale
	// refused tells why the user may not see it any more.
	refused error
}

// feed keeps the last snapshot of an identity and, while some of its browsers watch, gets new ones: one request of each
// kind, however many browsers there are.
type feed struct {
	cluster *cluster.Cluster
	see     func(ctx context.Context) (*snapshot, error)
	ask     func(ctx context.Context) (*schema.AlertList, error)

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

// everything is the feed of the whole cluster.
func (c *Console) everything(i *session.Identity) *feed {
	return stateOf(i).feeds.of(i.Cluster, survey.EnvironmentOptions{}, c.accepted(i, func(ctx context.Context) (*snapshot, error) {
		d := c.deployer(i, nil)
		status, err := d.Survey.Status(ctx, survey.StatusOptions{})
		if err != nil {
			return nil, err
		}
		s := &snapshot{status: status}
		s.locks, _ = d.Cluster.Locks(ctx) // who may not see them sees the rest
		if s.loader, s.unloaded = loader.Read(ctx, d.Cluster); s.loader != nil {
			loader.Compare(s.loader, status.Environments)
		}
		return s, nil
	}), func(ctx context.Context) (*schema.AlertList, error) {
		return c.deployer(i, nil).Survey.Alerts(ctx, survey.AlertOptions{})
	})
}

// environmentFeed is the feed of what a visitor may see of an environment.
func (c *Console) environmentFeed(i *session.Identity, environment, namespace string) *feed {
	o := survey.EnvironmentOptions{Environment: environment, Namespace: namespace, Members: true}
	return stateOf(i).feeds.of(i.Cluster, o, c.accepted(i, func(ctx context.Context) (*snapshot, error) {
		status, err := c.deployer(i, nil).Survey.EnvironmentStatus(ctx, o)
		return &snapshot{environment: status}, err
	}), func(ctx context.Context) (*schema.AlertList, error) {
		return c.deployer(i, nil).Survey.Alerts(ctx, survey.AlertOptions{Environment: environment, Namespace: namespace})
	})
}

// accepted is a look after which the sessions of a user are over whose token the API server does not accept any more: pages that are open
// say so at once.
func (c *Console) accepted(i *session.Identity, see func(context.Context) (*snapshot, error)) func(context.Context) (*snapshot, error) {
	return func(ctx context.Context) (*snapshot, error) {
		s, err := see(ctx)
		if report.CodeOf(err) == report.Unauthenticated && i.Way != session.ByLink {
			c.sessions.Refuse(i)
		}
		return s, err
	}
}

// of returns the feed of something, which is made when nobody has looked at it for long.
func (l *feeds) of(from *cluster.Cluster, what survey.EnvironmentOptions, see func(ctx context.Context) (*snapshot, error),
	ask func(ctx context.Context) (*schema.AlertList, error),
) *feed {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.all[what]; f != nil {
		return f
	}
	if len(l.all) >= maxOpened {
		maps.DeleteFunc(l.all, func(_ survey.EnvironmentOptions, f *feed) bool { return f.isIdle() })
	}
	f := &feed{cluster: from, see: see, ask: ask, wake: make(chan struct{}, 1)}
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
	return age < fresh || f.viewers > 0 && age < f.apart+patience
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
func (c *Console) look(ctx context.Context, f *feed, slow func()) (*snapshot, error) {
	f.mu.Lock()
	if f.isFresh(c.Now()) {
		defer f.mu.Unlock()
		return f.last, nil
	}
	looking, reads := c.looking(ctx, f)
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

// looking returns the look that is under way, or a new one, and what it reads. The caller has the lock of the feed.
func (c *Console) looking(ctx context.Context, f *feed) (ended <-chan struct{}, reads *cluster.Reads) {
	if f.looking == nil {
		f.looking, f.expired = make(chan struct{}), false
		// Others wait for it as well: it does not end because one of them goes away.
		var shared context.Context
		shared, f.reads = cluster.WithReads(context.WithoutCancel(ctx))
		go c.lookNow(shared, f, f.looking, f.reads)
	}
	return f.looking, f.reads
}

// lookAgain waits for the end of a look.
func (c *Console) lookAgain(ctx context.Context, f *feed) {
	f.mu.Lock()
	looking, _ := c.looking(ctx, f)
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

func (c *Console) lookNow(ctx context.Context, f *feed, looking chan struct{}, reads *cluster.Reads) {
	ctx, cancel := context.WithTimeout(cluster.WithRetry(ctx, retry), sight)
	defer cancel()
	at := c.Now()
	next, err := f.see(ctx)
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
	if c.Now().Sub(f.heard.when) < patience { // else nobody has watched since
		next.heard = f.heard
	}
	f.publish(next)
}

// outdated is a snapshot after which there was none, for that reason.
func (s *snapshot) outdated(why error) *snapshot {
	kept := *s
	kept.stale = &page.Stale{Since: kept.at, Why: why.Error()}
	return &kept
}

// keepAsking asks whether the API server is there: a watch does not tell that it hangs, and the next look may be far away.
func (c *Console) keepAsking(ctx context.Context, f *feed) {
	away := false
	for ctx.Err() == nil {
		asking, stop := context.WithTimeout(cluster.WithRetry(ctx, 0), unheard)
		err := orTooSlow(f.cluster.Ping(asking))
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
func (c *Console) watch(f *feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.viewers++; f.viewers > 1 {
		return
	}
	ctx, stop := context.WithCancel(c.ctx)
	f.stop, f.news, f.apart = stop, make(chan struct{}), interval
	go c.keepLooking(ctx, f)
	go c.keepHearing(ctx, f)
	go c.keepAsking(ctx, f)
}

func (c *Console) keepLooking(ctx context.Context, f *feed) {
	follower := f.cluster.Follower(ctx)
	defer follower.Close()
	for ctx.Err() == nil {
		soonest := time.After(interval)
		c.lookAgain(ctx, f)  // what goes wrong is part of the snapshot
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

// mark tells what a browser sees of a snapshot.
func (s *snapshot) mark() string {
	if s.stale != nil {
		return s.digest + s.sounds + "-stale"
	}
	return s.digest + s.sounds
}

func digest(parts ...any) string {
	data, err := json.Marshal(parts)
	if err != nil {
		return err.Error() // documents are made of what JSON has
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}
