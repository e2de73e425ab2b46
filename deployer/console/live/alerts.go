package live

import (
	"context"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	// askInterval is the time between two requests to Prometheus while browsers watch. Reading the cluster does not wait for the answer:
	// Prometheus may be slow, or not answer at all.
	askInterval = 12 * time.Second
	// searchInterval is the age after which a Prometheus is looked for again where none is known, and no watch would report one.
	searchInterval = 10 * time.Minute
)

// AskAlerts asks for alerts.
type AskAlerts func(ctx context.Context) (*schema.AlertList, error)

// alertSources are the servers to ask, as they were found.
type alertSources struct {
	ask      AskAlerts
	failure  error
	reads    *cluster.Reads // that found them
	at       time.Time
	followed bool // whether a change of them is reported
}

// AlertAnswer is an answer of Prometheus, or why there is none.
type AlertAnswer struct {
	Alerts         *page.AlertState // nil before the first answer
	Failure        error
	when           time.Time
	digestOfAlerts string
}

// askForAlerts asks for alerts, unless that is being done or was just done. Only a request of a browser calls it: when a token is renewed in
// the background, no browser learns of the new one. The caller holds the mutex of the feed.
func (f *Feed) askForAlerts(ctx context.Context) {
	if f.asking != nil || f.alertAnswer.Alerts != nil && f.Now().Sub(f.alertAnswer.when) < askInterval/2 || f.last != nil && f.last.refused != nil {
		return
	}
	f.asking = make(chan struct{})
	go f.askNow(context.WithoutCancel(ctx))
}

// findSources returns the servers to ask: those that were found before, as long as nothing has changed.
func (f *Feed) findSources(ctx context.Context) *alertSources {
	f.mu.Lock()
	known := f.sources
	same := known != nil && known.isValid(f.Now()) && f.viewers > 0 && f.last != nil && !known.at.Before(f.last.at)
	f.mu.Unlock()
	if same {
		return known
	}
	found := &alertSources{at: f.Now()}
	ctx, found.reads = cluster.WithReads(ctx)
	found.ask, found.failure = f.FindAlerts(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sources = found
	return found
}

// isValid reports whether a change of the sources would have been reported.
func (a *alertSources) isValid(now time.Time) bool {
	switch {
	case !a.followed:
		return false
	case report.CodeOf(a.failure) == report.NotFound:
		return a.reads.Include(cluster.DefinitionKind) || now.Sub(a.at) < searchInterval
	default:
		return a.failure == nil
	}
}

func (f *Feed) askNow(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, PageTimeout)
	defer cancel()
	var list *schema.AlertList
	sources := f.findSources(ctx)
	err := sources.failure
	if err == nil {
		if list, err = sources.ask(ctx); err == nil {
			f.user.liveness.answered()
		}
	}
	answer := &page.AlertState{List: list}
	if err != nil && report.CodeOf(err) != report.NotFound {
		answer.Problem = page.ProblemOf(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alertAnswer = AlertAnswer{Alerts: answer, Failure: err, when: f.Now()}
	if !answer.IsEmpty() { // else pages stay as they are
		f.alertAnswer.digestOfAlerts = Digest(answer)
	}
	if f.last != nil && f.last.refused == nil {
		next := *f.last
		next.AlertAnswer = f.alertAnswer
		f.publish(&next)
	}
	close(f.asking)
	f.asking = nil
}

// LastAlerts returns the last answer of Prometheus, none where it is old.
func (f *Feed) LastAlerts() AlertAnswer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.recentAlerts()
}

// recentAlerts returns the last answer of Prometheus, none where no browser has followed since. The caller has the mutex.
func (f *Feed) recentAlerts() AlertAnswer {
	if f.Now().Sub(f.alertAnswer.when) >= PageTimeout {
		return AlertAnswer{}
	}
	return f.alertAnswer
}

// keepAsking asks again and again until ctx ends. All feeds of a user ask at the same time, so that they share the answers.
func (f *Feed) keepAsking(ctx context.Context) {
	follower := f.follower(ctx)
	defer follower.Close()
	for {
		f.mu.Lock()
		f.askForAlerts(ctx)
		asking := f.asking
		f.mu.Unlock()
		if asking != nil {
			select {
			case <-asking:
			case <-ctx.Done():
				return
			}
		}
		f.followSources(follower)
		now := f.Now()
		select {
		case <-ctx.Done():
			return
		case <-f.After(now.Truncate(askInterval).Add(askInterval).Sub(now)):
		}
		select {
		case <-follower.Changed():
			f.mu.Lock()
			f.sources = nil
			f.mu.Unlock()
		default:
		}
	}
}

// followSources watches what was read to find the sources of alerts, and not for a snapshot: after another snapshot they are found again.
func (f *Feed) followSources(follower *cluster.Follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sources != nil && f.last != nil && f.last.reads != nil {
		f.sources.followed = follower.Follow(f.sources.reads.Except(f.last.reads))
	}
}

// AwaitAlerts asks for alerts, unless the last answer is young enough, and waits for the answer. It returns the last snapshot with it.
func (f *Feed) AwaitAlerts(ctx context.Context) (*Snapshot, AlertAnswer, error) {
	f.mu.Lock()
	f.askForAlerts(ctx)
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
	return f.last, f.alertAnswer, nil
}
