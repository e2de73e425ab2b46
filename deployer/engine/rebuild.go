package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/diff"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Match compares a cluster's objects with a release, whatever the record says.
type Match struct {
	Release Release
	Objects []schema.DeployedObject // that are as they are wanted, and have the label of the release
	Changed []schema.ObjectRef      // that have the label, and are not as they are wanted
	Missing []schema.ObjectRef
	Foreign []schema.ObjectRef // that have the name, and not the label

	judge *judge
}

// Match compares a release with what the cluster has. Nothing is written: the server is asked what each object would become.
func (e *Engine) Match(ctx context.Context, r Release) (*Match, error) {
	j, err := e.newJudge(ctx, r, &State{Key: r.Key}, PlanOptions{})
	if err != nil {
		return nil, err
	}
	verdicts := make([]verdict, len(j.desired))
	if err := each(len(j.desired), true, func(i int) (err error) {
		verdicts[i], err = j.match(ctx, j.desired[i])
		return err
	}); err != nil {
		return nil, fmt.Errorf("compare %s: %w", r.Key, err)
	}
	m := &Match{Release: r, judge: j}
	if m.Objects, err = j.tasksThere(ctx); err != nil {
		return nil, fmt.Errorf("compare %s: %w", r.Key, err)
	}
	for i, s := range j.desired {
		switch verdicts[i] {
		case same:
			m.Objects = append(m.Objects, schema.DeployedObject{ObjectRef: s.Object, UID: string(s.live.GetUID()), Hash: s.hash, Phase: s.phase, Stays: s.stays})
		case changed:
			m.Changed = append(m.Changed, s.Object)
		case missing:
			m.Missing = append(m.Missing, s.Object)
		case foreign:
			m.Foreign = append(m.Foreign, s.Object)
		}
	}
	return m, nil
}

// verdict is the judgement on an object in a [Match].
type verdict int

const (
	same verdict = iota
	changed
	missing
	foreign
	impossible // the cluster does not have its kind
)

func (j *judge) match(ctx context.Context, s *step) (verdict, error) {
	for range attempts {
		if v, err := j.matchOnce(ctx, s); !errors.Is(err, cluster.ErrChanged) {
			return v, err
		}
	}
	return impossible, restless(s)
}

func (j *judge) matchOnce(ctx context.Context, s *step) (verdict, error) {
	live, err := j.find(ctx, s)
	if err != nil {
		return impossible, err
	}
	s.live = live
	switch {
	case live == nil:
		if _, err = j.Cluster.Mapping(ctx, s.desired.GroupVersionKind()); err != nil {
			return impossible, nil //nolint:nilerr // it cannot be there
		}
		return missing, nil
	case live.GetLabels()[LabelRelease] != j.release.ID():
		return foreign, nil
	case live.GetDeletionTimestamp() != nil:
		return changed, nil
	}
	result, err := j.Cluster.Apply(ctx, update(s), cluster.WriteOptions{DryRun: true, Force: true})
	switch code := report.CodeOf(err); {
	case errors.Is(err, cluster.ErrChanged):
		return impossible, err
	case code == report.Invalid:
		return changed, nil // it cannot even become what is wanted
	case err != nil:
		return impossible, err
	case len(diff.Fields(live, result)) > 0:
		return changed, nil
	}
	return same, nil
}

// tasksThere are the objects of tasks that are there and have the label of the release.
func (j *judge) tasksThere(ctx context.Context) ([]schema.DeployedObject, error) {
	var list []schema.DeployedObject
	seen := map[objectKey]bool{}
	for _, t := range j.turns {
		live, err := j.find(ctx, t.step)
		if err != nil {
			return nil, err
		}
		if live == nil || live.GetLabels()[LabelRelease] != j.release.ID() || seen[keyOfRef(t.Object)] {
			continue
		}
		seen[keyOfRef(t.Object)] = true
		list = append(list, schema.DeployedObject{ObjectRef: t.Object, UID: string(live.GetUID()), Hash: t.hash, Phase: t.phase})
	}
	return list, nil
}

// Rebuild puts a release on record as it is in the cluster, and changes nothing else. A record that can be read keeps what it
// says; only the objects as they were rendered are stored again. The caller holds the lock.
func (e *Engine) Rebuild(ctx context.Context, m *Match) error {
	state, err := e.Look(ctx, m.Release.Key)
	if err != nil {
		return err
	}
	if state.Damage != nil && report.CodeOf(state.Damage) != report.Corrupt {
		return state.Damage
	}
	data, err := m.judge.content()
	if err != nil {
		return err
	}
	if err = storable(data); err != nil {
		return err
	}
	if state.Current != nil && slices.ContainsFunc(state.Current.Objects, func(o schema.DeployedObject) bool { return !o.Kept }) {
		current := *state.Current
		current.Content = DigestOf(data)
		state.Current = &current
	} else {
		now := e.second()
		if state.Current != nil {
			state.remember(state.Current, state.Current.Outcome)
		}
		state.Current = &schema.DeploymentRevision{
			Number: state.last() + 1, Operation: m.Release.Operation, Version: m.Release.Version, Outcome: schema.DeploymentDone,
			User: e.User, Tool: e.Tool, Started: now, Finished: &now, Settings: m.Release.Settings, Content: DigestOf(data), Objects: m.Objects,
			Components: m.Release.Components, Needs: m.Release.neededComponents(), Tasks: m.judge.recorded(),
		}
		for i := range state.Current.Tasks {
			state.Current.Tasks[i].Finished = &now // what is deployed has been through them
		}
		if e.User == "" {
			state.Current.User = e.Cluster.User(ctx)
		}
	}
	if err = e.noteContent(ctx, m.Release, state.Current.Content); err != nil {
		return err
	}
	if old := state.secret; state.Damage != nil && old != nil {
		// Whatever it is by now, it may be of another type, or immutable.
		if err = e.Cluster.Delete(ctx, old, cluster.DeleteOptions{}); err != nil {
			return fmt.Errorf("record of %s: %w", state.Key, err)
		}
		state.secret = nil
	}
	if err = e.save(ctx, state); err != nil {
		return err
	}
	_, err = e.StoreContent(ctx, m.Release.ID(), data)
	return err
}

// noteContent writes what a rebuilt component has now on the record of its owner, if there is one that lists it.
func (e *Engine) noteContent(ctx context.Context, r Release, content string) error {
	if r.Component == "" {
		return nil
	}
	owner, err := e.Look(ctx, Key{Namespace: r.Namespace, Name: r.Name})
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
	return e.save(ctx, owner)
}
