// Package engine renders the templates of Helm charts as Helm 4 does, without Helm.
//
// [Unpack] reads a package and [Load] makes a chart of its files. [Chart.Enable] selects the subcharts that the values
// enable, with their names; [Chart.Complete] merges values over the defaults of all of them; [Chart.Render] executes
// the templates.
//
// The result is that of Helm's own engine, byte for byte, with all its odd cases; deployer/e2e/helm compares them over
// a corpus of charts. Warnings of Helm are left out. Unlike Helm, the order of subcharts and of API versions never
// varies, and hostile charts terminate: packages, the nesting of charts and of templates, the text, the time and the
// memory are bounded. Only the chart is read: the functions of templates have no access to network, environment or
// cluster.
package engine

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/schema"
)

// Chart is a chart with its subcharts. It may be used by several goroutines, as long as none of them changes it.
type Chart struct {
	Metadata
	Schema    []byte // values.schema.json, nil for none
	Defaults  []byte // values.yaml, with its comments
	Subcharts []*Chart

	values    map[string]any // values.yaml
	templates []File         // below templates/
	others    []File         // for .Files
	size      chartSize
}

// chartSize is the size of a chart in a package, its subcharts included.
type chartSize struct{ files, bytes, values int64 }

// Load makes a chart of its files.
func Load(files []File) (*Chart, error) {
	return load(files, &parsing{values: maxParsed, text: maxTotal}, 0)
}

// Bounds of the YAML of a chart and its subcharts.
const (
	maxParsed        = 500_000 // values
	valuesOfDocument = 20      // values that a document is as much as
)

// parsing is the number of values, and of bytes in them, that may still be parsed. Aliases count as what they stand for, so that neither
// these nor many subcharts multiply what a package has.
type parsing struct{ values, text int }

// unmarshal parses a YAML document.
func (p *parsing) unmarshal(file string, document []byte, into any) error {
	values, text, err := schema.SizeYAML(file, document)
	if err != nil {
		return err
	}
	p.values, p.text = p.values-values-valuesOfDocument, p.text-text
	if p.values < 0 || p.text < 0 {
		return fmt.Errorf("the YAML of the chart and its subcharts has more than %d values or %d MiB", maxParsed, maxTotal>>20)
	}
	return yaml.Unmarshal(document, into)
}

func load(files []File, left *parsing, depth int) (*Chart, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("subcharts are nested more than %d deep", maxNesting)
	}
	c, before := &Chart{}, *left
	if err := c.read(files, left); err != nil {
		return nil, err
	}
	subcharts := map[string][]File{} // by the name below charts/
	for _, f := range files {
		if err := c.add(f, subcharts, left); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(subcharts)) {
		sub, err := load(subcharts[name], left, depth+1)
		if err != nil {
			return nil, fmt.Errorf("charts/%s: %w", name, err)
		}
		c.Subcharts = append(c.Subcharts, sub)
	}
	c.size = chartSize{files: int64(len(files)), bytes: int64(before.text - left.text), values: int64(before.values - left.values)}
	for _, f := range files {
		c.size.bytes += int64(len(f.Data))
	}
	return c, nil
}

// add puts a file where it belongs.
func (c *Chart) add(f File, subcharts map[string][]File, left *parsing) (err error) {
	below, isSubchart := strings.CutPrefix(f.Name, "charts/")
	switch {
	case f.Name == chartFile, f.Name == "Chart.lock":
	case f.Name == "values.yaml":
		if c.values, err = readValues(f.Data, left); err != nil {
			return fmt.Errorf("values.yaml: %w", err)
		}
		c.Defaults = f.Data
	case f.Name == "values.schema.json":
		c.Schema = f.Data
	case f.Name == "requirements.yaml" || f.Name == "requirements.lock":
		if c.APIVersion == "v1" {
			c.others = append(c.others, f)
		}
	case strings.HasPrefix(f.Name, "templates/"):
		c.templates = append(c.templates, f)
	case !isSubchart || path.Ext(below) == ".prov":
		c.others = append(c.others, f)
	case !ignored(below):
		name, inside, ok := strings.Cut(below, "/")
		if !ok {
			return fmt.Errorf("%s is not a subchart", f.Name)
		}
		subcharts[name] = append(subcharts[name], File{inside, f.Data})
	}
	return nil
}

// readValues reads YAML documents, of which later ones go over earlier ones, table by table.
func readValues(data []byte, left *parsing) (map[string]any, error) {
	values := map[string]any{}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return values, nil
		}
		if err != nil {
			return nil, err
		}
		var more map[string]any
		if err = left.unmarshal("values.yaml", document, &more); err != nil {
			return nil, err
		}
		overlay(values, more)
	}
}

func overlay(under, over map[string]any) {
	for key, value := range over {
		above, ok := value.(map[string]any)
		if below, both := under[key].(map[string]any); ok && both {
			overlay(below, above)
		} else {
			under[key] = value
		}
	}
}

// Definitions are the files in crds/ of the chart and its subcharts, named as templates are.
func (c *Chart) Definitions() []File { return c.definitions(c.Name) }

func (c *Chart) definitions(place string) (found []File) {
	for _, f := range c.others {
		switch extension := strings.ToLower(path.Ext(f.Name)); extension {
		case ".yaml", ".yml", ".json":
			if strings.HasPrefix(f.Name, "crds/") {
				found = append(found, File{path.Join(place, f.Name), f.Data})
			}
		}
	}
	for _, sub := range c.Subcharts {
		found = append(found, sub.definitions(sub.below(place))...)
	}
	return found
}

// below is the place of a subchart of a chart.
func (c *Chart) below(place string) string { return path.Join(place, "charts", c.Name) }
