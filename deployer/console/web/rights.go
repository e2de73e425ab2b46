package web

import (
	"context"
	"sync"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/rights"
)

// rightsAge is for how long an answer about rights is believed.
const rightsAge = time.Minute

// changeRights remember whether a user may change anything at all.
type changeRights struct {
	mu     sync.Mutex
	asked  time.Time
	denial *page.Denial
}

// Denial returns why the user cannot change anything; nil when the user can: every change takes a lock. The plan of a change checks
// the other permissions.
func (v *Visit) Denial(ctx context.Context) *page.Denial {
	r, now := &v.changes, v.server.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.asked) < rightsAge {
		return r.denial
	}
	missing, err := v.Cluster.Missing(ctx, rights.Lock()...)
	if err != nil {
		return nil // the plan reports it
	}
	r.asked, r.denial = now, nil
	if len(missing) > 0 {
		r.denial = &page.Denial{Reason: page.Text("denial.lock"), Rule: cluster.Rules(missing...)}
	}
	return r.denial
}

// Offer returns an action that changes something, or the same action with the reason why the user is not allowed to.
func (v *Visit) Offer(a page.Action) page.Action {
	a.Denied = v.Denial(v.Context())
	return a
}
