package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// interval is between two looks at the cluster while somebody watches; what is younger than fresh is shown as it is.
const (
	interval = 2 * time.Second
	fresh    = time.Second
)

// snapshot is what a user saw of the cluster at one moment.
type snapshot struct {
	status *schema.Status
	locks  []cluster.Held
	digest string // of all that is shown
	at     time.Time
	// stale tells since when there is nothing newer, and why.
	stale *page.Stale
}

// feed keeps the last snapshot of an identity and, while some of its browsers watch, gets new ones: one request of each
// kind, however many browsers there are.
type feed struct {
	mu      sync.Mutex
	last    *snapshot
	looking chan struct{} // closed when the look that is under way has ended; nil when there is none
	err     error         // of the last look
	expired bool          // something was changed since it began
	news    chan struct{} // closed when last changes
	viewers int
	stop    context.CancelFunc
}

// look returns a snapshot that is younger than fresh. When there can be none the last one is returned, which says so; the
// error is for when there never was one.
func (c *Console) look(ctx context.Context, i *identity) (*snapshot, error) {
	f := &i.feed
	f.mu.Lock()
	if f.last != nil && f.last.stale == nil && !f.expired && c.Now().Sub(f.last.at) < fresh {
		defer f.mu.Unlock()
		return f.last, nil
	}
	looking := f.looking
	if looking == nil {
		looking = make(chan struct{})
		f.looking, f.expired = looking, false
		// Others wait for it as well: it does not end because one of them goes away.
		go c.lookNow(context.WithoutCancel(ctx), i, looking)
	}
	f.mu.Unlock()
	select {
	case <-looking:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil || report.CodeOf(f.err) == report.Unauthenticated {
		return nil, f.err
	}
	return f.last, nil
}

func (c *Console) lookNow(ctx context.Context, i *identity, looking chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	next := &snapshot{at: c.Now()}
	v := &visit{session: &session{identity: i}, console: c}
	d := v.deployer(nil)
	var err error
	if next.status, err = d.Survey.Status(ctx, survey.StatusOptions{}); err == nil {
		next.locks, _ = d.Cluster.Locks(ctx) // who may not see them sees the rest
		next.digest = digest(next.status, next.locks)
	}
	f := &i.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looking, f.err = nil, err
	defer close(looking)
	switch {
	case err == nil:
	case f.last == nil:
		return
	default: // what was seen stays
		kept := *f.last
		if kept.stale == nil {
			kept.stale = &page.Stale{Since: kept.at}
		} else {
			again := *kept.stale
			kept.stale = &again
		}
		kept.stale.Why = err.Error()
		next = &kept
	}
	changed := f.last == nil || next.digest != f.last.digest || (next.stale == nil) != (f.last.stale == nil)
	f.last = next
	if changed && f.news != nil {
		close(f.news)
		f.news = make(chan struct{})
	}
}

// expire makes the next look a new one: something was changed.
func (f *feed) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expired = true
}

// watch looks again and again until leave is called by as many as have called watch.
func (c *Console) watch(i *identity) {
	f := &i.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.viewers++; f.viewers > 1 {
		return
	}
	ctx, stop := context.WithCancel(c.ctx)
	f.stop, f.news = stop, make(chan struct{})
	go func() {
		for ctx.Err() == nil {
			_, _ = c.look(ctx, i) // what goes wrong is part of the snapshot
			select {
			case <-ctx.Done():
			case <-time.After(interval):
			}
		}
	}()
}

func (c *Console) leave(i *identity) {
	f := &i.feed
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
		return s.digest + "-stale"
	}
	return s.digest
}

func digest(parts ...any) string {
	data, err := json.Marshal(parts)
	if err != nil {
		return err.Error() // documents are made of what JSON has
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}
