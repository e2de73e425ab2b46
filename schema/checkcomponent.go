package schema

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// checkComponents judges the graph: what each component is, what it waits for, and that waiting ends.
func (c *checker) checkComponents() {
	const all = "spec.components.*"
	c.unique(all+".name", "component")
	c.checkDuration(all + ".timeout")
	for _, key := range []string{"chart", "manifests", "job", "values"} {
		c.eachString(all+"."+key, func(at []string, s string) { c.checkArchivePath(at, strings.TrimSuffix(s, "/")) })
	}
	list, _ := lookup(c.pruned, "spec", "components").([]any)
	for i, item := range list {
		if object, ok := item.(map[string]any); ok {
			c.checkComponentSource([]string{"spec", "components", strconv.Itoa(i)}, object)
		}
	}
	c.checkGraph(list)
}

// checkComponentSource makes sure that a component is one thing and has no settings of another.
func (c *checker) checkComponentSource(path []string, component map[string]any) {
	var sources []string
	for _, key := range []string{"chart", "manifests", "job"} {
		if component[key] != nil {
			sources = append(sources, key)
		}
	}
	switch {
	case len(sources) == 0:
		c.fail(path, "", "needs one of chart, manifests and job")
	case len(sources) > 1:
		c.fail(path, "make several components of it", "has %s, but a component is only one of chart, manifests and job", strings.Join(sources, " and "))
	}
	if component["values"] != nil && component["chart"] == nil {
		c.fail(append(path, "values"), "", "only a chart takes values")
	}
	if component["once"] != nil && component["job"] == nil {
		c.fail(append(path, "once"), "", "only a job runs once")
	}
}

// checkGraph makes sure that every dependency is there and that there is no cycle.
func (c *checker) checkGraph(list []any) {
	graph := map[string][]string{}
	isJob := map[string]bool{}
	for _, item := range list {
		name, ok := lookup(item, "name").(string)
		if !ok {
			return // without its name, judgements on the others would be guesses
		}
		isJob[name] = lookup(item, "job") != nil
		graph[name] = nil
		edges, _ := lookup(item, "dependsOn").([]any)
		for _, edge := range edges {
			if component, ok := lookup(edge, "component").(string); ok {
				graph[name] = append(graph[name], component)
			}
		}
	}
	c.checkEdges(graph, isJob)
	if cycle := findCycle(graph); cycle != nil {
		c.fail([]string{"spec", "components"}, "remove one of these dependencies", "components wait for each other: %s", strings.Join(cycle, " -> "))
	}
}

func (c *checker) checkEdges(graph map[string][]string, isJob map[string]bool) {
	names := slices.Sorted(maps.Keys(graph))
	c.eachString("spec.components.*.dependsOn.*.component", func(path []string, s string) {
		if _, there := graph[s]; !there {
			hint := ""
			if near := nearest(s, names); near != "" {
				hint = "did you mean " + near + "?"
			}
			c.fail(path, hint, "there is no component %q", s)
		}
	})
	c.each("spec.components.*.dependsOn.*", func(path []string, value any) {
		edge, _ := value.(map[string]any)
		name, _ := edge["component"].(string)
		if edge["until"] == string(UntilComplete) && !isJob[name] {
			c.fail(append(path, "until"), "write Ready", "only a job is ever complete, and %s is none", name)
		}
	})
}

// findCycle returns the names along a cycle, the first one again at its end, or nil.
func findCycle(graph map[string][]string) []string {
	names := slices.Sorted(maps.Keys(graph))
	done := map[string]bool{}
	var trail []string
	var visit func(name string) []string
	visit = func(name string) []string {
		if i := slices.Index(trail, name); i >= 0 {
			return append(slices.Clone(trail[i:]), name)
		}
		if done[name] {
			return nil
		}
		trail = append(trail, name)
		for _, next := range graph[name] {
			if cycle := visit(next); cycle != nil {
				return cycle
			}
		}
		trail = trail[:len(trail)-1]
		done[name] = true
		return nil
	}
	for _, name := range names {
		if cycle := visit(name); cycle != nil {
			return cycle
		}
	}
	return nil
}
