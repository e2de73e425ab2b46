package schema

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

// checkComponents judges the graph: what each component is, where it lives, what it waits for, and that waiting ends.
func (c *checker) checkComponents() {
	const all = "spec.components.*"
	c.unique(all+".name", "component")
	for _, pattern := range []string{all + ".namespace", all + ".namespaces.*"} {
		c.eachString(pattern, func(path []string, name string) {
			if slices.Contains(reservedNamespaces, name) {
				c.fail(path, "choose another one", "namespace %s holds what is recorded of Solutions", name)
			}
		})
	}
	c.checkDuration(all + ".timeout")
	c.eachString(all+".optionalKinds.*", func(path []string, s string) {
		if coreKind.MatchString(s) {
			c.fail(path, "remove it", "every cluster knows the kinds of the core group")
		}
	})
	for _, key := range []string{"chart", "manifests", "job", "values"} {
		c.eachString(all+"."+key, func(at []string, s string) { c.checkArchivePath(at, strings.TrimSuffix(s, "/")) })
	}
	list, _ := lookup(c.pruned, "spec", "components").([]any)
	for i, item := range list {
		if object, ok := item.(map[string]any); ok {
			path := []string{"spec", "components", strconv.Itoa(i)}
			c.checkComponentSource(path, object)
			c.checkComponentName(path, object)
			c.checkComponentScope(path, object)
		}
	}
	c.checkGraph(list)
}

// coreKind matches a kind of the core group with its version.
var coreKind = lazyregexp.New(`^v[0-9]+((alpha|beta)[0-9]+)?/`)

// ofOneKind are the settings that mean something for components of certain kinds only.
var ofOneKind = []struct {
	key     string
	kinds   []string
	problem string
}{
	{"values", []string{"chart"}, "only a chart takes values"},
	{"release", []string{"chart"}, "only a chart is rendered under the name of a release"},
	{"hooks", []string{"chart"}, "only a chart has hooks"},
	{"site", []string{"chart"}, "only a chart takes values of a site"},
	{"once", []string{"job"}, "only a job runs once"},
	{"image", []string{"operator"}, "only an operator is started from an image that stands here"},
	{"optionalKinds", []string{"chart", "manifests"}, "only a chart and manifests have objects of several kinds"},
}

// checkComponentSource makes sure that a component is one thing and has no settings of another.
func (c *checker) checkComponentSource(path []string, component map[string]any) {
	var sources []string
	for _, kind := range []string{"chart", "manifests", "job", "operator"} {
		if component[kind] != nil {
			sources = append(sources, kind)
		}
	}
	const what = "chart, manifests, job and operator"
	switch {
	case len(sources) == 0:
		c.fail(path, "", "needs one of %s", what)
	case len(sources) > 1:
		c.fail(path, "make several components of it", "has %s, but a component is only one of %s", strings.Join(sources, " and "), what)
	}
	for _, setting := range ofOneKind {
		fits := func(kind string) bool { return component[kind] != nil }
		if component[setting.key] != nil && !slices.ContainsFunc(setting.kinds, fits) {
			c.fail(append(path, setting.key), "", "%s", setting.problem)
		}
	}
	if component["select"] == string(SelectAlways) && component["profiles"] != nil {
		c.fail(append(path, "profiles"), "remove them, or select: always", "a component that is always selected needs no profiles")
	}
}

// checkComponentName keeps names of nodes and objects apart that are made from those of components.
func (c *checker) checkComponentName(path []string, component map[string]any) {
	name, _ := component["name"].(string)
	switch {
	case name == NodeOperator || name == NodeUI:
		c.fail(append(path, "name"), "choose another name", "%s is the name of the archive's %s/; other components may depend on it", name, name)
	case component["operator"] != nil && name == c.text("metadata.name")+"-operator":
		c.fail(append(path, "name"), "choose another name", "the Solution's own operator is called %s", name)
	}
}

// reservedNamespaces lists the namespaces in which a component must not have objects.
var reservedNamespaces = []string{"metalk8s-solutions", "solutionctl-system"}

// checkComponentScope judges where a component lives. What lives in an environment stays in its namespace.
func (c *checker) checkComponentScope(path []string, component map[string]any) {
	wide := component["scope"] == string(ScopeCluster)
	for _, key := range []string{"namespace", "namespaces"} {
		if component[key] != nil && !wide {
			c.fail(append(path, key), "write scope: cluster", "a component of an environment lives in its namespace and in no other")
		}
	}
	if wide && component["operator"] != nil {
		c.fail(append(path, "scope"), "remove it", "an operator lives in an environment, as the Solution's own does")
	}
	if name, ok := component["namespace"].(string); ok && IsSystemNamespace(name) && !slices.Contains(reservedNamespaces, name) {
		c.fail(append(path, "namespace"), "leave it out, and list in namespaces where else the component has objects",
			"%s belongs to the cluster: a user who runs pods there controls the cluster", name)
	}
}

// edge is a dependency, and where it stands.
type edge struct {
	from, to string
	until    any
	path     []string
}

// checkGraph checks that every dependency exists and can be met, and that the graph has no cycle.
func (c *checker) checkGraph(list []any) {
	components := map[string]any{NodeOperator: nil, NodeUI: nil}
	graph := map[string][]edge{}
	var order []string
	for i, item := range list {
		name, ok := lookup(item, "name").(string)
		if !ok {
			return // without its name, judgements on the others would be guesses
		}
		order, components[name], graph[name] = append(order, name), item, nil
		dependencies, _ := lookup(item, "dependsOn").([]any)
		for j, dependency := range dependencies {
			if to, ok := lookup(dependency, "component").(string); ok {
				path := []string{"spec", "components", strconv.Itoa(i), "dependsOn", strconv.Itoa(j)}
				graph[name] = append(graph[name], edge{name, to, lookup(dependency, "until"), path})
			}
		}
	}
	names := slices.Sorted(maps.Keys(components))
	for _, name := range order {
		for _, e := range graph[name] {
			if _, there := components[e.to]; !there {
				c.fail(append(e.path, "component"), didYouMean(e.to, names, ""), "there is no component %q", e.to)
			}
			c.checkEdge(e, components)
		}
	}
	if cycle := findCycle(order, graph); cycle != nil {
		closing := cycle[len(cycle)-1]
		trail := []string{cycle[0].from}
		for _, e := range cycle {
			trail = append(trail, e.to)
		}
		c.fail(append(closing.path, "component"), "remove one of these dependencies", "components wait for each other: %s", strings.Join(trail, " -> "))
	}
}

// checkEdge makes sure that what a component waits for can come.
func (c *checker) checkEdge(e edge, components map[string]any) {
	from, to := components[e.from], components[e.to]
	if e.until == string(UntilComplete) && lookup(to, "job") == nil {
		c.fail(append(e.path, "until"), "write Ready", "only a job is ever complete, and %s is none", e.to)
	}
	if _, there := components[e.to]; there && lookup(from, "scope") == string(ScopeCluster) && lookup(to, "scope") != string(ScopeCluster) {
		c.fail(append(e.path, "component"), "", "%s lives in the cluster, which comes before environments, where %s lives", e.from, e.to)
	}
}

// findCycle returns the dependencies along a cycle, or nil.
func findCycle(order []string, graph map[string][]edge) []edge {
	depth := map[string]int{} // on the trail: how deep, from 1; -1 when nothing of it leads to a cycle
	var trail []edge
	var visit func(name string) []edge
	visit = func(name string) []edge {
		depth[name] = len(trail) + 1
		for _, e := range graph[name] {
			switch at := depth[e.to]; {
			case at > 0:
				return append(trail[at-1:], e)
			case at == 0:
				trail = append(trail, e)
				if cycle := visit(e.to); cycle != nil {
					return cycle
				}
				trail = trail[:len(trail)-1]
			}
		}
		depth[name] = -1
		return nil
	}
	for _, name := range order {
		if depth[name] == 0 {
			if cycle := visit(name); cycle != nil {
				return cycle
			}
		}
	}
	return nil
}
