package plan

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/site"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Planner plans runs on one cluster. All fields but Locks are required. It is safe for concurrent use.
type Planner struct {
	Cluster     *cluster.Cluster
	Records     *records.Records
	Definitions *definitions.Guard
	Survey      *survey.Survey
	Site        *site.Site
	Now         func() time.Time
	Locks       cluster.LockOptions
}

// Locked runs work under locks: every write with its context first checks that the locks are still held. Work that deletes what they protect
// calls [cluster.DiscardLocks].
func (p *Planner) Locked(ctx context.Context, work func(context.Context) error, names ...string) (err error) {
	locks, err := p.Cluster.LockAll(ctx, names, p.Locks)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locks.Release(ctx)) }()
	if err = work(cluster.WithGuard(ctx, locks)); err != nil {
		p.discardUnneeded(ctx, locks, err)
	}
	return err
}

// discardUnneeded discards locks of namespaces that do not exist, after work that failed: it waited for the lock of an environment that
// was deleted meanwhile, or was refused before it created one. The locks of a cluster that does not answer stay.
func (p *Planner) discardUnneeded(ctx context.Context, locks cluster.Locks, failure error) {
	if code := report.CodeOf(failure); ctx.Err() != nil || code == report.Unavailable || code == report.Interrupted {
		return
	}
	for _, lock := range locks {
		namespace, ofNamespace := strings.CutPrefix(lock.Name(), cluster.LockPrefix)
		if !ofNamespace {
			continue
		}
		if live, err := p.Cluster.GetMetadata(ctx, cluster.NamespaceKind, "", namespace); err == nil && live == nil {
			lock.Discard()
		}
	}
}
