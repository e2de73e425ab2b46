package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Change plans that Solutions which are deployed get other versions. The first, r.Solution, goes in a direction, the others in any.
func (r *Run) Change(ctx context.Context, direction records.Direction, wanted ...Wanted) error {
	var list []*Placement
	var replaced []Installation
	for _, w := range wanted {
		p, here, err := r.change(ctx, direction, w)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(list, func(other *Placement) bool { return other.Name == p.Name }) {
			return report.Errorf(report.Usage, "Solution %s is named twice", p.Name)
		}
		list, replaced = append(list, p), append(replaced, here...)
	}
	r.Version = list[0].Version
	if err := r.Place(ctx, list); err != nil {
		return err
	}
	return r.judgeChanges(ctx, list, replaced)
}

// judgeChanges judges what the first plans of a run, which replace installations, mean for stored objects and for rights.
func (r *Run) judgeChanges(ctx context.Context, list []*Placement, replaced []Installation) error {
	var payloads []*render.Payload
	for _, p := range list {
		payloads = append(payloads, p.renderer.Payload)
	}
	if err := r.CheckLossesIn(payloads...); err != nil {
		return err
	}
	for _, p := range list {
		if err := r.judgeInstances(ctx, p.renderer.Payload, p.Namespaces); err != nil {
			return err
		}
		unneeded, err := r.Definitions.Unneeded(ctx, r.Catalog, p.renderer.Payload, p.Namespaces)
		if err != nil {
			return err
		}
		r.Notice(unneeded...)
	}
	return r.noticeRights(ctx, replaced)
}

// judgeInstances judges what a version means for the stored objects in namespaces.
func (r *Run) judgeInstances(ctx context.Context, p *render.Payload, namespaces []metalk8s.Namespace) error {
	judged, err := r.Definitions.JudgeInstances(ctx, p, namespaces, r.Losses)
	if err != nil {
		return err
	}
	r.Notice(judged.Notices...)
	r.lost, r.data = append(r.lost, judged.Exported...), append(r.data, judged.Data...)
	return nil
}

// change returns the placement of a new version, and the installations that it replaces. Others than r.Solution go in either direction.
func (r *Run) change(ctx context.Context, direction records.Direction, w Wanted) (*Placement, []Installation, error) {
	found, err := r.Choose(ctx, w.Solution, w.Version)
	if err != nil {
		return nil, nil, err
	}
	if highest, _, failure := r.Catalog.Find(w.Solution, schema.ActiveLatest); failure == nil && w.Version == "" && records.VersionOf(found).Compare(records.VersionOf(highest)) < 0 {
		r.Notice(fmt.Sprintf("version %s is the active one; to go to %s: %s", found.Version, highest.Version, report.Run("deploy activate", found.Name, highest.Version)))
	}
	replaced, err := r.deployed(ctx, found.Name)
	if err != nil {
		return nil, nil, err
	}
	if found.Name != r.Solution {
		direction = records.DirectionTo(replaced[0].Version, found)
	}
	p := &Placement{Import: found, Verb: string(direction), Rendering: w.Rendering}
	return p, replaced, r.replace(ctx, p, replaced)
}

// replace puts a placement into the namespaces of installations, all of which have to be able to become it.
func (r *Run) replace(ctx context.Context, p *Placement, replaced []Installation) error {
	payload, err := r.Records.Payload(ctx, p.Import)
	if err != nil {
		return err
	}
	for _, i := range replaced {
		if err := r.checkStep(&i, p, payload); err != nil {
			return err
		}
		p.Namespaces = append(p.Namespaces, i.Namespace)
	}
	return nil
}

// Installation is a Solution in a namespace.
type Installation struct {
	metalk8s.Namespace
	State   *record.State
	Version string // the one that was completed last; "" when none was
}

// deployed is Installed with an error where the Solution is in none of the namespaces of the run.
func (r *Run) deployed(ctx context.Context, solution string) ([]Installation, error) {
	list, err := r.Installed(ctx, solution, r.Namespaces)
	if err == nil && len(list) == 0 {
		err = NotDeployed(solution, r.Environment, r.Namespaces)
	}
	return list, err
}

// Installed returns the installations of a Solution in namespaces.
func (p *Planner) Installed(ctx context.Context, solution string, namespaces []metalk8s.Namespace) ([]Installation, error) {
	var list []Installation
	for _, n := range namespaces {
		state, err := p.Records.Engine.State(ctx, record.Key{Namespace: n.Name, Name: solution})
		if err != nil {
			return nil, err
		}
		i := Installation{Namespace: n, State: state, Version: n.Versions[solution]}
		if state.Current != nil {
			i.Version = state.Current.Version
		}
		if i.Version != "" || state.Pending != nil && state.Pending.Version != "" {
			list = append(list, i)
		}
	}
	return list, nil
}

// InstalledIn returns the namespaces of an environment, for a namespace only that one, and the installations of a Solution in them.
func (p *Planner) InstalledIn(ctx context.Context, solution, environment, namespace string) ([]metalk8s.Namespace, []Installation, error) {
	namespaces, err := p.Records.Namespaces(ctx, environment, namespace)
	if err != nil {
		return nil, nil, err
	}
	installed, err := p.Installed(ctx, solution, namespaces)
	return namespaces, installed, err
}

// checkStep refuses a change in the wrong direction and one that skips a version that the new one needs as a step. A change that was begun and
// not completed can always be finished.
func (r *Run) checkStep(i *Installation, target *Placement, p *render.Payload) error {
	if i.Version == "" || i.Version == target.Version || i.State.Pending != nil && i.State.Pending.Version == target.Version {
		return nil
	}
	from, err := schema.ParseVersion(i.Version)
	if err != nil {
		return fmt.Errorf("namespace %s: Solution %s: %w", i.Name, target.Name, err)
	}
	to, actual := records.VersionOf(target.Import), records.DirectionTo(i.Version, target.Import)
	if string(actual) != target.Verb {
		return report.Errorf(report.Refused, "namespace %s has version %s: version %s is not its %s", i.Name, i.Version, target.Version, target.Verb).
			WithHint("%s", records.ChangeTo(r.Environment, i.Version, target.Import).In(r.only))
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
		target.Version, target.Name, least, i.Name, i.Version)
	for _, step := range r.Catalog.Of(target.Name) {
		if v := records.VersionOf(step); v.Compare(floor) >= 0 && v.Compare(to) < 0 {
			return e.WithHint("upgrade to %s first: %s", step.Version, report.Run("deploy upgrade", r.Environment, target.Name, step.Version).In(r.only))
		}
	}
	return e.WithHint("import a version between %s and %s, and upgrade to it first", least, target.Version)
}

// noticeRights reports which rights the roles of a new version have that those of the replaced one did not.
func (r *Run) noticeRights(ctx context.Context, replaced []Installation) error {
	for at, i := range replaced {
		if i.State.Current == nil || i.State.Current.Content == "" || at >= len(r.Plans) {
			continue
		}
		before, err := r.Records.Engine.Objects(ctx, i.State.Key, i.State.Current)
		if report.CodeOf(err) == report.Corrupt {
			r.Notice("the new rights in namespace " + i.Name + " are unknown: " + err.Error())
			continue
		}
		if err != nil {
			return err
		}
		wider, err := rights.Widened(before, r.Plans[at].Release.Objects)
		if err != nil {
			return err
		}
		for _, text := range wider {
			r.noticeOnce(schema.RightNotice(text))
		}
	}
	return nil
}
