package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Enable returns the chart with the subcharts that the values switch on, by conditions and tags, each under its alias, and with
// the values that charts import from their subcharts. Neither the chart nor the values are changed.
func (c *Chart) Enable(values map[string]any) (*Chart, error) {
	enabled := c.clone()
	if err := enabled.choose(values, ""); err != nil {
		return nil, err
	}
	if err := enabled.importValues(); err != nil {
		return nil, err
	}
	return enabled, nil
}

// clone copies the parts that Enable changes.
func (c *Chart) clone() *Chart {
	copied := *c
	copied.Dependencies = slices.Clone(c.Dependencies)
	for i, d := range c.Dependencies {
		d := *d
		copied.Dependencies[i] = &d
	}
	copied.Subcharts = slices.Clone(c.Subcharts)
	for i, sub := range c.Subcharts {
		copied.Subcharts[i] = sub.clone()
	}
	return &copied
}

// choose leaves the subcharts that are switched on. Conditions are paths in the values of the outermost chart; prefix leads to
// those of this one.
func (c *Chart) choose(values map[string]any, prefix string) error {
	if c.Dependencies == nil {
		return nil // all of charts/ is used
	}
	c.match()
	all, err := c.Complete(values)
	if err != nil {
		return err
	}
	tags, _ := all.Table("tags") // of the outermost chart as well
	off := map[string]bool{}
	for _, d := range c.Dependencies {
		d.Enabled = d.wanted(all, tags, prefix)
		if !d.Enabled {
			off[d.Name] = true
		}
	}
	c.Subcharts = slices.DeleteFunc(c.Subcharts, func(sub *Chart) bool { return off[sub.Name] })
	if c.Dependencies = slices.DeleteFunc(c.Dependencies, func(d *Dependency) bool { return off[d.Name] }); len(c.Dependencies) == 0 {
		c.Dependencies = nil
	}
	for _, sub := range c.Subcharts {
		if err := sub.choose(all, prefix+sub.Name+"."); err != nil {
			return err
		}
	}
	return nil
}

// match makes a subchart for each dependency, after the charts in charts/ that are not dependencies.
func (c *Chart) match() {
	var subcharts []*Chart
	for _, sub := range c.Subcharts {
		if !slices.ContainsFunc(c.Dependencies, func(d *Dependency) bool { return d.means(sub) }) {
			subcharts = append(subcharts, sub)
		}
	}
	for _, d := range c.Dependencies {
		if i := slices.IndexFunc(c.Subcharts, d.means); i >= 0 {
			sub := c.Subcharts[i].clone()
			sub.Name = cmp.Or(d.Alias, sub.Name)
			subcharts = append(subcharts, sub)
		}
		d.Name = d.localName()
	}
	c.Subcharts = subcharts
}

func (d *Dependency) means(sub *Chart) bool {
	return sub.Name == d.Name && Satisfies(sub.Version, d.Version)
}

// localName is the name of the dependency in the chart that declares it.
func (d *Dependency) localName() string { return cmp.Or(d.Alias, d.Name) }

// wanted judges by the first condition that has a value, else by the tags, of which one that is true suffices.
func (d *Dependency) wanted(values, tags Values, prefix string) bool {
	for condition := range strings.SplitSeq(strings.TrimSpace(d.Condition), ",") {
		if value, err := values.PathValue(prefix + condition); err == nil {
			if on, ok := value.(bool); ok {
				return on
			}
		}
	}
	var on, off bool
	for _, tag := range d.Tags {
		on = on || tags[tag] == true
		off = off || tags[tag] == false
	}
	return on || !off
}

// importValues copies values of subcharts as import-values requests, below those of the chart itself, innermost charts
// first.
func (c *Chart) importValues() error {
	for _, sub := range c.Subcharts {
		if err := sub.importValues(); err != nil {
			return err
		}
	}
	if c.Dependencies == nil {
		return nil
	}
	all := map[string]any{}
	if err := c.complete(all, keepNulls); err != nil {
		return err
	}
	imported := map[string]any{}
	for _, d := range c.Dependencies {
		var imports []any
		for _, entry := range d.ImportValues {
			child, parent := "", "."
			switch entry := entry.(type) {
			case string:
				child = "exports." + entry
			case map[string]any:
				child, parent = fmt.Sprint(entry["child"]), fmt.Sprint(entry["parent"])
			default:
				continue
			}
			imports = append(imports, map[string]string{"child": child, "parent": parent})
			// Helm copies nothing here, so that a subchart sees what others export, and tables that contain themselves end the program.
			if table, err := Values(all).Table(d.Name + "." + child); err == nil {
				merge(imported, nest(parent, copyTable(table)), keepNulls)
			}
		}
		d.ImportValues = imports
	}
	c.values = copyTable(all)
	merge(c.values, imported, keepNulls)
	return nil
}

// nest puts a table at a path.
func nest(place string, table map[string]any) map[string]any {
	if place == "." {
		return table
	}
	for _, key := range slices.Backward(strings.Split(place, ".")) {
		table = map[string]any{key: table}
	}
	return table
}
