package deployer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/lint/crd"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Direction is where a change of versions leads.
type Direction string

// The directions; they are also the verbs.
const (
	Up   Direction = "upgrade"
	Down Direction = "downgrade"
)

// ChangeOptions say which version a Solution in an environment is to have.
type ChangeOptions struct {
	Options
	Environment, Solution string
	Direction             Direction
	// Version is an imported version. For an upgrade "" and "latest" stand for the highest release.
	Version string
	// Namespace is one of the environment's; "" stands for all of them.
	Namespace string
	Rendering
	// RollBack goes back to what was there before when the new version does not become ready.
	RollBack bool
}

// Change replaces the version of a Solution in namespaces of an environment by a higher or a lower one. Everything that
// stands against it is found before the first change. The error of a rollback that follows a failure wraps that failure.
func (d *Deployer) Change(ctx context.Context, o ChangeOptions) (*schema.Operation, error) {
	done, err := d.inNamespaces(ctx, o.Options, o.Environment, o.Namespace, func(ctx context.Context, namespaces []metalk8s.Namespace) (*task, error) {
		return d.planChange(ctx, o, namespaces)
	})
	if err == nil || !o.RollBack || o.DryRun || ctx.Err() != nil || done == nil {
		return done, err
	}
	back := RollbackOptions{Options: o.Options, Environment: o.Environment, Solution: o.Solution, Namespace: o.Namespace}
	if _, failed := d.Rollback(ctx, back); failed != nil {
		return done, report.Errorf(report.CodeOf(err), "%w\nand the rollback failed, too: %w", err, failed)
	}
	return done, report.Errorf(report.CodeOf(err), "%w\neverything is back as it was before", err)
}

func (d *Deployer) planChange(ctx context.Context, o ChangeOptions, namespaces []metalk8s.Namespace) (*task, error) {
	catalog, err := d.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	if o.Direction == Down && o.Version == "" {
		return nil, report.Errorf(report.Usage, "a downgrade needs the version to go to")
	}
	found, notice, err := catalog.Find(o.Solution, o.Version)
	if err != nil {
		return nil, err
	}
	t := &task{Operation: schema.Operation{
		Operation: string(o.Direction), Solution: found.Name, Version: found.Version, Environment: o.Environment,
	}}
	if notice != "" {
		t.notice(notice)
	}
	there, err := d.installed(ctx, found.Name, namespaces)
	if err != nil {
		return nil, err
	}
	if len(there) == 0 {
		return nil, notThere(o.Solution, o.Environment, namespaces)
	}
	payload, err := d.payload(ctx, found)
	if err != nil {
		return nil, err
	}
	var targets []metalk8s.Namespace
	for _, i := range there {
		if err := i.mayBecome(found, o, payload, catalog); err != nil {
			return nil, err
		}
		targets = append(targets, i.Namespace)
	}
	if err := d.planDeployment(ctx, t, catalog, found, targets, o.Options, o.Rendering); err != nil {
		return nil, err
	}
	if err := d.judgeInstances(ctx, payload, targets); err != nil {
		return nil, err
	}
	if err := d.noticeUnneeded(ctx, t, catalog, payload, targets); err != nil {
		return nil, err
	}
	return t, d.noticeRights(ctx, t, there)
}

// installation is a Solution in a namespace.
type installation struct {
	metalk8s.Namespace
	state   *engine.State
	version string // the one that was completed last; "" when none was
}

// installed returns where among the namespaces a Solution is.
func (d *Deployer) installed(ctx context.Context, solution string, namespaces []metalk8s.Namespace) ([]installation, error) {
	var list []installation
	for _, n := range namespaces {
		state, err := d.engine().State(ctx, engine.Key{Namespace: n.Name, Solution: solution})
		if err != nil {
			return nil, err
		}
		i := installation{Namespace: n, state: state, version: n.Versions[solution]}
		if state.Current != nil {
			i.version = state.Current.Version
		}
		if i.version != "" || state.Pending != nil && state.Pending.Version != "" {
			list = append(list, i)
		}
	}
	return list, nil
}

// mayBecome refuses a change in the wrong direction and one that skips a version that the target needs as a step. A
// change that was begun and not completed may always be finished.
func (i *installation) mayBecome(target schema.Import, o ChangeOptions, p *render.Payload, catalog *Catalog) error {
	if i.version == "" || i.version == target.Version || i.state.Pending != nil && i.state.Pending.Version == target.Version {
		return nil
	}
	from, err := schema.ParseVersion(i.version)
	if err != nil {
		return fmt.Errorf("namespace %s: Solution %s: %w", i.Name, target.Name, err)
	}
	to, actual := versionOf(target), direction(i.version, target)
	if actual != o.Direction {
		return report.Errorf(report.Refused, "namespace %s has version %s: going to %s is no %s", i.Name, i.version, target.Version, o.Direction).
			WithHint("solutionctl deploy %s %s %s %s", actual, o.Environment, target.Name, target.Version)
	}
	least := p.Solution.Spec.MinUpgradeFrom
	if actual != Up || least == "" {
		return nil
	}
	floor, err := schema.ParseVersion(least)
	if err != nil {
		return fmt.Errorf("%s: minUpgradeFrom: %w", target.ID(), err)
	}
	if from.Compare(floor) >= 0 {
		return nil
	}
	e := report.Errorf(report.Refused, "version %s of Solution %s upgrades from %s or later, and namespace %s has %s",
		target.Version, target.Name, least, i.Name, i.version)
	for _, step := range catalog.Of(target.Name) {
		if v := versionOf(step); v.Compare(floor) >= 0 && v.Compare(to) < 0 {
			return e.WithHint("upgrade to %s first: solutionctl deploy upgrade %s %s %s", step.Version, o.Environment, target.Name, step.Version)
		}
	}
	return e.WithHint("import a version between %s and %s, and upgrade to it first", least, target.Version)
}

// direction is where going from a version to another leads; from one that is no version everything is an upgrade.
func direction(from string, to schema.Import) Direction {
	if v, err := schema.ParseVersion(from); err == nil && versionOf(to).Compare(v) < 0 {
		return Down
	}
	return Up
}

// judgeInstances refuses a version whose schema does not accept, or would drop fields of, the custom resources that its
// operator will find in the namespaces. They are read in each version that the target knows, converted by the cluster.
func (d *Deployer) judgeInstances(ctx context.Context, p *render.Payload, namespaces []metalk8s.Namespace) error {
	definitions, err := render.Definitions(p)
	if err != nil {
		return err
	}
	var rejected, lost []string
	for _, object := range definitions {
		live, err := d.Cluster.Get(ctx, crdKind, "", object.GetName())
		if err != nil {
			return err
		}
		if live == nil {
			continue
		}
		there, err := definition(live)
		if err != nil {
			return err
		}
		wanted, err := definition(object)
		if err != nil {
			return err
		}
		more, missing, err := d.judgeInstancesOf(ctx, there, wanted, namespaces)
		if err != nil {
			return err
		}
		rejected, lost = append(rejected, more...), append(lost, missing...)
	}
	switch {
	case len(lost) > 0:
		return report.Errorf(report.DataLoss, "version %s would lose data:\n  %s", p.Solution.Spec.Version, some(lost)).
			WithHint("change these fields first, or choose a version that knows them")
	case len(rejected) > 0:
		return report.Errorf(report.Refused, "version %s does not accept what is there:\n  %s", p.Solution.Spec.Version, some(rejected)).
			WithHint("change these values first, or choose a version that accepts them")
	}
	return nil
}

func (d *Deployer) judgeInstancesOf(ctx context.Context, there, wanted *crd.Definition, namespaces []metalk8s.Namespace) (rejected, lost []string, err error) {
	checker, err := crd.NewChecker(wanted)
	if err != nil {
		return nil, nil, err
	}
	for _, version := range wanted.Spec.Versions {
		if !version.Served || !serves(there, version.Name) {
			continue
		}
		kind := kube.GroupVersionKind{Group: there.Spec.Group, Version: version.Name, Kind: there.Spec.Names.Kind}
		for _, n := range namespaces {
			for object, err := range d.Cluster.List(ctx, kind, n.Name, metav1.ListOptions{}) {
				if err != nil {
					return nil, nil, err
				}
				invalid, dropped, err := checker.Check(ctx, version.Name, object.Object)
				if err != nil {
					return nil, nil, err
				}
				for _, problem := range invalid {
					rejected = append(rejected, fmt.Sprintf("%s (%s): %s", objectName(object), version.Name, problem))
				}
				for _, field := range dropped {
					lost = append(lost, fmt.Sprintf("%s (%s): %s", objectName(object), version.Name, field.Path))
				}
			}
		}
	}
	return rejected, lost, nil
}

func serves(d *crd.Definition, name string) bool {
	for _, version := range d.Spec.Versions {
		if version.Name == name {
			return version.Served
		}
	}
	return false
}

// some lists the first of many lines.
func some(lines []string) string {
	if more := len(lines) - maxLosses; more > 0 {
		lines = append(slices.Clip(lines[:maxLosses]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n  ")
}

// noticeRights tells which rights the roles of the new version have that those of the version before did not.
func (d *Deployer) noticeRights(ctx context.Context, t *task, there []installation) error {
	for at, i := range there {
		if i.state.Current == nil || i.state.Current.Content == "" || at >= len(t.plans) {
			continue
		}
		before, err := d.engine().Objects(ctx, i.state.Key, i.state.Current)
		if err != nil {
			return err
		}
		wider, err := widened(before, t.plans[at].Release.Objects)
		if err != nil {
			return err
		}
		for _, text := range wider {
			if notice := "new right: " + text; !slices.Contains(t.Notices, notice) {
				t.notice(notice)
			}
		}
	}
	return nil
}

// RollbackOptions say what to take back.
type RollbackOptions struct {
	Options
	Environment, Solution string
	Namespace             string // one of the environment's; "" stands for all of them
	Revision              int64  // of the history; 0 stands for what was there before
}

// Rollback brings back the objects of an earlier revision, as they were rendered then: of the one before an operation that
// was not completed, else of the one before the last. Definitions of custom resources belong to the whole cluster and are
// not touched; whether they serve the earlier version is checked first.
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
	var releases []engine.Release
	for _, i := range there {
		var release engine.Release
		if release, err = d.earlierRelease(ctx, t, catalog, i, o); err != nil {
			return nil, err
		}
		t.records = append(t.records, recordChange(i.Name, environmentRecord, "data."+o.Solution, i.Versions[o.Solution], release.Version)...)
		releases = append(releases, release)
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
	if err = d.checkEarlier(ctx, found, i.Namespace); err != nil {
		return release, err
	}
	t.Version, release.Version, release.Settings = found.Version, revision.Version, revision.Settings
	t.notice(fmt.Sprintf("namespace %s goes back to revision %d: %s %s", i.Name, revision.Number, revision.Operation, revision.Version))
	release.Objects, err = d.engine().Objects(ctx, i.state.Key, revision)
	return release, err
}

// checkEarlier refuses to go back to a version that the cluster's definitions, or its custom resources, are past.
func (d *Deployer) checkEarlier(ctx context.Context, i schema.Import, n metalk8s.Namespace) error {
	payload, err := d.payload(ctx, i)
	if err != nil {
		return err
	}
	if err := d.checkActive(ctx, payload); err != nil {
		return err
	}
	return d.judgeInstances(ctx, payload, []metalk8s.Namespace{n})
}

// earlier returns the revision to go back to.
func (i *installation) earlier(number int64) (*schema.DeploymentRevision, error) {
	current, pending := i.state.Current, i.state.Pending
	if pending != nil && pending.Operation == "rollback" && number == 0 {
		return pending, nil // an earlier rollback was not completed
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
