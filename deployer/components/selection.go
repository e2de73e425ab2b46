package components

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Choice is a user's selection of components. The zero value selects the defaults.
type Choice struct {
	Profiles   []string        `json:"profiles,omitempty"`
	Components map[string]bool `json:"components,omitempty"` // by name: wanted, or not
	Default    []string        `json:"default,omitempty"`    // components whose earlier choice is reset
}

// ParseChoice reads a choice as it is typed: names of profiles, and of components as NAME, NAME=true, NAME=false or NAME=default.
func ParseChoice(profiles, components []string) (Choice, error) {
	c := Choice{Profiles: profiles, Components: map[string]bool{}}
	for _, text := range components {
		name, value, given := strings.Cut(text, "=")
		wanted := value != "false"
		before, twice := c.Components[name]
		switch {
		case name == "" || given && value != "true" && value != "false" && value != valueDefault:
			return Choice{}, report.Errorf(report.Usage, "component %q is not NAME, NAME=true, NAME=false or NAME=default", text)
		case twice && (before != wanted || value == valueDefault) || slices.Contains(c.Default, name) && value != valueDefault:
			return Choice{}, report.Errorf(report.Usage, "component %s is chosen in two ways", name)
		case value == valueDefault:
			c.Default = append(c.Default, name)
		default:
			c.Components[name] = wanted
		}
	}
	return c, nil
}

// valueDefault resets a component to its default, as if the user had never chosen it.
const valueDefault = "default"

// Selection is the part of a graph that belongs to a deployment.
type Selection struct {
	graph    *Graph
	profiles []string
	verdict  map[*Node]verdict
}

// verdict is why a node is selected, or why not.
type verdict struct {
	reason schema.SelectionReason
	by     string
}

func (v verdict) selected() bool {
	return v.reason != schema.Deselected && v.reason != schema.NotSelected
}

// Select decides which nodes belong to a deployment: those that are chosen, and all that they need.
func (g *Graph) Select(c Choice) (*Selection, error) {
	if err := g.check(c); err != nil {
		return nil, err
	}
	s := &Selection{g, c.Profiles, map[*Node]verdict{}}
	for _, n := range g.nodes {
		s.verdict[n] = n.judge(c)
	}
	for _, n := range slices.Backward(g.nodes) { // after all that need it
		if !s.verdict[n].selected() {
			continue
		}
		for _, need := range n.Needs {
			switch s.verdict[need.Node].reason {
			case schema.Deselected:
				return nil, s.stillNeeded(n, need.Name)
			case schema.NotSelected:
				s.verdict[need.Node] = verdict{schema.SelectedAsNeeded, n.Name}
			}
		}
	}
	return s, nil
}

// check refuses unknown names, and components that cannot be chosen.
func (g *Graph) check(c Choice) error {
	for _, profile := range c.Profiles {
		if !slices.Contains(g.profiles, profile) {
			return unknown("profile", profile, g.profiles, g.solution.ID())
		}
	}
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(c.Components)), c.Default) {
		n, there := g.byName[name]
		switch {
		case !there:
			return unknown("component", name, slices.Sorted(maps.Keys(g.byName)), g.solution.ID())
		case c.Components[name] || slices.Contains(c.Default, name):
		case n.Component == nil:
			return report.Errorf(report.Refused, "%s is a part of every deployment of %s: it cannot be deselected", name, g.solution.ID())
		case n.Component.Selected() == schema.SelectAlways:
			return report.Errorf(report.Refused, "component %s of %s is always selected: it cannot be deselected", name, g.solution.ID())
		}
	}
	return nil
}

func unknown(what, name string, names []string, solution string) error {
	err := report.Errorf(report.Usage, "%s has no %s %q", solution, what, name)
	if near := report.Nearest(name, names); near != "" {
		return err.WithHint("did you mean %s?", near)
	}
	if len(names) == 0 {
		return err.WithHint("it has none at all")
	}
	return err.WithHint("it has: %s", strings.Join(names, ", "))
}

// judge decides whether a node is selected, without regard to the nodes that need it.
func (n *Node) judge(c Choice) verdict {
	if n.Component == nil {
		return verdict{reason: schema.SelectedAlways}
	}
	if wanted, named := c.Components[n.Name]; named {
		if wanted {
			return verdict{reason: schema.SelectedByName}
		}
		return verdict{reason: schema.Deselected}
	}
	for _, profile := range n.Component.Profiles {
		if slices.Contains(c.Profiles, profile) {
			return verdict{schema.SelectedByProfile, profile}
		}
	}
	switch n.Component.Selected() {
	case schema.SelectAlways:
		return verdict{reason: schema.SelectedAlways}
	case schema.SelectDefault:
		if len(n.Component.Profiles) == 0 || len(c.Profiles) == 0 {
			return verdict{reason: schema.SelectedByDefault}
		}
	}
	return verdict{reason: schema.NotSelected}
}

// stillNeeded names the nodes that need a deselected component, up to one that is selected on its own account.
func (s *Selection) stillNeeded(by *Node, name string) error {
	chain := []string{name}
	for {
		chain = append(chain, by.Name)
		v := s.verdict[by]
		if v.reason != schema.SelectedAsNeeded {
			break
		}
		by = s.graph.byName[v.by]
	}
	slices.Reverse(chain)
	err := report.Errorf(report.Refused, "component %s cannot be deselected: %s needs it (%s)", name, chain[len(chain)-2], strings.Join(chain, " -> "))
	if s.verdict[by].reason == schema.SelectedAlways {
		return err.WithHint("%s is always selected", by.Name)
	}
	return err.WithHint("deselect %s, too", by.Name)
}

// Has reports whether a node is selected.
func (s *Selection) Has(name string) bool {
	n, there := s.graph.byName[name]
	return there && s.verdict[n].selected()
}

// Nodes returns the selected nodes, each after those that it needs; these are selected too.
func (s *Selection) Nodes() []*Node {
	return slices.DeleteFunc(s.graph.Nodes(), func(n *Node) bool { return !s.verdict[n].selected() })
}

// Document returns the graph with the selection, for programs and to be drawn.
func (s *Selection) Document() *schema.ComponentGraph {
	g := s.graph
	d := &schema.ComponentGraph{
		Solution: g.solution.Metadata.Name, Version: g.solution.Spec.Version, Profiles: g.profiles, Chosen: s.profiles, Components: []schema.ComponentNode{},
	}
	for _, n := range g.nodes {
		v := s.verdict[n]
		node := schema.ComponentNode{
			Name: n.Name, Kind: n.Kind, Path: n.Path, Scope: schema.ScopeEnvironment, Level: n.Level,
			Selected: v.selected(), Reason: v.reason, By: v.by,
		}
		if n.Component != nil {
			node.Scope, node.Profiles = cmp.Or(n.Component.Scope, node.Scope), n.Component.Profiles
		}
		for _, need := range n.Needs {
			node.DependsOn = append(node.DependsOn, schema.ComponentDependency{Component: need.Name, Until: need.Until})
		}
		d.Components = append(d.Components, node)
	}
	return d
}

// With returns the choice after another one was made: components that the later one does not name keep the earlier
// choice. Profiles are chosen together; the profile "" means none.
func (c Choice) With(later Choice) Choice {
	result := Choice{Profiles: c.Profiles, Components: map[string]bool{}, Default: slices.Clone(later.Default)}
	if len(later.Profiles) > 0 {
		result.Profiles = slices.DeleteFunc(slices.Clone(later.Profiles), func(name string) bool { return name == "" })
	}
	maps.Copy(result.Components, c.Components)
	maps.Copy(result.Components, later.Components)
	for _, name := range later.Default {
		delete(result.Components, name)
	}
	for _, name := range c.Default {
		if _, chosen := result.Components[name]; !chosen && !slices.Contains(result.Default, name) {
			result.Default = append(result.Default, name)
		}
	}
	return result
}

// Texts returns the choice as [ParseChoice] reads it, sorted.
func (c Choice) Texts() (profiles, components []string) {
	for name, wanted := range c.Components {
		if !wanted {
			name += "=false"
		}
		components = append(components, name)
	}
	for _, name := range c.Default {
		components = append(components, name+"="+valueDefault)
	}
	slices.Sort(components)
	profiles = slices.Clone(c.Profiles)
	slices.Sort(profiles)
	return slices.Compact(profiles), components
}

// Restrict returns the part of an earlier choice that this version still has, and the names that it does not have any
// more.
func (g *Graph) Restrict(c Choice) (known Choice, forgotten []string) {
	known.Components = map[string]bool{}
	for _, profile := range c.Profiles {
		if slices.Contains(g.profiles, profile) {
			known.Profiles = append(known.Profiles, profile)
		} else {
			forgotten = append(forgotten, "profile "+profile)
		}
	}
	for name, wanted := range c.Components {
		if g.byName[name] != nil {
			known.Components[name] = wanted
		} else {
			forgotten = append(forgotten, "component "+name)
		}
	}
	slices.Sort(forgotten)
	return known, forgotten
}
