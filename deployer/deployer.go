// Package deployer has the verbs: the operations on Solutions that an administrator runs on a cluster.
//
// A [Deployer], made with [New], is a connection to a cluster and a way to report. Each verb is one method with one struct of
// options: [Deployer.RecordImport] and [Deployer.RecordUnimport] keep the catalogue of what the cluster may run,
// [Deployer.Activate] and [Deployer.Deactivate] handle the cluster-wide part of a Solution, [Deployer.Add], [Deployer.Change],
// [Deployer.Rollback] and [Deployer.Remove] its part in an environment, and [Deployer.Converge] applies a
// SolutionsConfiguration.
//
// Each verb composes other packages: records has the catalogue and the records of deployments, dependencies checks which Solutions need each
// other, definitions protects stored custom resources, survey reads health and drift, plan plans a run, render renders a version, and engine applies the
// result.
//
// A verb reads, plans and judges, then checks the permissions of the user, and only then changes anything: with DryRun it stops there. Running
// it again after an interruption finishes the work. Every verb works wherever the API server can be reached, because it reads the content of
// archives from the catalogue.
//
// The deployer reads no file, prompts for nothing and prints nothing. It refuses to destroy data unless the options allow it; commands ask the
// user.
package deployer

import (
	"cmp"
	"context"
	"time"

	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/rebuild"
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
	// Identity is user@host, shown to the user who waits for the lock.
	Identity string
	// Ended reports whether the process with this Identity has certainly ended; nil where that cannot be determined. See [cluster.LockOptions].
	Ended func(ctx context.Context, identity string) bool
	// LockWait is how long a verb waits for a lock that another process holds.
	LockWait time.Duration
	// Active is the list of active versions on this host; nil for a host that has none.
	Active ActiveVersions
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
		Engine:    &engine.Engine{Store: &record.Store{Cluster: c.Cluster, Tool: c.Version}, Sink: c.Sink, Now: c.Now},
		Documents: &metalk8s.Documents{Cluster: c.Cluster, Sink: c.Sink},
	}
	g := &definitions.Guard{Cluster: c.Cluster, Records: r, Sink: c.Sink}
	v := &survey.Survey{Cluster: c.Cluster, Records: r, Definitions: g, Now: c.Now}
	s := &site.Site{Cluster: c.Cluster, Records: r, Survey: v}
	return &Deployer{
		Config: c, Records: r, Definitions: g, Survey: v, Site: s,
		Apps: &apps.Apps{Cluster: c.Cluster, Records: r, Definitions: g, Sink: c.Sink},
	}
}

// planner plans runs with the Config as it is now.
func (d *Deployer) planner() *plan.Planner {
	return &plan.Planner{
		Cluster: d.Cluster, Records: d.Records, Definitions: d.Definitions, Survey: d.Survey, Site: d.Site, Now: d.Now,
		Locks: cluster.LockOptions{Identity: d.Identity, Wait: d.LockWait, Sink: d.Sink, Ended: d.Ended},
	}
}

func (d *Deployer) environments() *environments.Environments {
	return &environments.Environments{Planner: d.planner(), Sink: d.Sink}
}

// Locked runs work under locks: every write with its context first checks that the locks are still held.
func (d *Deployer) Locked(ctx context.Context, work func(context.Context) error, names ...string) error {
	return d.planner().Locked(ctx, work, names...)
}

// Unapproved returns the powers of a Solution that have to be approved and were not approved before, neither for the
// cluster nor for one of the namespaces.
func (d *Deployer) Unapproved(ctx context.Context, solution string, list []schema.Power, namespaces ...string) ([]schema.Power, error) {
	return d.planner().Unapproved(ctx, solution, list, namespaces...)
}

// begin returns a run of a verb.
func (d *Deployer) begin(head schema.Operation, o plan.Options) *plan.Run {
	return d.planner().Begin(head, o)
}

// ConfigureMonitoring is [site.Site.Configure] under the lock of the cluster. A dry run takes none: a lock is a change, too.
func (d *Deployer) ConfigureMonitoring(ctx context.Context, o site.Options) (result *schema.MonitoringReport, err error) {
	if o.DryRun {
		return d.Site.Configure(ctx, o)
	}
	err = d.Locked(ctx, func(ctx context.Context) error {
		result, err = d.Site.Configure(ctx, o)
		return err
	}, cluster.ClusterLock)
	return result, err
}

// NameCluster records the name and the colour of the cluster. Without a colour, it keeps the recorded one, or takes the first one. An empty name
// removes the record, also one that cannot be read; the result is nil then.
func (d *Deployer) NameCluster(ctx context.Context, name, colour string) (*schema.ClusterName, error) {
	if name == "" {
		return nil, d.Locked(ctx, d.Records.RemoveClusterName, cluster.ClusterLock)
	}
	named, err := schema.NewClusterName(name, cmp.Or(colour, schema.ClusterColours()[0]))
	if err != nil {
		return nil, err
	}
	return named, d.Locked(ctx, func(ctx context.Context) error {
		known, err := d.Records.NameOfCluster(ctx)
		if err != nil {
			return err
		}
		if known != nil && colour == "" {
			named.Colour = known.Colour
		}
		return d.Records.SetClusterName(ctx, named)
	}, cluster.ClusterLock)
}

// CreateEnvironment is [environments.Environments.Create].
func (d *Deployer) CreateEnvironment(ctx context.Context, o metalk8s.CreateOptions) (*schema.Operation, error) {
	return d.environments().Create(ctx, o)
}

// DeleteEnvironment is [environments.Environments.Delete].
func (d *Deployer) DeleteEnvironment(ctx context.Context, o environments.DeleteOptions) (*schema.Operation, error) {
	return d.environments().Delete(ctx, o)
}

// Held is [environments.Environments.Held].
func (d *Deployer) Held(ctx context.Context, o environments.HeldOptions) ([]environments.Held, error) {
	return d.environments().Held(ctx, o)
}

// Purge is [environments.Environments.Purge].
func (d *Deployer) Purge(ctx context.Context, o environments.PurgeOptions) (*schema.Operation, error) {
	return d.environments().Purge(ctx, o)
}

// RebuildRecords is [rebuild.Records].
func (d *Deployer) RebuildRecords(ctx context.Context, o rebuild.Options) (*schema.Operation, error) {
	return rebuild.Records(ctx, d.planner(), o)
}

// Broken is [rebuild.Problems].
func (d *Deployer) Broken(ctx context.Context) ([]rebuild.Problem, error) {
	return rebuild.Problems(ctx, d.planner())
}
