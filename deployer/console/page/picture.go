package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/solutionctl/solutionctl/schema"
)

// Sizes in a picture, in pixels. The style sheet shows a drawing where it fits, else the levels below each other.
const (
	boxWidth, boxHeight = 184, 52
	gapX, gapY          = 44, 16
	pictureMargin       = 4
	// maxDrawn is the largest number of components for a picture; a table is better for more.
	maxDrawn = 60
	// maxColumns and maxInColumn bound a drawing: more are shown as levels, at all widths.
	maxAcross, maxDown = 7, 12
	// maxLabel is the number of characters that fit into a box.
	maxLabel = 18
)

// picture is a graph drawn in columns, one for each level: arrows lead to the right, to the component that waits. The same in levels below
// each other, where each component names those that it waits for, fits into any window.
type picture struct {
	Fits                int // the number of columns; 0 where they would be too many, or too high
	Levels              [][]component
	Width, Height       int
	BoxWidth, BoxHeight int
	Boxes               []box
	Arrows              []arrow
}

// box is a component in a picture. X and Y are the position of its corner.
type box struct {
	component
	X, Y  int
	Label string // its name, shortened to the width
}

// arrow leads from a component to one that waits for it.
type arrow struct {
	Path   string // as SVG has it
	Dashed bool   // one of both is not selected
}

// component is one as it is shown: in words in the table, in fewer in the picture.
type component struct {
	schema.ComponentNode
	Health schema.DeploymentHealth // "" for unselected parts, and for those without a record of their own
	State  string                  // the same in words
	What   string                  // it is
	Why    string                  // it is selected, or is not
	Needs  []string
}

// Rows are the components, in the order in which they come up.
func (c *Components) Rows() []component {
	rows := make([]component, len(c.Graph.Components))
	for i, n := range c.Graph.Components {
		rows[i] = componentOf(n)
	}
	return rows
}

func componentOf(n schema.ComponentNode) component {
	c := component{ComponentNode: n, What: whatComponent(n), Why: whyComponent(n), State: Text("components.own")}
	switch {
	case n.Status != nil:
		c.Health, c.State = n.Status.Health, Text("health."+string(n.Status.Health))
	case !n.Selected:
		c.State = Text("components.unselected")
	case n.Scope == schema.ScopeCluster:
		c.State = Text("components.elsewhere")
	}
	for _, need := range n.DependsOn {
		c.Needs = append(c.Needs, need.Component+" "+Text("until."+string(need.Until)))
	}
	return c
}

// AboutComponent describes a component, and why it is selected or not.
func AboutComponent(n schema.ComponentNode) string {
	return whatComponent(n) + ". " + whyComponent(n) + "."
}

func whatComponent(n schema.ComponentNode) string {
	what := Text("component." + string(n.Kind))
	if n.Scope == schema.ScopeCluster {
		what += " " + Text("overview.incluster")
	}
	return what
}

func whyComponent(n schema.ComponentNode) string {
	if n.Reason == schema.NotSelected && len(n.Profiles) > 0 {
		return Text("selected.not-in-profile", strings.Join(n.Profiles, ", "))
	}
	return Text("selected."+string(n.Reason), n.By)
}

// Picture draws the graph; nil where there is nothing to draw, or too much to be seen at once.
func (c *Components) Picture() *picture {
	nodes := c.Rows()
	if len(nodes) < 2 || len(nodes) > maxDrawn {
		return nil
	}
	p := &picture{BoxWidth: boxWidth, BoxHeight: boxHeight, Levels: columns(nodes)}
	if n := len(p.Levels); n < 2 || n > maxAcross || slices.ContainsFunc(p.Levels, func(l []component) bool { return len(l) > maxDown }) {
		return p
	}
	p.Fits = len(p.Levels)
	p.draw()
	return p
}

// draw places the components in columns, and the arrows between them.
func (p *picture) draw() {
	at := map[string]box{}
	for level, column := range p.Levels {
		column = slices.Clone(column)
		// A component is placed beside those that it waits for, if possible: that crosses fewer arrows.
		slices.SortStableFunc(column, func(a, b component) int { return cmp.Compare(middle(a, at), middle(b, at)) })
		for i, n := range column {
			b := box{component: n, X: pictureMargin + level*(boxWidth+gapX), Y: pictureMargin + i*(boxHeight+gapY), Label: shortened(n.Name)}
			at[n.Name], p.Boxes = b, append(p.Boxes, b)
			p.Width, p.Height = max(p.Width, b.X+boxWidth+pictureMargin), max(p.Height, b.Y+boxHeight+pictureMargin)
		}
	}
	for _, to := range p.Boxes {
		for _, need := range to.DependsOn {
			if from, there := at[need.Component]; there {
				p.Arrows = append(p.Arrows, arrowBetween(from, to))
			}
		}
	}
}

// After names the components that one waits for.
func (c component) After() string {
	var names []string
	for _, need := range c.DependsOn {
		names = append(names, need.Component)
	}
	return strings.Join(names, ", ")
}

// columns are the components of each level.
func columns(nodes []component) [][]component {
	var all [][]component
	for _, n := range slices.SortedStableFunc(slices.Values(nodes), func(a, b component) int { return a.Level - b.Level }) {
		if last := len(all) - 1; last >= 0 && all[last][0].Level == n.Level {
			all[last] = append(all[last], n)
		} else {
			all = append(all, []component{n})
		}
	}
	return all
}

// middle is the height at which a component has the shortest arrows.
func middle(n component, at map[string]box) int {
	sum := 0
	for _, need := range n.DependsOn {
		sum += at[need.Component].Y
	}
	return sum / max(len(n.DependsOn), 1)
}

// arrowBetween leads from the right of a box to the left of another one, with a head.
func arrowBetween(from, to box) arrow {
	x, y := from.X+boxWidth, from.Y+boxHeight/2
	tx, ty := to.X, to.Y+boxHeight/2
	return arrow{
		Path:   fmt.Sprintf("M%d %dC%d %d %d %d %d %dm-7 -4l7 4l-7 4", x, y, x+gapX/2, y, tx-gapX/2, ty, tx, ty),
		Dashed: !from.Selected || !to.Selected,
	}
}

func shortened(name string) string {
	if utf8.RuneCountInString(name) <= maxLabel {
		return name
	}
	return string([]rune(name)[:maxLabel-1]) + "…"
}

// Figures are how many of its objects are ready.
func (c component) Figures() string {
	if c.Status == nil || c.Status.Objects == 0 {
		return ""
	}
	return strconv.Itoa(c.Status.Ready) + " / " + strconv.Itoa(c.Status.Objects)
}
