package chart

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/kube/chart/engine"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Options say for which release and cluster a chart is rendered.
type Options struct {
	Release   string // .Release.Name; the chart's name by default
	Namespace string // .Release.Namespace; "default" by default
	Upgrade   bool   // .Release.IsUpgrade instead of IsInstall
	Revision  int    // .Release.Revision; 1 by default
	Values    map[string]any

	KubeVersion string     // .Capabilities.KubeVersion; by default that of Helm
	APIVersions []string   // .Capabilities.APIVersions; by default those of Helm, and what the API server of each cluster serves beside them
	Lookup      LookupFunc // the function lookup; finds nothing by default

	// Generated has the random values of an earlier rendering; those that are not in it are drawn, see [Rendering.Generated].
	Generated *GeneratedValues
	// StandIns generates values that only look random: they depend on the chart alone, so that anyone with the chart
	// can compute them. They are for checking a chart, and never for a cluster.
	StandIns bool
	Now      time.Time // required, but with StandIns

	SkipCRDs bool // leave out the directories crds/: their objects are the same whatever the values, except for subcharts
	RawCRDs  bool // leave Manifest.Object nil for what is in the directories crds/: it can be the larger part of a chart
}

// Rendering holds the objects of a rendered chart.
type Rendering struct {
	Manifests []Manifest // ordered by template, then as they stand in it
	Misread   []Misread  // hooks that say something that Helm does not know, in the same order
	Notes     string
	Random    []string // functions that were called and differ from rendering to rendering, sorted
	// Generated has the random values, for the next rendering of this release; nil with stand-ins.
	Generated *GeneratedValues
	// Renewed are the subjects of certificates that had lived two thirds of their life and whose values are dropped.
	Renewed []string
}

// Manifest is one rendered object.
type Manifest struct {
	Template string         // as "web/templates/deployment.yaml" or "web/charts/db/crds/db.yaml"
	Line     int            // where the document starts in the rendered template, its comments included, from 1
	Text     []byte         // the YAML document
	Object   map[string]any // decoded as Kubernetes does: YAML 1.1
	CRD      bool           // from a directory crds/, which Helm installs first and never upgrades
	Hook     *Hook          // nil for an ordinary object
}

// Bounds of all templates together.
const (
	maxOutput        = 10 << 20 // bytes of text
	maxValues        = 400_000  // values in the objects
	textOfValue      = 200      // bytes that are as much as a value
	valuesOfDocument = 20       // that a document is as much as
)

// Render renders every template. The same chart, values, capabilities, objects looked up and generated values give the same result. It
// returns soon after ctx ends.
func (c *Chart) Render(ctx context.Context, o Options) (*Rendering, error) {
	if o.Now.IsZero() && !o.StandIns {
		return nil, report.Errorf(report.Usage, "render chart %s: no time is given", c.Name)
	}
	capabilities, err := c.capabilities(o)
	if err != nil {
		return nil, err
	}
	enabled, values, err := c.values(o.Values)
	if err != nil {
		return nil, report.Errorf(report.Invalid, "values of chart %s: %w", c.Name, err)
	}
	functions := newFunctions(ctx, c.Digest, o)
	in := engine.Input{
		Values: values, Capabilities: capabilities, Functions: functions.table(),
		Release: engine.Release{
			Name: cmp.Or(o.Release, c.Name), Namespace: cmp.Or(o.Namespace, "default"), Revision: max(o.Revision, 1), IsUpgrade: o.Upgrade,
		},
	}
	texts, err := enabled.Render(ctx, in)
	if ctx.Err() != nil {
		return nil, report.Errorf(report.Timeout, "render chart %s: %w", c.Name, cmp.Or(err, context.Cause(ctx)))
	}
	if engine.IsExcess(err) {
		return nil, report.Errorf(report.Invalid, "render chart %s: %w", c.Name, err).
			WithHint("report it to the author of the chart: no public chart comes near this bound")
	}
	if engine.IsMalformed(err) {
		return nil, report.Errorf(report.Invalid, "render chart %s: %w", c.Name, err).WithHint("correct the template, or report it to the author of the chart")
	}
	if err != nil {
		return nil, report.Errorf(report.Invalid, "render chart %s: %w", c.Name, err)
	}
	r := &Rendering{Random: functions.used(), Notes: texts[c.Name+"/templates/NOTES.txt"]}
	if m := functions.memory; m != nil {
		r.Generated, r.Renewed = m.generated(), m.renewed
	}
	if !o.SkipCRDs {
		for _, f := range enabled.Definitions() {
			texts[f.Name] = string(f.Data)
		}
	}
	if err := r.read(texts, o.RawCRDs); err != nil {
		return nil, report.Errorf(report.Invalid, "render chart %s: %w", c.Name, err)
	}
	return r, nil
}

// values completes the given values with the defaults of the chart and of its enabled subcharts, and validates them.
func (c *Chart) values(given map[string]any) (*engine.Chart, engine.Values, error) {
	enabled, values, err := c.complete(given)
	if err != nil {
		return nil, nil, err
	}
	return enabled, values, newSchemaBudget().checkValues(enabled, values, "")
}

// complete is values without validation.
func (c *Chart) complete(given map[string]any) (*engine.Chart, engine.Values, error) {
	enabled, err := c.engine.Enable(given)
	if err != nil {
		return nil, nil, err
	}
	values, err := enabled.Complete(given)
	return enabled, values, err
}

// alwaysServed are the API versions that each API server has and Helm's defaults lack, because its client libraries do not know them.
var alwaysServed = []string{"apiregistration.k8s.io/v1", "apiregistration.k8s.io/v1/APIService"}

func (c *Chart) capabilities(o Options) (*engine.Capabilities, error) {
	capabilities, err := engine.NewCapabilities(o.KubeVersion, o.APIVersions)
	if err != nil {
		return nil, report.As(report.Usage, err)
	}
	if o.APIVersions == nil {
		capabilities.APIVersions = slices.Concat(capabilities.APIVersions, alwaysServed)
	}
	if have := capabilities.KubeVersion.String(); c.KubeVersion != "" && !engine.Satisfies(have, c.KubeVersion) {
		return nil, report.Errorf(report.Invalid, "chart %s wants Kubernetes %s, not %s", c.Name, c.KubeVersion, have)
	}
	return capabilities, nil
}

// read reads the documents of all texts, with rawCRDs those of the directories crds/ only as texts.
func (r *Rendering) read(texts map[string]string, rawCRDs bool) error {
	total, left := 0, maxValues
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if total += len(texts[name]); total > maxOutput {
			return report.Errorf(report.Invalid, "the result is larger than %d MiB", maxOutput>>20)
		}
		if strings.HasSuffix(name, "NOTES.txt") {
			continue
		}
		list, misread, err := manifests(name, texts[name], rawCRDs, &left)
		if err != nil {
			return err
		}
		r.Manifests, r.Misread = append(r.Manifests, list...), append(r.Misread, misread...)
	}
	return nil
}

// CRDs returns the objects in the directories crds/ of the chart and of all its subcharts, which Helm does not render.
func (c *Chart) CRDs() ([]Manifest, error) {
	var all []Manifest
	left := maxValues
	for _, f := range c.engine.Definitions() {
		list, _, err := manifests(f.Name, string(f.Data), false, &left)
		if err != nil {
			return nil, report.Errorf(report.Invalid, "chart %s: %w", c.Name, err)
		}
		all = append(all, list...)
	}
	return all, nil
}

// manifests reads the documents of a rendered template. Empty documents, and hooks of kinds unknown to Helm, are left
// out: Helm applies neither. With rawCRDs documents of the directories crds/ stay texts.
func manifests(template, text string, rawCRDs bool, left *int) (list []Manifest, misread []Misread, err error) {
	crd := strings.Contains(template, "/crds/") && !strings.Contains(template, "/templates/")
	for d := range split(text) {
		m := Manifest{Template: template, Line: d.line, Text: []byte(d.text), CRD: crd}
		err := m.spend(left)
		raw := crd && rawCRDs
		if err == nil && !raw {
			err = m.decode()
		}
		if err != nil {
			return nil, nil, report.Errorf(report.Invalid, "%s, document at line %d: %w", template, d.line, err)
		}
		if m.Object == nil && !raw {
			continue
		}
		misread = append(misread, m.misread()...)
		if m.Hook == nil || m.Hook.known() {
			list = append(list, m)
		}
	}
	return list, misread, nil
}

// spend subtracts the size of a document from the remaining bound of all documents.
func (m *Manifest) spend(left *int) error {
	values, text, err := schema.SizeYAML(m.Template, m.Text)
	if err != nil {
		return err
	}
	if *left -= valuesOfDocument + values + text/textOfValue; *left < 0 {
		return report.Errorf(report.Invalid, "the objects of the chart have more than %d values", maxValues)
	}
	return nil
}

// decode leaves Object nil for an empty document.
func (m *Manifest) decode() error {
	var value any
	if err := yaml.Unmarshal(m.Text, &value); err != nil {
		return err
	}
	if value == nil {
		return nil
	}
	object, ok := value.(map[string]any)
	if !ok {
		return errors.New("expected an object")
	}
	m.Object = object
	if m.CRD { // Helm reads no annotations of those
		return nil
	}
	annotations, err := m.annotations()
	if err != nil {
		return err
	}
	m.Hook = readHook(annotations)
	return nil
}

// annotations are read as Helm does, which refuses some that are not text and takes the names of fields in any case. Decoding the text once more
// is for objects where that makes a difference.
func (m *Manifest) annotations() (map[string]string, error) {
	if annotations, plain := plainAnnotations(m.Object); plain {
		return annotations, nil
	}
	var head struct {
		APIVersion, Kind string
		Metadata         struct {
			Annotations map[string]string
		}
	}
	err := yaml.Unmarshal(m.Text, &head)
	return head.Metadata.Annotations, err
}

// plainAnnotations returns the annotations of an object whose head is written as usual.
func plainAnnotations(object map[string]any) (annotations map[string]string, plain bool) {
	apiVersion, versioned := object["apiVersion"].(string)
	kind, hasKind := object["kind"].(string)
	metadata, hasMetadata := object["metadata"].(map[string]any)
	if !versioned || !hasKind || !hasMetadata || apiVersion == "" || kind == "" {
		return nil, false
	}
	if hasVariant(object, "apiVersion", "kind", "metadata") || hasVariant(metadata, "annotations") {
		return nil, false
	}
	list, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return nil, metadata["annotations"] == nil
	}
	annotations = make(map[string]string, len(list))
	for name, value := range list {
		if annotations[name], ok = value.(string); !ok {
			return nil, false
		}
	}
	return annotations, true
}

// hasVariant reports whether an object has one of the fields in another case, too.
func hasVariant(object map[string]any, fields ...string) bool {
	for key := range object {
		if slices.ContainsFunc(fields, func(field string) bool { return key != field && strings.EqualFold(key, field) }) {
			return true
		}
	}
	return false
}
