package console

import (
	"context"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema"
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
func (c *Console) hear(ctx context.Context, f *feed) {
	if f.asking != nil || f.heard.told != nil && c.Now().Sub(f.heard.when) < hearing || f.last != nil && f.last.refused != nil {
		return
	}
	f.asking = make(chan struct{})
	go c.hearNow(context.WithoutCancel(ctx), f)
}

func (c *Console) hearNow(ctx context.Context, f *feed) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	list, err := f.ask(ctx)
	told := &page.Heard{List: list}
	if err != nil && report.CodeOf(err) != report.NotFound {
		told.Problem = page.ProblemOf(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard = heard{told: told, failed: err, when: c.Now()}
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
func (c *Console) keepHearing(ctx context.Context, f *feed) {
	for {
		f.mu.Lock()
		c.hear(ctx, f)
		f.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(hearing):
		}
	}
}

// alerts shows those of the whole cluster. This page waits for them.
func (c *Console) alerts(v *visit) (*answer, error) {
	s, err := c.watched(v, page.SectionOverview, nil)
	if isVisitor(err) {
		return c.yours(v, page.SectionOverview, err, nil), nil
	}
	if err != nil {
		return nil, err
	}
	f := c.everything(v.Identity)
	f.mu.Lock()
	c.hear(v.Context(), f)
	asking := f.asking
	f.mu.Unlock()
	if asking != nil {
		select {
		case <-asking:
		case <-v.Context().Done():
			return nil, v.Context().Err()
		}
	}
	f.mu.Lock()
	heard := f.heard
	s = f.last
	f.mu.Unlock()
	v.frame.Feed = "/events?seen=" + s.mark()
	if heard.failed != nil && wantsJSON(v.Request) {
		return nil, heard.failed
	}
	var list *schema.AlertList
	if heard.told != nil {
		list = heard.told.List
	}
	return &answer{document: list, content: &page.Alerts{Heard: heard.told, Hints: report.Hints(heard.failed)}}, nil
}
