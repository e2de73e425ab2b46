// Package deployer has the verbs: what an administrator tells a cluster to do with Solutions.
//
// A [Deployer], made with [New], is a connection to a cluster and a way to report. Each verb is one method with one struct of
// options: [Deployer.RecordImport] and [Deployer.RecordUnimport] keep the catalogue of what the cluster may run,
// [Deployer.Activate] and [Deployer.Deactivate] handle the cluster-wide part of a Solution, [Deployer.Add], [Deployer.Change],
// [Deployer.Rollback] and [Deployer.Remove] its part in an environment, and [Deployer.Converge] does what a SolutionsConfiguration
// says.
//
// What a verb stands on has packages of its own, which it composes: package records knows what is deployed, dependencies who needs
// whom, definitions what becomes of stored instances, survey how everything is, apps the instances of users, and package engine
// applies what package render makes of a version.
//
// A verb first reads, judges and plans, then asks whether the user may do all of it, and only then changes anything:
// with DryRun it stops there. Running it again after it was interrupted finishes the work. Every verb works anywhere the
// API server can be reached: what was in the archives is read from the catalogue, not from the archives.
//
// The deployer reads no file, asks nobody and prints nothing. What may destroy data is refused unless the options say
// otherwise; asking a person for it is the command's task.
package deployer

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/site"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Config is the surroundings of a Deployer. Cluster, Now and Version are required.
type Config struct {
	Cluster *cluster.Cluster
	Sink    report.Sink      // nil for silence
	Now     func() time.Time // the wall clock, for what people read
	Version string           // of this program, for the history
	// Identity is user@host, for whoever finds a lock taken.
	Identity string
	// Ended tells whether somebody with such an Identity has certainly ended; nil where nobody can know. See [cluster.LockOptions].
	Ended func(ctx context.Context, identity string) bool
	// LockWait is for how long a verb waits while somebody else is at work.
	LockWait time.Duration
}

// Deployer runs verbs on one cluster. It may run several at once.
type Deployer struct {
	Config

	Records     *records.Records
	Definitions *definitions.Guard
	Survey      *survey.Survey
	Apps        *apps.Apps
	Site        *site.Site
}

// New returns the verbs on a cluster.
func New(c Config) *Deployer {
	if c.Sink == nil {
		c.Sink = report.Discard
	}
	r := &records.Records{
		Cluster: c.Cluster, Now: c.Now, Version: c.Version,
		Engine:    &engine.Engine{Cluster: c.Cluster, Sink: c.Sink, Now: c.Now, Tool: c.Version},
		Documents: &metalk8s.Documents{Cluster: c.Cluster, Sink: c.Sink},
	}
	g := &definitions.Guard{Cluster: c.Cluster, Records: r, Sink: c.Sink}
	v := &survey.Survey{Cluster: c.Cluster, Records: r, Definitions: g, Now: c.Now}
	return &Deployer{
		Config: c, Records: r, Definitions: g, Survey: v,
		Apps: &apps.Apps{Cluster: c.Cluster, Records: r, Definitions: g, Sink: c.Sink},
		Site: &site.Site{Cluster: c.Cluster, Records: r, Survey: v},
	}
}

// clusterLock protects what belongs to the whole cluster: the catalogue, and activation.
const clusterLock = cluster.ClusterLock

// lockOf protects what is deployed in a namespace; "" stands for the cluster.
func lockOf(namespace string) string { return cluster.LockOf(namespace) }

// Locked runs work under locks: every write with its context is preceded by a look at them. Work that ends what they protect
// calls [cluster.DiscardLocks].
func (d *Deployer) Locked(ctx context.Context, work func(context.Context) error, names ...string) (err error) {
	locks, err := d.Cluster.LockAll(ctx, names, cluster.LockOptions{Identity: d.Identity, Wait: d.LockWait, Sink: d.Sink, Ended: d.Ended})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locks.Release(ctx)) }()
	if err = work(cluster.WithGuard(ctx, locks)); err != nil {
		d.discardUnneeded(ctx, locks, err)
	}
	return err
}

// discardUnneeded discards locks of namespaces that do not exist, after work that failed: it waited for the lock of an environment that
// was deleted meanwhile, or was refused before it created one. The locks of a cluster that does not answer stay.
func (d *Deployer) discardUnneeded(ctx context.Context, locks cluster.Locks, failure error) {
	if code := report.CodeOf(failure); ctx.Err() != nil || code == report.Unavailable || code == report.Interrupted {
		return
	}
	for _, lock := range locks {
		namespace, ofNamespace := strings.CutPrefix(lock.Name(), cluster.LockPrefix)
		if !ofNamespace {
			continue
		}
		if live, err := d.Cluster.GetMetadata(ctx, cluster.NamespaceKind, "", namespace); err == nil && live == nil {
			lock.Discard()
		}
	}
}

// ConfigureMonitoring is [site.Site.Configure] under the lock of the cluster. A dry run takes none: a lock is a change, too.
func (d *Deployer) ConfigureMonitoring(ctx context.Context, o site.Options) (result *schema.MonitoringReport, err error) {
	if o.DryRun {
		return d.Site.Configure(ctx, o)
	}
	err = d.Locked(ctx, func(ctx context.Context) error {
		result, err = d.Site.Configure(ctx, o)
		return err
	}, clusterLock)
	return result, err
}
