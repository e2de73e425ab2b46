package deployer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// told is what a run was told about what it does. It lies beside the record of each of its Solutions until that is complete
// ([engine.Release.Given]): whoever goes on, and knows no more than that there is something to finish, need not be told again.
type told struct {
	FormatVersion int `json:"formatVersion"`
	// What [Options] say.
	Adopt     bool     `json:"adopt,omitempty"`
	Force     bool     `json:"force,omitempty"`
	KeepEdits bool     `json:"keepEdits,omitempty"`
	Replace   []string `json:"replace,omitempty"`

	Solutions  []toldSolution `json:"solutions,omitempty"`
	Components []string       `json:"components,omitempty"` // that are repaired, where not all are
}

// toldSolution is what was said about a Solution in some of the namespaces of the run.
type toldSolution struct {
	schema.SolutionAt
	// Namespaces have the number of the last revision on record when it was said; 0 where there was none.
	Namespaces map[string]int64 `json:"namespaces"`
	Rendering
}

const toldFormat = 1

func toldOptions(o Options) told {
	return told{Adopt: o.Adopt, Force: o.Force, KeepEdits: o.KeepEdits, Replace: o.Replace}
}

// encode returns nil where nothing was said.
func (g told) encode() ([]byte, error) {
	if !g.Adopt && !g.Force && !g.KeepEdits && len(g.Replace)+len(g.Solutions)+len(g.Components) == 0 {
		return nil, nil
	}
	g.FormatVersion = toldFormat
	return json.Marshal(g)
}

func decodeTold(key engine.Key, data []byte) (g told, err error) {
	if len(data) == 0 {
		return g, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err = d.Decode(&g); err == nil && g.FormatVersion == toldFormat {
		return g, nil
	}
	// It has secrets, which are not told.
	return told{}, report.Errorf(report.Corrupt, "what the run on %s was given is not what this version of solutionctl writes", key).
		WithHint("finish it with the version that began it, which '%s' names", report.Run("deploy history").With("output", "json"))
}

// options are those of whoever goes on.
func (g *told) options(o Options) Options {
	o.Adopt, o.Force, o.KeepEdits = o.Adopt || g.Adopt, o.Force || g.Force, o.KeepEdits || g.KeepEdits
	if len(g.Replace) > 0 { // some of it was replaced
		o.Replace, o.ifThere = slices.Concat(o.Replace, g.Replace), true
	}
	return o
}

// giveAll puts what an earlier run was told, and did not come to the end of, before what is said now, and notes all of it for
// whoever goes on.
func (d *Deployer) giveAll(ctx context.Context, list []*placement, o Options) error {
	states := map[engine.Key]*engine.State{}
	for _, one := range list {
		for _, n := range one.namespaces {
			key := engine.Key{Namespace: n.Name, Name: one.Name}
			var err error
			if states[key], err = d.Records.Engine.State(ctx, key); err != nil {
				return err
			}
		}
	}
	noted := toldOptions(o)
	for _, one := range list {
		one.Allow = slices.Concat(o.Allow, one.Allow)
		one.said = map[string]Rendering{}
		for _, n := range one.namespaces {
			earlier, err := d.recall(ctx, states, engine.Key{Namespace: n.Name, Name: one.Name}, one.Version)
			if err != nil {
				return err
			}
			one.said[n.Name] = one.after(earlier)
		}
		for _, n := range one.namespaces {
			noted.add(schema.SolutionAt{Solution: one.Name, Version: one.Version}, n.Name, lastNumber(states[engine.Key{Namespace: n.Name, Name: one.Name}]), one.said[n.Name])
		}
	}
	data, err := noted.encode()
	for _, one := range list {
		one.noted = data
	}
	return err
}

// add notes what was said for a namespace, once for all namespaces for which it is the same.
func (g *told) add(at schema.SolutionAt, namespace string, number int64, r Rendering) {
	if r.silent() {
		return
	}
	for i := range g.Solutions {
		if s := &g.Solutions[i]; s.SolutionAt == at && reflect.DeepEqual(s.Rendering, r) {
			s.Namespaces[namespace] = number
			return
		}
	}
	g.Solutions = append(g.Solutions, toldSolution{SolutionAt: at, Namespaces: map[string]int64{namespace: number}, Rendering: r})
}

func lastNumber(s *engine.State) int64 {
	if last := lastRevision(s); last != nil {
		return last.Number
	}
	return 0
}

// recall returns what was said about a version by a run that has not come to its end. What stands beside the Solution's own record
// counts, or else what stands beside that of another one of the same run, as long as its own was not written.
func (d *Deployer) recall(ctx context.Context, states map[engine.Key]*engine.State, key engine.Key, version string) (r Rendering, err error) {
	own := states[key]
	if own.Pending != nil && own.Pending.Version == version && len(own.Given) > 0 {
		g, failure := decodeTold(key, own.Given)
		if failure != nil {
			return r, failure
		}
		r, _ = g.about(key, version)
		r.Rotate, err = d.undrawn(ctx, own, r.Rotate)
		return r, err
	}
	for _, other := range slices.SortedFunc(maps.Keys(states), engine.CompareKeys) {
		if states[other].Pending == nil {
			continue
		}
		g, err := decodeTold(other, states[other].Given)
		if err != nil {
			return r, err
		}
		if r, number := g.about(key, version); number == lastNumber(own) && !r.silent() {
			return r, nil
		}
	}
	return r, nil
}

// about returns what was said about a Solution, and the number of the last revision then.
func (g *told) about(key engine.Key, version string) (Rendering, int64) {
	for _, s := range g.Solutions {
		if number, there := s.Namespaces[key.Namespace]; there && s.Solution == key.Name && s.Version == version {
			return s.Rendering, number
		}
	}
	return Rendering{}, 0
}

// undrawn are the components among some whose random values the pending revision of a Solution was to generate again, and has not.
func (d *Deployer) undrawn(ctx context.Context, own *engine.State, names []string) (left []string, err error) {
	for _, name := range names {
		key := engine.Key{Namespace: own.Namespace, Name: own.Name, Component: name}
		state, err := d.Records.Engine.State(ctx, key)
		if err != nil {
			return nil, err
		}
		drawn := false
		for _, r := range state.Recent() {
			if !slices.Contains(own.Pending.Components, schema.ComponentRevision{Name: name, Content: r.Content}) {
				continue
			}
			_, err := d.Records.Engine.Content(ctx, key, r)
			if err != nil && report.CodeOf(err) != report.Corrupt {
				return nil, err
			}
			drawn = drawn || err == nil
		}
		if !drawn {
			left = append(left, name)
		}
	}
	return left, nil
}

// silent tells that nothing is said.
func (r *Rendering) silent() bool {
	return r.Webhook == nil && r.ClusterWide == nil && r.IngressClass == nil && len(r.AcceptHazards)+len(r.Allow) == 0 && r.empty()
}

// after is what is said after something else was: what it says nothing about stays said.
func (r Rendering) after(earlier Rendering) Rendering {
	if earlier.silent() {
		return r
	}
	r.Webhook, r.ClusterWide, r.IngressClass = cmp.Or(r.Webhook, earlier.Webhook), cmp.Or(r.ClusterWide, earlier.ClusterWide), cmp.Or(r.IngressClass, earlier.IngressClass)
	r.AcceptHazards, r.Allow = slices.Concat(earlier.AcceptHazards, r.AcceptHazards), slices.Concat(earlier.Allow, r.Allow)
	r.Parts = r.Parts.after(earlier.Parts)
	return r
}

func (p Parts) after(earlier Parts) Parts {
	choice := earlier.Choice.With(p.Choice)
	if len(p.Choice.Profiles) > 0 {
		choice.Profiles = p.Choice.Profiles // as they are said: none is one, too
	}
	p.Choice = choice
	p.Values = mergeSaid(earlier.Values, p.Values)
	p.Rotate = slices.Compact(slices.Sorted(slices.Values(slices.Concat(earlier.Rotate, p.Rotate))))
	helm := map[string]HelmRelease{}
	maps.Copy(helm, earlier.Helm)
	maps.Copy(helm, p.Helm)
	p.Helm, p.Restart = helm, p.Restart || earlier.Restart
	return p
}

// mergeSaid are values after those of before, of which those stay that are not said again.
func mergeSaid(before, said map[string]SiteValues) map[string]SiteValues {
	merged := map[string]SiteValues{}
	maps.Copy(merged, before)
	for name, own := range said {
		if under, there := merged[name]; there && !own.Reset {
			own = SiteValues{Values: render.MergeValues(under.Values, own.Values), Reset: under.Reset}
		}
		merged[name] = own
	}
	return merged
}
