package components

import (
	"fmt"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Tree formats a graph as lines of text: below each node, the nodes that it waits for. A node that is repeated, or too
// deep, is followed by … instead of its subtree.
func Tree(g *schema.ComponentGraph) []string {
	d := &treeDrawing{nodes: map[string]*schema.ComponentNode{}, drawn: map[string]bool{}}
	needed := map[string]bool{}
	for i := range g.Components {
		n := &g.Components[i]
		d.nodes[n.Name] = n
		for _, need := range n.DependsOn {
			needed[need.Component] = true
		}
	}
	for _, n := range g.Components {
		if !needed[n.Name] {
			d.draw(n.Name, "", "", "", 0)
		}
	}
	return d.lines
}

type treeDrawing struct {
	nodes map[string]*schema.ComponentNode
	drawn map[string]bool
	lines []string
}

// maxDepth bounds the width of a tree; [Dot] shows deeper graphs.
const maxDepth = 32

// draw appends a node after the branch that leads to it, and then those that it waits for.
func (d *treeDrawing) draw(name, branch, below, until string, depth int) {
	n := d.nodes[name]
	line := branch + name + until + "  " + describe(n)
	if len(n.DependsOn) > 0 && (d.drawn[name] || depth == maxDepth) {
		d.lines = append(d.lines, line+" …")
		return
	}
	d.lines = append(d.lines, line)
	d.drawn[name] = true
	for i, need := range n.DependsOn {
		branch, next := "├─ ", "│  "
		if i == len(n.DependsOn)-1 {
			branch, next = "└─ ", "   "
		}
		d.draw(need.Component, below+branch, below+next, " "+string(need.Until), depth+1)
	}
}

// describe returns the kind of a node and, unless it is always selected, why it is selected or not.
func describe(n *schema.ComponentNode) string {
	text := string(n.Kind)
	if n.Name != string(n.Kind) {
		text += " " + n.Path
	}
	if n.Scope == schema.ScopeCluster {
		text += ", in the cluster"
	}
	if reason := reason(n); reason != "" {
		text += ", " + reason
	}
	if s := n.Status; s != nil {
		text += fmt.Sprintf(": %s, %d of %s ready", s.Health, s.Ready, report.Count(s.Objects, "object"))
	}
	return text
}

// reason explains why a node is selected or not; "" when this is the default.
func reason(n *schema.ComponentNode) string {
	switch n.Reason {
	case schema.SelectedByProfile:
		return "by profile " + n.By
	case schema.SelectedByName:
		return "by its name"
	case schema.SelectedAsNeeded:
		return "as " + n.By + " needs it"
	case schema.Deselected:
		return "deselected"
	case schema.NotSelected:
		if len(n.Profiles) > 0 {
			return "not without profile " + strings.Join(n.Profiles, " or ")
		}
		return "optional"
	default:
		return ""
	}
}

// Dot formats a graph in the language of Graphviz. Arrows point to the node that waits; unselected nodes are dashed.
func Dot(g *schema.ComponentGraph) string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n", g.Solution+"-"+g.Version)
	for _, n := range g.Components {
		style := ""
		if !n.Selected {
			style = ", style=dashed"
		}
		fmt.Fprintf(&b, "  %q [shape=box, label=\"%s\\n%s\"%s];\n", n.Name, n.Name, n.Kind, style)
	}
	for _, n := range g.Components {
		for _, need := range n.DependsOn {
			fmt.Fprintf(&b, "  %q -> %q [label=%q];\n", need.Component, n.Name, need.Until)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// Mermaid draws a graph in the language of Mermaid, which has words that no node can be called: nodes have numbers.
func Mermaid(g *schema.ComponentGraph) string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	number := map[string]int{}
	for i, n := range g.Components {
		number[n.Name] = i
		class := ""
		if !n.Selected {
			class = ":::unselected"
		}
		fmt.Fprintf(&b, "  n%d[\"%s<br/>%s\"]%s\n", i, n.Name, n.Kind, class)
	}
	for i, n := range g.Components {
		for _, need := range n.DependsOn {
			fmt.Fprintf(&b, "  n%d -->|%s| n%d\n", number[need.Component], need.Until, i)
		}
	}
	b.WriteString("  classDef unselected stroke-dasharray: 5 5\n")
	return b.String()
}
