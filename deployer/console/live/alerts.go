package live

import (
	"context"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema/report"
)

// hearing is the age after which Prometheus is asked again while browsers watch. Reading the cluster does not wait for the answer:
// Prometheus may be slow, or not answer at all.
const hearing = 15 * time.Second

// silence is the age after which a Prometheus is looked for again where none is known.
const silence = time.Minute

// AlertAnswer is an answer of Prometheus, or why there is none.
type AlertAnswer struct {
	Alerts  *page.Heard // nil before the first answer
	Failure error
	when    time.Time
	sounds  string // a digest of it
}

// hear asks for alerts, unless that is being done or was just done. Only a request of a browser calls it: when a token is renewed in
// the background, no browser learns of the new one. The caller holds the mutex of the feed.
func (f *Feed) hear(ctx context.Context) {
	age := hearing
	if report.CodeOf(f.heard.Failure) == report.NotFound {
		age = silence
	}
	if f.asking != nil || f.heard.Alerts != nil && f.Now().Sub(f.heard.when) < age || f.last != nil && f.last.refused != nil {
		return
	}
	f.asking = make(chan struct{})
	go f.hearNow(context.WithoutCancel(ctx))
}

func (f *Feed) hearNow(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, PageTimeout)
	defer cancel()
	list, err := f.Ask(ctx)
	answer := &page.Heard{List: list}
	if err != nil && report.CodeOf(err) != report.NotFound {
		answer.Problem = page.ProblemOf(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard = AlertAnswer{Alerts: answer, Failure: err, when: f.Now()}
	if !answer.IsSilent() { // else pages stay as they are
		f.heard.sounds = Digest(answer)
	}
	if f.last != nil && f.last.refused == nil {
		next := *f.last
		next.AlertAnswer = f.heard
		f.publish(&next)
	}
	close(f.asking)
	f.asking = nil
}

// LastAlerts returns the last answer of Prometheus.
func (f *Feed) LastAlerts() AlertAnswer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.heard
}

// keepHearing asks again and again until ctx ends.
func (f *Feed) keepHearing(ctx context.Context) {
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

// AwaitAlerts asks for alerts, unless the last answer is young enough, and waits for the answer. It returns the last snapshot with it.
func (f *Feed) AwaitAlerts(ctx context.Context) (*Snapshot, AlertAnswer, error) {
	f.mu.Lock()
	f.hear(ctx)
	asking := f.asking
	f.mu.Unlock()
	if asking != nil {
		select {
		case <-asking:
		case <-ctx.Done():
			return nil, AlertAnswer{}, ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last, f.heard, nil
}
