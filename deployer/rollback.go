package deployer

import (
	"context"
	"fmt"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// RollbackOptions say what to take back.
type RollbackOptions struct {
	Options
	Environment, Solution string
	Namespace             string // one of the environment's; "" stands for all of them
	Revision              int64  // of the history; 0 stands for what was there before
	// AcceptDataLoss and Export are as in [ChangeOptions].
	AcceptDataLoss []string
	Export         Export
}

// Rollback brings back the objects of an earlier revision, as they were rendered then: of the one before an operation that
// was not completed, else of the one before the last. Definitions of custom resources belong to the whole cluster and are
// not touched; whether they serve the earlier version is checked first. After a rollback that was completed it changes
// nothing, unless a revision is named.
func (d *Deployer) Rollback(ctx context.Context, o RollbackOptions) (*schema.Operation, error) {
	return d.inNamespaces(ctx, o.Options, o.Environment, o.Namespace, func(ctx context.Context, namespaces []metalk8s.Namespace) (*task, error) {
		return d.planRollback(ctx, o, namespaces)
	})
}

func (d *Deployer) planRollback(ctx context.Context, o RollbackOptions, namespaces []metalk8s.Namespace) (*task, error) {
	catalog, err := d.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	t := &task{Operation: schema.Operation{Operation: "rollback", Solution: o.Solution, Environment: o.Environment}}
	there, err := d.installed(ctx, o.Solution, namespaces)
	if err != nil {
		return nil, err
	}
	if len(there) == 0 {
		return nil, notThere(o.Solution, o.Environment, namespaces)
	}
	t.export = o.Export
	var releases []engine.Release
	for _, i := range there {
		var release engine.Release
		if release, err = d.earlierRelease(ctx, t, catalog, i, o); err != nil {
			return nil, err
		}
		t.records = append(t.records, recordChange(i.Name, environmentRecord, "data."+o.Solution, i.Versions[o.Solution], release.Version)...)
		releases = append(releases, release)
	}
	err = d.checkDependencies(ctx, catalog, func(h holdings) {
		for at, i := range there {
			put(o.Solution, releases[at].Version, i.Namespace)(h)
		}
	})
	if err != nil {
		return nil, err
	}
	if t.plans, err = d.engine().PlanAll(ctx, releases, o.plan()); err != nil {
		return nil, err
	}
	t.before = func(ctx context.Context) error {
		for at, i := range there {
			if err := d.documents().SetVersion(ctx, i.Name, o.Solution, releases[at].Version); err != nil {
				return err
			}
		}
		return nil
	}
	return t, nil
}

// earlierRelease is what goes back into one namespace.
func (d *Deployer) earlierRelease(ctx context.Context, t *task, catalog *Catalog, i installation, o RollbackOptions) (engine.Release, error) {
	release := engine.Release{Key: i.state.Key, Operation: t.Operation.Operation}
	revision, err := i.earlier(o.Revision)
	if err != nil {
		return release, err
	}
	found, _, err := catalog.Find(o.Solution, revision.Version)
	if err != nil {
		return release, err
	}
	if err = d.checkEarlier(ctx, t, found, i.Namespace, o.AcceptDataLoss); err != nil {
		return release, err
	}
	t.Version, release.Version, release.Settings = found.Version, revision.Version, revision.Settings
	if revision == i.state.Current && i.state.Pending == nil {
		t.notice(fmt.Sprintf("namespace %s was rolled back to version %s already; --revision goes to another", i.Name, revision.Version))
	} else {
		t.notice(fmt.Sprintf("namespace %s goes back to revision %d: %s %s", i.Name, revision.Number, revision.Operation, revision.Version))
	}
	release.Objects, err = d.engine().Objects(ctx, i.state.Key, revision)
	return release, err
}

// checkEarlier refuses to go back to a version that the cluster's definitions, or its custom resources, are past.
func (d *Deployer) checkEarlier(ctx context.Context, t *task, i schema.Import, n metalk8s.Namespace, accepted []string) error {
	payload, err := d.payload(ctx, i)
	if err != nil {
		return err
	}
	if err := d.checkKubernetes(ctx, payload); err != nil {
		return err
	}
	if err := d.checkActive(ctx, payload); err != nil {
		return err
	}
	return d.judgeInstances(ctx, t, payload, []metalk8s.Namespace{n}, accepted)
}

// earlier returns the revision to go back to.
func (i *installation) earlier(number int64) (*schema.DeploymentRevision, error) {
	current, pending := i.state.Current, i.state.Pending
	if pending != nil && pending.Operation == "rollback" && number == 0 {
		return pending, nil // an earlier rollback was not completed
	}
	if pending == nil && current != nil && current.Operation == "rollback" && number == 0 {
		return current, nil // it was completed: the same command again must not go back and forth
	}
	if pending != nil && current != nil && current.Version != "" && (number == 0 || number == current.Number) {
		return current, nil
	}
	for at := range i.state.History {
		old := &i.state.History[at]
		complete := old.Outcome == schema.DeploymentDone && old.Version != ""
		if number == 0 && complete && (current == nil || old.Content != current.Content) || number == old.Number && old.Version != "" {
			return old, nil
		}
	}
	if number != 0 {
		return nil, report.Errorf(report.NotFound, "there is no revision %d of Solution %s in namespace %s to go back to", number, i.state.Solution, i.Name).
			WithHint("see: solutionctl deploy history %s %s", i.Environment, i.state.Solution)
	}
	return nil, report.Errorf(report.Refused, "there is nothing before what is in namespace %s of Solution %s", i.Name, i.state.Solution).
		WithHint("see: solutionctl deploy history %s %s", i.Environment, i.state.Solution)
}
