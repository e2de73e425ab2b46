package console

import (
	"context"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema/report"
)

// hearing is how old the answer of a Prometheus becomes while somebody looks. It is asked beside the look at the cluster, which
// does not wait for it: it may be slow, or nobody may answer.
const hearing = 15 * time.Second

// heard is the last answer of a Prometheus.
type heard struct {
	told   *page.Heard // nil before the first answer
	failed error
	when   time.Time
	sounds string // a digest of it
}

// hear asks for alerts, unless that is being done or was just done. It is for who watches, or waits: when a token is renewed in the
// background, the browser of somebody else would not get to know the new one. The caller has the mutex of the feed.
func (f *feed) hear(ctx context.Context) {
	if f.asking != nil || f.heard.told != nil && f.Now().Sub(f.heard.when) < hearing || f.last != nil && f.last.refused != nil {
		return
	}
	f.asking = make(chan struct{})
	go f.hearNow(context.WithoutCancel(ctx))
}

func (f *feed) hearNow(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	list, err := f.Ask(ctx)
	told := &page.Heard{List: list}
	if err != nil && report.CodeOf(err) != report.NotFound {
		told.Problem = page.ProblemOf(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard = heard{told: told, failed: err, when: f.Now()}
	if !told.IsSilent() { // else pages stay as they are
		f.heard.sounds = digest(told)
	}
	if f.last != nil && f.last.refused == nil {
		next := *f.last
		next.heard = f.heard
		f.publish(&next)
	}
	close(f.asking)
	f.asking = nil
}

func (f *feed) lastHeard() heard {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.heard
}

// keepHearing asks again and again while somebody watches.
func (f *feed) keepHearing(ctx context.Context) {
	for {
		f.mu.Lock()
		f.hear(ctx)
		f.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(hearing):
		}
	}
}

// awaitAlerts asks for alerts, unless the last answer is young enough, and waits for the answer. It returns the last snapshot with it.
func (f *feed) awaitAlerts(ctx context.Context) (*snapshot, heard, error) {
	f.mu.Lock()
	f.hear(ctx)
	asking := f.asking
	f.mu.Unlock()
	if asking != nil {
		select {
		case <-asking:
		case <-ctx.Done():
			return nil, heard{}, ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last, f.heard, nil
}
