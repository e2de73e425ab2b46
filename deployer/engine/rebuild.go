package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/diff"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Match is the result of comparing a cluster with a release, independently of the record.
type Match struct {
	Release Release
	Objects []schema.DeployedObject // as desired, with the label of the release
	Changed []schema.ObjectRef      // with the label, but different
	Missing []schema.ObjectRef
	Foreign []schema.ObjectRef // with the name, but without the label
	Waiting []schema.ObjectRef // of kinds that the cluster does not have

	decider *decider
}

// Match compares a release with the cluster by dry runs. Nothing is written.
func (e *Engine) Match(ctx context.Context, r Release) (*Match, error) {
	d, err := e.newDecider(ctx, r, &record.State{Key: r.Key}, PlanOptions{})
	if err != nil {
		return nil, err
	}
	results := make([]matchResult, len(d.desired))
	err = cluster.Each(len(d.desired), func(i int) (failure error) {
		results[i], failure = d.match(ctx, d.desired[i])
		return failure
	})
	if err != nil {
		return nil, fmt.Errorf("compare %s: %w", r.Key, err)
	}
	m := &Match{Release: r, decider: d}
	if m.Objects, err = d.tasksThere(ctx); err != nil {
		return nil, fmt.Errorf("compare %s: %w", r.Key, err)
	}
	for i, s := range d.desired {
		switch results[i] {
		case same:
			m.Objects = append(m.Objects, schema.DeployedObject{ObjectRef: s.Object, UID: string(s.live.GetUID()), Hash: s.hash, Phase: s.phase, Stays: s.stays})
		case changed:
			m.Changed = append(m.Changed, s.Object)
		case missing:
			m.Missing = append(m.Missing, s.Object)
		case foreign:
			m.Foreign = append(m.Foreign, s.Object)
		case impossible:
			m.Waiting = append(m.Waiting, s.Object)
		}
	}
	return m, nil
}

// matchResult is the result for one object in a [Match].
type matchResult int

const (
	same matchResult = iota
	changed
	missing
	foreign
	impossible // the cluster does not have its kind
)

func (d *decider) match(ctx context.Context, s *step) (matchResult, error) {
	for range attempts {
		if v, err := d.matchOnce(ctx, s); !errors.Is(err, cluster.ErrChanged) {
			return v, err
		}
	}
	return impossible, contended(s)
}

func (d *decider) matchOnce(ctx context.Context, s *step) (matchResult, error) {
	live, err := d.find(ctx, s)
	if err != nil {
		return impossible, err
	}
	s.live = live
	switch {
	case live == nil:
		if _, err = d.Cluster.Mapping(ctx, s.desired.GroupVersionKind()); err != nil {
			return impossible, nil //nolint:nilerr // it cannot exist
		}
		return missing, nil
	case live.GetLabels()[schema.LabelRelease] != d.release.ID():
		return foreign, nil
	case live.GetDeletionTimestamp() != nil:
		return changed, nil
	}
	result, err := d.Cluster.Apply(ctx, update(s), cluster.WriteOptions{DryRun: true, Force: true})
	switch code := report.CodeOf(err); {
	case errors.Is(err, cluster.ErrChanged):
		return impossible, err
	case code == report.Invalid:
		return changed, nil // it cannot become the desired object
	case err != nil:
		return impossible, err
	case len(diff.Fields(live, result)) > 0:
		return changed, nil
	}
	return same, nil
}

// tasksThere returns the existing objects of tasks with the label of the release.
func (d *decider) tasksThere(ctx context.Context) ([]schema.DeployedObject, error) {
	var list []schema.DeployedObject
	seen := map[record.ObjectKey]bool{}
	for _, t := range d.tasks {
		live, err := d.find(ctx, t.step)
		if err != nil {
			return nil, err
		}
		if live == nil || live.GetLabels()[schema.LabelRelease] != d.release.ID() || seen[record.KeyOf(t.Object)] {
			continue
		}
		seen[record.KeyOf(t.Object)] = true
		list = append(list, schema.DeployedObject{ObjectRef: t.Object, UID: string(live.GetUID()), Hash: t.hash, Phase: t.phase})
	}
	return list, nil
}

// Rebuild records a release as it is in the cluster, and changes nothing else. Of a readable record only the stored content is
// replaced. The caller holds the lock.
func (e *Engine) Rebuild(ctx context.Context, m *Match) error {
	state, err := e.ReadState(ctx, m.Release.Key)
	if err != nil {
		return err
	}
	if state.Damage != nil && report.CodeOf(state.Damage) != report.Corrupt {
		return state.Damage
	}
	data, err := m.decider.content()
	if err != nil {
		return err
	}
	if err = record.CheckSize(data); err != nil {
		return err
	}
	if state.Current != nil && slices.ContainsFunc(state.Current.Objects, func(o schema.DeployedObject) bool { return !o.Kept }) {
		current := *state.Current
		current.Content = record.DigestOf(data)
		state.Current = &current
	} else {
		now := e.second()
		if state.Current != nil {
			state.AddHistory(state.Current, state.Current.Outcome)
		}
		state.Current = &schema.DeploymentRevision{
			Number: state.Last() + 1, Operation: m.Release.Operation, Version: m.Release.Version, Outcome: schema.DeploymentDone,
			User: e.User, Tool: e.Tool, Started: now, Finished: &now, Settings: m.Release.Settings, Content: record.DigestOf(data), Objects: m.Objects,
			Waiting: m.Waiting, Components: m.Release.Components, Needs: m.Release.neededComponents(), Tasks: m.decider.recorded(),
		}
		for i := range state.Current.Tasks {
			state.Current.Tasks[i].Finished = &now // they have run for the deployed version
		}
		if e.User == "" {
			state.Current.User = e.Cluster.User(ctx)
		}
	}
	if err = e.recordContent(ctx, m.Release, state.Current.Content); err != nil {
		return err
	}
	if err = e.Save(ctx, state); err != nil {
		return err
	}
	_, err = e.StoreContent(ctx, m.Release.ID(), data)
	return err
}

// recordContent updates the content of a rebuilt component on the record of its owner, if that lists the component.
func (e *Engine) recordContent(ctx context.Context, r Release, content string) error {
	if r.Component == "" {
		return nil
	}
	owner, err := e.ReadState(ctx, record.Key{Namespace: r.Namespace, Name: r.Name})
	if err != nil || owner.Damage != nil || owner.Current == nil || owner.Current.Version != r.Version {
		return err
	}
	at := slices.IndexFunc(owner.Current.Components, func(c schema.ComponentRevision) bool { return c.Name == r.Component })
	if at < 0 || owner.Current.Components[at].Content == content {
		return nil
	}
	current := *owner.Current
	current.Components = slices.Clone(current.Components)
	current.Components[at].Content = content
	owner.Current = &current
	return e.Save(ctx, owner)
}
