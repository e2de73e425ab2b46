package page_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema"
)

// TestPicture: a graph is drawn as long as it can be looked at; the table is there in any case.
func TestPicture(t *testing.T) {
	p := newPages(t, "")
	for _, test := range []struct {
		number int
		drawn  bool
	}{{0, false}, {1, false}, {2, true}, {60, true}, {61, false}, {200, false}} {
		graph := &schema.ComponentGraph{Solution: "cloud", Version: "1.0.0"}
		for i := range test.number {
			n := schema.ComponentNode{Name: fmt.Sprintf("part-%03d", i), Kind: schema.ComponentChart, Level: i % 5, Selected: true, Reason: schema.SelectedByDefault}
			if i > 0 {
				n.DependsOn = []schema.ComponentDependency{{Component: "part-000", Until: schema.UntilReady}, {Component: "nobody", Until: schema.UntilReady}}
			}
			graph.Components = append(graph.Components, n)
		}
		text := render(t, p, page.View{Content: &page.Components{Environment: "test", Namespace: "test", Graph: graph}})
		if drawn := strings.Contains(text, `class="graph`); drawn != test.drawn {
			t.Errorf("%d components: drawn is %t", test.number, drawn)
		}
		if levels := strings.Count(text, `<li class="node `); test.drawn && levels != test.number {
			t.Errorf("%d components: %d in levels", test.number, levels)
		}
		if boxes := strings.Count(text, "<rect "); test.drawn && (boxes != test.number || strings.Count(text, `class="arrow"`) != test.number-1) {
			t.Errorf("%d components: %d boxes", test.number, boxes)
		}
		if rows := strings.Count(text, `<th scope="row">`); rows != test.number {
			t.Errorf("%d components: %d rows", test.number, rows)
		}
	}
}
