// Package live has the changing parts of the console: snapshots of the cluster ([Feed]), operations in progress
// ([Operations]), and the streams of server-sent events about both ([Stream]).
//
// A feed reads with the permissions of one user. While browsers follow it, it reads again when objects change, and from
// time to time; otherwise it reads only for requested pages.
package live

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// While browsers watch, a feed reads again when objects change. Without that it reads after maxInterval, because leases expire and pods grow
// old, then after twice that time, and so on. After a failed read, and without permission to watch, it reads up to a minute later. Without viewers a
// snapshot younger than maxAge is shown as it is.
const (
	minInterval  = 2 * time.Second         // between two reads, and at first between those without a watch
	maxInterval  = 15 * time.Second        // at first between two reads
	quiet        = time.Minute             // between two checks of a user's permissions while nothing changes, and at most between two reads without a watch
	still        = 20 * time.Minute        // between two reads at most, and at once where everything is ready
	settleTime   = 100 * time.Millisecond  // wait for further changes after the first one
	maxAge       = time.Second             // of a snapshot without viewers
	readTimeout  = PageTimeout * 5 / 6     // a read ends before the page that waits for it gives up
	readRetry    = 2 * time.Second         // a read retries an API server that does not answer for so long; then pages report it
	pingInterval = time.Second             // between checks whether the API server answers, while browsers follow; it doubles up to maxPing
	maxPing      = 13 * time.Second        // between answers of an API server that has answered for a while; more than askInterval
	pingTimeout  = 1500 * time.Millisecond // an API server that does not answer within it counts as down
	pingAfter    = 500 * time.Millisecond  // a page that waits for a read for so long checks whether the API server answers
	frameAfter   = 50 * time.Millisecond   // a browser that waits for so long gets the frame of its page first
)

// PageTimeout bounds the time in which a page is answered.
const PageTimeout = 30 * time.Second

// maxFeeds bounds the feeds of one user; those without viewers make room.
const maxFeeds = 50

// Source is where a feed gets its snapshots from, with the rights of one user.
type Source struct {
	Context context.Context // bounds the work for following browsers
	Now     func() time.Time
	After   func(time.Duration) <-chan time.Time // reports that a time has passed, on the clock of Now
	Cluster *cluster.Cluster
	// See reads everything that is shown. It can call preview once with what it knows first.
	See func(ctx context.Context, preview func(*schema.Status)) (*Snapshot, error)
	// FindAlerts finds the Prometheus servers, and returns the function that asks them.
	FindAlerts func(ctx context.Context) (AskAlerts, error)
}

// Feed keeps the last snapshot of a user and, while browsers watch, reads new ones: one request of each kind, however many browsers
// there are.
type Feed struct {
	Source
	user *Feeds // all of the same user

	mu      sync.Mutex
	last    *Snapshot
	looking *look         // under way; nil when there is none
	err     error         // of the last look
	expired bool          // something was changed since it began
	news    chan struct{} // closed when last changes
	viewers int
	stop    context.CancelFunc
	away    bool          // the API server did not answer the last check
	wake    chan struct{} // has something when the next look is due at once
	apart   time.Duration // time between two reads without a change
	rested  time.Time     // when the last snapshot was found to be valid without a read

	alertAnswer AlertAnswer
	asking      chan struct{} // closed when the answer is there; nil without a request
	sources     *alertSources // nil before they were found
}

// look is a read that is under way.
type look struct {
	ended     chan struct{}
	reads     *cluster.Reads
	previewed chan struct{} // closed when there is a preview
	preview   *schema.Status
}

// Feeds are the feeds of one user: of everything, and of the environments that a visitor looks at.
type Feeds struct {
	Answers     Answers
	liveness    liveness
	permissions permissions

	mu  sync.Mutex
	all map[survey.EnvironmentOptions]*Feed
}

// Of returns the feed of everything, or of a visitor's environment. A new one reads from this source.
func (l *Feeds) Of(what survey.EnvironmentOptions, from Source) *Feed {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.all[what]; f != nil {
		return f
	}
	if len(l.all) >= maxFeeds {
		maps.DeleteFunc(l.all, func(_ survey.EnvironmentOptions, f *Feed) bool { return f.isIdle() })
	}
	f := &Feed{Source: from, user: l, wake: make(chan struct{}, 1)}
	if l.all == nil {
		l.all = map[survey.EnvironmentOptions]*Feed{}
	}
	l.all[what] = f
	return f
}

// isFresh reports whether the last snapshot can be shown as it is. While browsers follow, changes lead to new ones, and
// in a large cluster a read takes longer than a page may.
func (f *Feed) isFresh(now time.Time) bool {
	if f.last == nil || f.last.Stale != nil || f.last.refused != nil || f.expired {
		return false
	}
	if now.Sub(f.last.at) < maxAge {
		return true
	}
	confirmed := f.last.at
	if f.rested.After(confirmed) {
		confirmed = f.rested
	}
	return f.viewers > 0 && now.Sub(confirmed) < f.apart+PageTimeout
}

// Expire makes all feeds read again, after a change.
func (l *Feeds) Expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.all {
		f.expire()
	}
}

func (f *Feed) isIdle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.viewers == 0 && f.looking == nil
}

// Read returns a snapshot that is younger than maxAge. Where the cluster cannot be read it returns the last one, marked as stale. It
// fails when there never was a snapshot, and when the user is no longer allowed to see it. It waits for a read of a large cluster, but not
// for an API server that does not answer. Slow, unless nil, is called when the API server has begun to answer and the rest takes longer: with what is
// known before health is, or with nil and later with that.
func (f *Feed) Read(ctx context.Context, slow func(preview *schema.Status)) (*Snapshot, error) {
	f.mu.Lock()
	if f.isFresh(f.Now()) || f.isAway() {
		defer f.mu.Unlock()
		return f.last, nil
	}
	looking := f.startLook(ctx)
	f.mu.Unlock()
	if err := f.await(ctx, looking, slow); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil || f.last.refused != nil || report.CodeOf(f.err) == report.Unauthenticated {
		return nil, f.err
	}
	return f.last, nil
}

// isAway reports whether the API server is known not to answer, while browsers follow. Any other error needs a new read: a token that is
// no longer accepted ends the session. The caller has the mutex.
func (f *Feed) isAway() bool {
	return f.viewers > 0 && f.away && !f.expired && f.last != nil && f.last.refused == nil && report.CodeOf(f.err) != report.Unauthenticated
}

// await waits for a look until it ends, or until the API server does not answer: then what was seen last is stale, or the error is the reason why
// there is nothing. Slow, unless nil, is called when the API server, which knows the user, turns out to need more time.
func (f *Feed) await(ctx context.Context, l *look, slow func(preview *schema.Status)) error {
	doubt := time.After(pingAfter)
	var begun, previewed <-chan struct{}
	if slow != nil {
		select {
		case <-l.ended:
			return nil
		case <-time.After(frameAfter):
			begun, previewed = l.reads.Begun(), l.previewed
		case <-ctx.Done():
			return f.endOf(ctx)
		}
	}
	missed := make(chan error, 1)
	for {
		select {
		case <-l.ended:
			return nil
		case <-begun:
			begun = nil
			if !isClosed(previewed) {
				slow(nil)
			}
		case <-previewed:
			begun, previewed = nil, nil
			slow(l.preview)
		case <-doubt:
			go func() { missed <- f.reach(ctx) }()
		case err := <-missed:
			if err != nil && ctx.Err() == nil {
				return f.miss(err)
			}
		case <-ctx.Done():
			return f.endOf(ctx)
		}
	}
}

// endOf returns why a page waits no more: it is [Feed.miss] where another check of the same page has found the API server absent.
func (f *Feed) endOf(ctx context.Context) error {
	if why := context.Cause(ctx); report.CodeOf(why) == report.Unavailable {
		return f.miss(why)
	}
	return ctx.Err()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// startLook returns the read in progress, or a new one. The caller has the lock of the feed.
func (f *Feed) startLook(ctx context.Context) *look {
	if f.looking == nil {
		// Others wait for it as well: it does not end because one of them goes away.
		shared, reads := cluster.WithReads(context.WithoutCancel(ctx))
		f.looking, f.expired = &look{ended: make(chan struct{}), reads: reads, previewed: make(chan struct{})}, false
		go f.lookNow(shared, f.looking)
	}
	return f.looking
}

// lookAgain waits for the end of a look.
func (f *Feed) lookAgain(ctx context.Context) {
	f.mu.Lock()
	looking := f.startLook(ctx)
	f.mu.Unlock()
	select {
	case <-looking.ended:
	case <-ctx.Done():
	}
}

func (f *Feed) lookNow(ctx context.Context, l *look) {
	ctx, cancel := context.WithTimeout(cluster.WithRetry(ctx, readRetry), readTimeout)
	defer cancel()
	at := f.Now()
	next, err := f.See(ctx, func(s *schema.Status) {
		l.preview = s
		close(l.previewed)
	})
	err = ExplainTimeout(err)
	if err == nil {
		next.at, next.reads, next.digest = at, l.reads, Digest(next.Status, next.working(at), next.Environment, next.Loader)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looking, f.err = nil, err
	defer close(l.ended)
	switch {
	case err == nil:
	case f.last == nil:
		return
	case report.CodeOf(err) == report.Forbidden || report.CodeOf(err) == report.NotFound:
		next = &Snapshot{digest: "refused", at: at, refused: err}
	default: // the last state stays
		next = f.last.outdated(err)
	}
	next.AlertAnswer = f.recentAlerts()
	f.publish(next)
}

// answer records the result of a check whether the API server answers: nil when it does.
func (f *Feed) answer(err error) {
	f.mu.Lock()
	away := f.away
	f.away = err != nil && report.CodeOf(err) != report.Unauthenticated
	f.mu.Unlock()
	switch {
	case report.CodeOf(err) == report.Unauthenticated:
		f.lookSoon() // it ends the session
	case err != nil:
		_ = f.miss(err) // who asks for the first snapshot is answered by it
	case away:
		f.lookSoon()
	}
}

// reach asks the API server whether it is there. An answer that the user is not allowed to ask is one.
func (f *Feed) reach(ctx context.Context) error {
	err := f.ping(ctx)
	if report.CodeOf(err) == report.Unauthenticated {
		return nil
	}
	return err
}

// ping asks the API server whether it is there, and accepts the user's token.
func (f *Feed) ping(ctx context.Context) error {
	asking, stop := context.WithTimeout(cluster.WithRetry(ctx, 0), pingTimeout)
	defer stop()
	err := ExplainTimeout(f.Cluster.Ping(asking))
	if report.CodeOf(err) == report.Forbidden {
		return nil
	}
	if err != nil && asking.Err() != nil && ctx.Err() == nil {
		return report.Errorf(report.Unavailable, "API server %s does not answer", f.Cluster.Server())
	}
	return err
}

// miss marks the last snapshot as stale, and returns why there is none.
func (f *Feed) miss(why error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil {
		return why
	}
	if f.last.Stale == nil && f.last.refused == nil {
		f.publish(f.last.outdated(why))
	}
	return nil
}

// lookSoon makes the next look one that begins now.
func (f *Feed) lookSoon() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// publish makes a snapshot the last one. The caller has the mutex.
func (f *Feed) publish(next *Snapshot) {
	changed := f.last == nil || next.Mark() != f.last.Mark()
	f.last = next
	if changed && f.news != nil {
		close(f.news)
		f.news = make(chan struct{})
	}
}

// expire makes the next look a new one.
func (f *Feed) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expired = true
}

// next waits for a snapshot that differs from the one of a browser.
func (f *Feed) next(ctx context.Context, seen string) (*Snapshot, error) {
	for {
		f.mu.Lock()
		last, news := f.last, f.news
		f.mu.Unlock()
		if last != nil && last.Mark() != seen {
			return last, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ExplainTimeout replaces the error of an expired deadline by one that names the slow request; other errors stay.
func ExplainTimeout(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && report.CodeOf(err) == report.Failure {
		return report.Errorf(report.Timeout, "the API server takes too long to answer").WithHint("try again later: %s", report.Run("deploy doctor"))
	}
	return err
}
