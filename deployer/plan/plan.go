// Package plan plans runs: what one run of a verb reads, judges, changes and reports.
//
// A [Planner] makes a [Run] with [Planner.Begin]. [Run.Do], or [Run.InNamespaces] for an environment, takes the locks, calls a function that
// plans, checks that the user has all permissions, and carries the plan out. That function first reads the catalogue with [Run.ReadCatalog]
// and then plans with one of the methods: [Run.Activate] and [Run.Deactivate] for the cluster, [Run.Place], [Run.Change], [Run.Ensure],
// [Run.RollBack] and [Run.Remove] for namespaces.
//
// A run keeps what it has read and what it is to change, so that its steps need no parameters for them. A [Placement] is a version that
// namespaces are to have: it is rendered for each of them, with its components, the saved options of an interrupted run, the values that
// charts generated before, and the releases of Helm that it adopts. [Run.Settle] compares the digest of the plan with the one that the user
// expects. A [Renderer] renders a version without a run.
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
