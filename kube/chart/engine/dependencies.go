package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Bounds of the work that dependencies ask for.
const (
	maxCopied   = 5_000_000 // values
	maxCompared = 200_000   // versions
)

func tooMuch(format string, args ...any) error {
	return report.Errorf(report.Invalid, format, args...).WithHint("report it to the author of the chart: no public chart comes near this bound")
}

// enabling counts down the bounds of one [Chart.Enable]. A subchart that one dependency uses is in the package; each further use
// makes a copy of it, with its subcharts, and these are copied again for their dependencies.
type enabling struct {
	allowance       // files and bytes of copies
	values    int64 // of copies, and imported ones
	copied    int64 // values that are copied to complete and merge them
	versions  *Versions
}

// take takes a copy of a subchart.
func (e *enabling) take(sub *Chart) error {
	e.files, e.bytes, e.values = e.files-sub.size.files, e.bytes-sub.size.bytes, e.values-sub.size.values
	if e.files < 0 || e.bytes < 0 || e.values < 0 {
		return tooMuch("dependencies copy more than %d files, %d MiB or %d values of subcharts", maxFiles, maxTotal>>20, maxParsed)
	}
	return nil
}

// copies takes work for values.
func (e *enabling) copies(values map[string]any) error {
	count, err := count(values)
	if e.copied -= count; err == nil && e.copied < 0 {
		err = tooMuch("dependencies copy more than %d values", maxCopied)
	}
	return err
}

// imports takes a table that is imported to a place.
func (e *enabling) imports(table map[string]any, place string) error {
	keys := strings.Count(place, ".") + 1
	if keys > maxDepth {
		return tooMuch("import-values: the parent has more than %d keys", maxDepth)
	}
	count, err := count(table)
	if e.values -= count + int64(keys); err == nil && e.values < 0 {
		err = tooMuch("dependencies import more than %d values", maxParsed)
	}
	return err
}

// Enable returns the chart with the subcharts that the values switch on, by conditions and tags, each under its alias, and with
// the values that charts import from their subcharts. Neither the chart nor the values are changed. Dependencies that multiply
// charts or values are refused as [report.Invalid].
func (c *Chart) Enable(values map[string]any) (*Chart, error) {
	enabled := c.clone()
	left := &enabling{allowance: allowance{bytes: maxTotal, files: maxFiles}, values: maxParsed, copied: maxCopied, versions: NewVersions()}
	if err := enabled.choose(values, "", left); err != nil {
		return nil, err
	}
	if err := enabled.importValues(left); err != nil {
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
func (c *Chart) choose(values map[string]any, prefix string, left *enabling) error {
	if c.Dependencies == nil {
		return nil // all of charts/ is used
	}
	if err := c.match(left); err != nil {
		return err
	}
	all, err := c.Complete(values)
	if err != nil {
		return err
	}
	if err = left.copies(all); err != nil {
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
		if err := sub.choose(all, prefix+sub.Name+".", left); err != nil {
			return err
		}
	}
	return nil
}

// match makes a subchart for each dependency, after the charts in charts/ that are not dependencies.
func (c *Chart) match(left *enabling) error {
	byName := map[string][]int{}
	for i, sub := range c.Subcharts {
		byName[sub.Name] = append(byName[sub.Name], i)
	}
	var made []*Chart
	named, used := make([]bool, len(c.Subcharts)), make([]bool, len(c.Subcharts))
	for _, d := range c.Dependencies {
		first := -1
		for _, i := range byName[d.Name] {
			ok, err := left.versions.Satisfies(c.Subcharts[i].Version, d.Version)
			if err != nil {
				return err
			}
			if named[i] = named[i] || ok; ok && first < 0 {
				first = i
			}
		}
		d.Name = d.localName()
		if first < 0 {
			continue
		}
		if used[first] {
			if err := left.take(c.Subcharts[first]); err != nil {
				return err
			}
		}
		used[first] = true
		sub := c.Subcharts[first].clone()
		sub.Name = cmp.Or(d.Alias, sub.Name)
		made = append(made, sub)
	}
	var others []*Chart
	for i, sub := range c.Subcharts {
		if !named[i] {
			others = append(others, sub)
		}
	}
	c.Subcharts = append(others, made...)
	return nil
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
func (c *Chart) importValues(left *enabling) error {
	for _, sub := range c.Subcharts {
		if err := sub.importValues(left); err != nil {
			return err
		}
	}
	if c.Dependencies == nil {
		return nil
	}
	all := map[string]any{}
	if err := c.complete(all, keepNulls, new(int64(maxParsed))); err != nil {
		return err
	}
	if err := left.copies(all); err != nil {
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
			table, err := Values(all).Table(d.Name + "." + child)
			if err != nil {
				continue
			}
			if err = left.imports(table, parent); err != nil {
				return err
			}
			merge(imported, nest(parent, copyTable(table)), keepNulls)
			if err = left.copies(imported); err != nil {
				return err
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
