package deployer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ChangeOptions say which version a Solution in an environment is to have.
type ChangeOptions struct {
	Options
	Environment, Solution string
	Direction             records.Direction
	// Version is an imported version. For an upgrade "" stands for the active one, "latest" for the highest release.
	Version string
	// Namespace is one of the environment's; "" stands for all of them.
	Namespace string
	Rendering
	// With are other Solutions of the environment, and the versions that they are to have in the same run: Solutions that need
	// new versions of each other cannot change one after the other. How they are rendered stays as it was.
	With []schema.SolutionAt
	// RollBack goes back to what was there before when the new version does not become ready.
	RollBack bool
	// WaitApps waits until the custom resources of the Solutions are ready, too; only then the change has succeeded.
	WaitApps bool
	// AcceptDataLoss are the CustomResourceDefinitions of whose objects the version need not know all fields. Those in the
	// namespaces are exported before.
	AcceptDataLoss []string
	// AcceptInvalid are those of whose objects the version need not accept all values.
	AcceptInvalid []string
	Export        definitions.Export
}

// Change replaces the version of a Solution in namespaces of an environment by a higher or a lower one. It refuses
// what cannot be done before the first change.
func (d *Deployer) Change(ctx context.Context, o ChangeOptions) (*schema.Operation, error) {
	done, err := d.inNamespaces(ctx, o.Options, o.Environment, o.Namespace, func(ctx context.Context, namespaces []metalk8s.Namespace) (*task, error) {
		return d.planChange(ctx, o, namespaces)
	})
	if err == nil && o.WaitApps && !o.DryRun {
		err = d.awaitInstances(ctx, done, o.Timeout)
	}
	if err == nil || o.DryRun || ctx.Err() != nil || done == nil {
		return done, err
	}
	if !o.RollBack {
		if report.CodeOf(err) == report.Timeout {
			err = withLastHint(err, "or go back: %s", report.Run("deploy rollback", o.Environment, o.Solution))
		}
		return done, err
	}
	back := RollbackOptions{Options: o.Options, Environment: o.Environment, Solution: o.Solution, Namespace: o.Namespace}
	back.ifThere, back.Expect = true, "" // that was the change
	if _, failed := d.Rollback(ctx, back); failed != nil {
		return done, report.Errorf(report.CodeOf(err), "%w\nand the rollback failed, too: %w", err, failed)
	}
	// What the failure recommends is about what is not there any more.
	return done, report.Errorf(report.CodeOf(err), "%s\neverything is back as it was before", err).
		WithHint("repair the cause, and run the command again")
}

// withLastHint adds a hint to an error that is read after those that the error has, as the alternative to them.
func withLastHint(err error, format string, remedy report.Remedy) error {
	hints := append(report.Hints(err), fmt.Sprintf(format, remedy))
	last := report.Errorf(report.CodeOf(err), "%s", err).WithHint("%s", strings.Join(hints, "\n"))
	last.Remedies = append(report.RemediesOf(err), remedy)
	return last
}

func (d *Deployer) planChange(ctx context.Context, o ChangeOptions, namespaces []metalk8s.Namespace) (*task, error) {
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	if o.Direction == records.Down && o.Version == "" {
		return nil, report.Errorf(report.Usage, "a downgrade needs the version to go to")
	}
	if o.RollBack && len(o.Helm) > 0 {
		return nil, report.Errorf(report.Usage, "what is taken over from Helm cannot be given back: going back would remove it").
			WithHint("leave out --on-failure rollback; what does not become ready can be repaired, and the same command goes on")
	}
	t := &task{Operation: schema.Operation{Operation: string(o.Direction), Solution: o.Solution, Environment: o.Environment}, export: o.Export}
	var list []*placement
	var there []installation
	for _, at := range append([]schema.SolutionAt{{Solution: o.Solution, Version: o.Version}}, o.With...) {
		one, here, err := d.changed(ctx, t, catalog, o, at, namespaces)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(other *placement) bool { return other.Name == one.Name }) {
			return nil, report.Errorf(report.Usage, "Solution %s is named twice", one.Name)
		}
		list, there = append(list, one), append(there, here...)
	}
	t.Version = list[0].Version
	if err := d.planPlacements(ctx, t, catalog, list, o.Options); err != nil {
		return nil, err
	}
	a := definitions.Accepted{Loss: o.AcceptDataLoss, Invalid: o.AcceptInvalid}
	return t, d.judgeChanges(ctx, t, catalog, list, there, a)
}

// judgeChanges judges what the first plans of a task, which replace versions that are there, mean for stored objects and for rights.
func (d *Deployer) judgeChanges(ctx context.Context, t *task, catalog *records.Catalog, list []*placement, there []installation, a definitions.Accepted) error {
	var payloads []*render.Payload
	for _, one := range list {
		payloads = append(payloads, one.payload)
	}
	if err := a.CheckAll(payloads...); err != nil {
		return err
	}
	for _, one := range list {
		notices, exported, err := d.Definitions.JudgeInstances(ctx, one.payload, one.namespaces, a)
		if err != nil {
			return err
		}
		t.notice(notices...)
		t.exported = append(t.exported, exported...)
		unneeded, err := d.Definitions.Unneeded(ctx, catalog, one.payload, one.namespaces)
		if err != nil {
			return err
		}
		t.notice(unneeded...)
	}
	return d.noticeRights(ctx, t, there)
}

// changed plans the new version of one of the Solutions there. Others than the first may go in either direction.
func (d *Deployer) changed(ctx context.Context, t *task, catalog *records.Catalog, o ChangeOptions, at schema.SolutionAt, namespaces []metalk8s.Namespace) (*placement, []installation, error) {
	found, notice, err := d.choose(ctx, catalog, at.Solution, at.Version)
	if err != nil {
		return nil, nil, err
	}
	if notice != "" {
		t.notice(notice)
	}
	if highest, _, failure := catalog.Find(at.Solution, schema.ActiveLatest); failure == nil && at.Version == "" && records.VersionOf(found).Compare(records.VersionOf(highest)) < 0 {
		t.notice(fmt.Sprintf("version %s is the active one; to go to %s: %s", found.Version, highest.Version, report.Run("deploy activate", found.Name, highest.Version)))
	}
	there, err := d.installed(ctx, found.Name, namespaces)
	if err != nil {
		return nil, nil, err
	}
	if len(there) == 0 {
		return nil, nil, notThere(found.Name, o.Environment, namespaces)
	}
	one := &placement{Import: found, operation: string(o.Direction), Rendering: o.Rendering}
	if found.Name != o.Solution {
		o.Direction = records.DirectionTo(there[0].version, found)
		one.operation, one.Rendering = string(o.Direction), Rendering{AcceptHazards: o.AcceptHazards}
	}
	payload, err := d.Records.Payload(ctx, found)
	if err != nil {
		return nil, nil, err
	}
	for _, i := range there {
		if err := i.mayBecome(found, o, payload, catalog); err != nil {
			return nil, nil, err
		}
		one.namespaces = append(one.namespaces, i.Namespace)
	}
	return one, there, nil
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
		state, err := d.Records.Engine.State(ctx, engine.Key{Namespace: n.Name, Name: solution})
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
func (i *installation) mayBecome(target schema.Import, o ChangeOptions, p *render.Payload, catalog *records.Catalog) error {
	if i.version == "" || i.version == target.Version || i.state.Pending != nil && i.state.Pending.Version == target.Version {
		return nil
	}
	from, err := schema.ParseVersion(i.version)
	if err != nil {
		return fmt.Errorf("namespace %s: Solution %s: %w", i.Name, target.Name, err)
	}
	to, actual := records.VersionOf(target), records.DirectionTo(i.version, target)
	if actual != o.Direction {
		return report.Errorf(report.Refused, "namespace %s has version %s: going to %s is no %s", i.Name, i.version, target.Version, o.Direction).
			WithHint("%s", records.ChangeTo(o.Environment, i.version, target))
	}
	least := p.Solution.Spec.MinUpgradeFrom
	if actual != records.Up || least == "" {
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
		if v := records.VersionOf(step); v.Compare(floor) >= 0 && v.Compare(to) < 0 {
			return e.WithHint("upgrade to %s first: %s", step.Version, report.Run("deploy upgrade", o.Environment, target.Name, step.Version))
		}
	}
	return e.WithHint("import a version between %s and %s, and upgrade to it first", least, target.Version)
}

// noticeRights tells which rights the roles of the new version have that those of the version before did not.
func (d *Deployer) noticeRights(ctx context.Context, t *task, there []installation) error {
	for at, i := range there {
		if i.state.Current == nil || i.state.Current.Content == "" || at >= len(t.plans) {
			continue
		}
		before, err := d.Records.Engine.Objects(ctx, i.state.Key, i.state.Current)
		if report.CodeOf(err) == report.Corrupt {
			t.notice("which rights are new in namespace " + i.Name + " cannot be told: " + err.Error())
			continue
		}
		if err != nil {
			return err
		}
		wider, err := rights.Widened(before, t.plans[at].Release.Objects)
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
