// Package components orders the parts of a Solution by their dependencies, and selects those of a deployment.
//
// [New] makes a [Graph] of a manifest, and [Graph.Select] applies a [Choice] to it; [Tree], [Dot] and [Mermaid] format
// both. The package has no side effects: the caller deploys the parts in this order.
package components

import (
	"cmp"
	"maps"
	"slices"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Graph has the parts of a version of a Solution, and which of them waits for which.
type Graph struct {
	solution *schema.Solution
	nodes    []*Node // each after those that it needs
	byName   map[string]*Node
	profiles []string
}

// Node is a part of a Solution: a component, or one of [schema.NodeOperator] and [schema.NodeUI].
type Node struct {
	Name      string
	Kind      schema.ComponentKind
	Path      string            // in the archive
	Component *schema.Component // nil when it is none
	Needs     []Need            // in the order of the manifest
	NeededBy  []*Node           // in order of the graph
	// Level is the number of nodes on the longest way to one that needs nothing.
	Level int
}

// Need is a node to wait for, and the state that it has to reach.
type Need struct {
	*Node
	Until schema.Until
}

// New returns the graph of a Solution. parts are the parts of the archive besides components: its operator, its user
// interface.
func New(s *schema.Solution, parts ...string) (*Graph, error) {
	g := &Graph{solution: s, byName: map[string]*Node{}}
	for _, part := range parts {
		g.byName[part] = &Node{Name: part, Kind: schema.ComponentKind(part), Path: part}
	}
	for i := range s.Spec.Components {
		c := &s.Spec.Components[i]
		kind, path := c.Source()
		g.byName[c.Name] = &Node{Name: c.Name, Kind: kind, Path: path, Component: c}
		g.profiles = append(g.profiles, c.Profiles...)
	}
	slices.Sort(g.profiles)
	g.profiles = slices.Compact(g.profiles)
	if err := g.connect(); err != nil {
		return nil, err
	}
	return g, g.sort()
}

// connect finds the dependencies of each component.
func (g *Graph) connect() error {
	for _, component := range g.solution.Spec.Components {
		node := g.byName[component.Name]
		for _, d := range component.DependsOn {
			need, there := g.byName[d.Component]
			if !there {
				return report.Errorf(report.Invalid, "component %s waits for %s, which %s does not have", node.Name, d.Component, g.solution.ID())
			}
			until := schema.UntilReady
			if need.Kind == schema.ComponentJob {
				until = schema.UntilComplete
			}
			node.Needs = append(node.Needs, Need{need, cmp.Or(d.Until, until)})
		}
	}
	return nil
}

// sort puts the nodes into their order: by level, then by name, whatever the order in the manifest.
func (g *Graph) sort() error {
	done := map[*Node]bool{} // done is false while the dependencies of a node are visited
	var visit func(n *Node) error
	visit = func(n *Node) error {
		finished, visited := done[n]
		switch {
		case finished:
			return nil
		case visited:
			return report.Errorf(report.Invalid, "component %s of %s waits for itself", n.Name, g.solution.ID())
		}
		done[n] = false
		for _, need := range n.Needs {
			if err := visit(need.Node); err != nil {
				return err
			}
			n.Level = max(n.Level, need.Level+1)
		}
		done[n] = true
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(g.byName)) {
		if err := visit(g.byName[name]); err != nil {
			return err
		}
	}
	g.nodes = slices.SortedFunc(maps.Values(g.byName), func(a, b *Node) int {
		return cmp.Or(a.Level-b.Level, cmp.Compare(a.Name, b.Name))
	})
	for _, n := range g.nodes {
		for _, need := range n.Needs {
			if last := len(need.NeededBy) - 1; last < 0 || need.NeededBy[last] != n { // else it is named twice, for two states
				need.NeededBy = append(need.NeededBy, n)
			}
		}
	}
	return nil
}

// Nodes returns all nodes, each after those that it needs.
func (g *Graph) Nodes() []*Node { return slices.Clone(g.nodes) }
