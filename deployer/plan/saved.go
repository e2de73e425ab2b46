package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// SavedOptions are the options of a run. They are stored beside the record of each of its Solutions until that is complete
// ([engine.Release.SavedOptions]), so that a run that resumes it need not have them again.
type SavedOptions struct {
	FormatVersion int `json:"formatVersion"`
	// Those of [Options].
	Adopt     bool     `json:"adopt,omitempty"`
	Force     bool     `json:"force,omitempty"`
	KeepEdits bool     `json:"keepEdits,omitempty"`
	Replace   []string `json:"replace,omitempty"`

	Solutions  []savedSolution `json:"solutions,omitempty"`
	Components []string        `json:"components,omitempty"` // that are repaired, where not all are
}

// savedSolution has the options for a Solution in some of the namespaces of the run.
type savedSolution struct {
	schema.SolutionAt
	Archive string `json:"archive"` // SHA-256 digest of what was to be deployed
	// Namespaces have the number of the last recorded revision when the options were given; 0 where there was none.
	Namespaces map[string]int64 `json:"namespaces"`
	Rendering
}

const savedFormat = 1

// Save returns the options of a run that repairs components, or all if there are none, as they are stored; nil where none is set.
func (o Options) Save(components ...string) ([]byte, error) {
	g := o.saved()
	g.Components = components
	return g.encode()
}

func (o Options) saved() SavedOptions {
	return SavedOptions{Adopt: o.Adopt, Force: o.Force, KeepEdits: o.KeepEdits, Replace: o.Replace}
}

// encode returns nil where no option is set.
func (g SavedOptions) encode() ([]byte, error) {
	if !g.Adopt && !g.Force && !g.KeepEdits && len(g.Replace)+len(g.Solutions)+len(g.Components) == 0 {
		return nil, nil
	}
	g.FormatVersion = savedFormat
	return json.Marshal(g)
}

// ParseSavedOptions reads the options that are stored beside a record; none if there is no data.
func ParseSavedOptions(key record.Key, data []byte) (g SavedOptions, err error) {
	if len(data) == 0 {
		return g, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err = d.Decode(&g); err == nil && g.FormatVersion == savedFormat {
		return g, nil
	}
	// The message has no text of the data, which has secrets.
	return SavedOptions{}, report.Errorf(report.Corrupt, "what the run on %s was given is not what this version of solutionctl writes", key).
		WithHint("finish it with the version that began it, which '%s' names", report.Run("deploy history").With("output", "json"))
}

// Options returns the options of a run that resumes the one that saved g.
func (g *SavedOptions) Options(o Options) Options {
	o.Adopt, o.Force, o.KeepEdits = o.Adopt || g.Adopt, o.Force || g.Force, o.KeepEdits || g.KeepEdits
	if len(g.Replace) > 0 { // some of it was replaced
		o.Replace, o.ReplaceIfPlanned = slices.Concat(o.Replace, g.Replace), true
	}
	return o
}

// mergeOptions applies the options of an interrupted run first, then those of this one, and saves the result for a run that resumes this one.
func (r *Run) mergeOptions(ctx context.Context, list []*Placement) error {
	states := map[record.Key]*record.State{}
	for _, p := range list {
		for _, n := range p.Namespaces {
			key := record.Key{Namespace: n.Name, Name: p.Name}
			var err error
			if states[key], err = r.Records.Engine.State(ctx, key); err != nil {
				return err
			}
		}
	}
	saved := r.saved()
	for _, p := range list {
		p.Allow, p.Approved = slices.Concat(r.Allow, p.Allow), slices.Concat(r.Approved, p.Approved)
		p.merged = map[string]Rendering{}
		for _, n := range p.Namespaces {
			own := states[record.Key{Namespace: n.Name, Name: p.Name}]
			earlier, err := r.interrupted(ctx, states, own, p.Import)
			if err != nil {
				return err
			}
			p.merged[n.Name] = p.after(earlier)
			saved.add(p.Import, n.Name, lastNumber(own), p.merged[n.Name])
		}
	}
	data, err := saved.encode()
	for _, p := range list {
		p.saved = data
	}
	return err
}

// add adds the options for a namespace, once for all namespaces for which they are the same.
func (g *SavedOptions) add(of schema.Import, namespace string, number int64, r Rendering) {
	if r.unset() {
		return
	}
	at, archive := schema.SolutionAt{Solution: of.Name, Version: of.Version}, of.Archive.SHA256
	for i := range g.Solutions {
		if s := &g.Solutions[i]; s.SolutionAt == at && s.Archive == archive && reflect.DeepEqual(s.Rendering, r) {
			s.Namespaces[namespace] = number
			return
		}
	}
	g.Solutions = append(g.Solutions, savedSolution{SolutionAt: at, Archive: archive, Namespaces: map[string]int64{namespace: number}, Rendering: r})
}

func lastNumber(s *record.State) int64 {
	if last := LastRevision(s); last != nil {
		return last.Number
	}
	return 0
}

// interrupted returns the options for a version of a Solution that an interrupted run saved: beside the Solution's own record, or where that was not written
// yet, beside that of another Solution of the same run.
func (p *Planner) interrupted(ctx context.Context, states map[record.Key]*record.State, own *record.State, of schema.Import) (r Rendering, err error) {
	if own.Pending != nil && own.Pending.Version == of.Version && len(own.SavedOptions) > 0 {
		g, failure := ParseSavedOptions(own.Key, own.SavedOptions)
		if failure != nil {
			return r, failure
		}
		r, _ = g.of(own.Key, of)
		r.Rotate, err = p.notRotated(ctx, own, r.Rotate)
		return r, err
	}
	for _, other := range slices.SortedFunc(maps.Keys(states), record.CompareKeys) {
		if states[other].Pending == nil {
			continue
		}
		g, err := ParseSavedOptions(other, states[other].SavedOptions)
		if err != nil {
			return r, err
		}
		if saved, number := g.of(own.Key, of); number == lastNumber(own) && !saved.unset() {
			return saved, nil
		}
	}
	return r, nil
}

// of returns the options for a Solution, and the number of the last revision then. What was accepted by a name counts only for the same archive:
// another one of this version can do more under the same name.
func (g *SavedOptions) of(key record.Key, wanted schema.Import) (Rendering, int64) {
	for _, s := range g.Solutions {
		if number, there := s.Namespaces[key.Namespace]; there && s.Solution == key.Name && s.Version == wanted.Version {
			if s.Archive != wanted.Archive.SHA256 {
				s.Allow, s.AcceptHazards, s.ClusterWide = nil, nil, nil
			}
			return s.Rendering, number
		}
	}
	return Rendering{}, 0
}

// notRotated returns those of the named components whose values the pending revision of a Solution has not generated again yet.
func (p *Planner) notRotated(ctx context.Context, own *record.State, names []string) (left []string, err error) {
	for _, name := range names {
		key := record.Key{Namespace: own.Namespace, Name: own.Name, Component: name}
		state, err := p.Records.Engine.State(ctx, key)
		if err != nil {
			return nil, err
		}
		rotated := false
		for _, r := range state.Recent() {
			if !slices.Contains(own.Pending.Components, schema.ComponentRevision{Name: name, Content: r.Content}) {
				continue
			}
			_, err := p.Records.Engine.Content(ctx, key, r)
			if err != nil && report.CodeOf(err) != report.Corrupt {
				return nil, err
			}
			rotated = rotated || err == nil
		}
		if !rotated {
			left = append(left, name)
		}
	}
	return left, nil
}
