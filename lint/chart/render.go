package chart

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	helm "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1/util"
	"sigs.k8s.io/yaml"

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

	KubeVersion string     // .Capabilities.KubeVersion; what Helm was built for by default
	APIVersions []string   // .Capabilities.APIVersions; by default everything that Kubernetes ever had
	Lookup      LookupFunc // what the function lookup finds; nothing by default

	// Memo has the random values of an earlier rendering; those that are not in it are drawn, see [Rendering.Memo].
	Memo *Memo
	// StandIns gives values that only look random instead: they depend on the chart alone, so that whoever has it can compute
	// them. That is for judging a chart, and never for a cluster.
	StandIns bool
	Now      time.Time // required, but with StandIns
}

// Rendering holds the objects of a rendered chart.
type Rendering struct {
	Manifests []Manifest // ordered by template, then as they stand in it
	Misread   []Misread  // hooks that say something that Helm does not know, in the same order
	Notes     string
	Random    []string // functions that were called and differ from rendering to rendering, sorted
	// Memo has the random values, for the next rendering of this release; nil with stand-ins.
	Memo *Memo
	// Renewed are the subjects of certificates that had lived two thirds of their life and that the memo has no longer.
	Renewed []string
	// Inputs is a digest, in hex, of everything that the objects follow from. While it stays, so do they.
	Inputs string
}

// Manifest is one rendered object.
type Manifest struct {
	Template string         // as "web/templates/deployment.yaml" or "web/charts/db/crds/db.yaml"
	Line     int            // where the document starts in the rendered template, its comments included, from 1
	Text     []byte         // the YAML document
	Object   map[string]any // decoded as Kubernetes does: YAML 1.1
	CRD      bool           // from a directory crds/, which Helm installs first and never upgrades
	Hook     *Hook          // nil for an ordinary object
	Keep     bool           // helm.sh/resource-policy: keep
}

const annotationPolicy = "helm.sh/resource-policy"

// maxOutput bounds the text of all templates together.
const maxOutput = 10 << 20

// Render renders every template. The same chart, values, capabilities, objects looked up and memo give the same result. It
// returns when ctx ends; a template that loops without calling a function goes on until the process ends.
func (c *Chart) Render(ctx context.Context, o Options) (*Rendering, error) {
	if o.Now.IsZero() && !o.StandIns {
		return nil, report.Errorf(report.Usage, "render chart %s: no time is given", c.Name)
	}
	loaded, err := c.load()
	if err != nil {
		return nil, err
	}
	values, err := c.values(loaded, o)
	if err != nil {
		return nil, err
	}
	functions := newFunctions(ctx, c.Digest, o)
	texts, err := within(ctx, func() (map[string]string, error) {
		return engine.Engine{CustomTemplateFuncs: functions.table()}.Render(loaded, values)
	})
	if ctx.Err() != nil {
		return nil, report.Errorf(report.Timeout, "render chart %s: it did not end in time: %w", c.Name, context.Cause(ctx))
	}
	if err != nil {
		return nil, report.Errorf(report.Invalid, "render chart %s: %w", c.Name, err)
	}
	r := &Rendering{Random: functions.used(), Notes: texts[c.Name+"/templates/NOTES.txt"]}
	if m := functions.memory; m != nil {
		r.Memo, r.Renewed = m.memo(), m.renewed
	}
	if r.Inputs, err = digestOf(c.Digest, o.Values, values["Release"], values["Capabilities"], functions.lookups.answers, r.Memo); err != nil {
		return nil, err
	}
	total := 0
	for _, crd := range loaded.CRDObjects() {
		texts[crd.Filename] = string(crd.File.Data)
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if total += len(texts[name]); total > maxOutput {
			return nil, report.Errorf(report.Invalid, "render chart %s: the result is larger than %d MiB", c.Name, maxOutput>>20)
		}
		if strings.HasSuffix(name, "NOTES.txt") {
			continue
		}
		list, misread, err := manifests(name, texts[name])
		if err != nil {
			return nil, report.Errorf(report.Invalid, "render chart %s: %w", c.Name, err)
		}
		r.Manifests, r.Misread = append(r.Manifests, list...), append(r.Misread, misread...)
	}
	return r, nil
}

// within calls a function and returns no later than the context ends.
func within(ctx context.Context, f func() (map[string]string, error)) (map[string]string, error) {
	type result struct {
		texts map[string]string
		err   error
	}
	done := make(chan result, 1)
	go func() {
		texts, err := f()
		done <- result{texts, err}
	}()
	select {
	case r := <-done:
		return r.texts, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// values prepares what templates see: defaults, conditions and aliases of subcharts, release and capabilities.
func (c *Chart) values(loaded *helm.Chart, o Options) (common.Values, error) {
	invalid := func(err error) (common.Values, error) {
		return nil, report.Errorf(report.Invalid, "values of chart %s: %w", c.Name, err)
	}
	given := copyValues(o.Values)
	if err := chartutil.ProcessDependencies(loaded, given); err != nil {
		return invalid(err)
	}
	capabilities, err := c.capabilities(o)
	if err != nil {
		return nil, err
	}
	release := common.ReleaseOptions{
		Name: cmp.Or(o.Release, c.Name), Namespace: cmp.Or(o.Namespace, "default"), Revision: max(o.Revision, 1),
		IsUpgrade: o.Upgrade, IsInstall: !o.Upgrade,
	}
	// Helm's own validation would load other documents from the network and from this host's files.
	values, err := util.ToRenderValuesWithSchemaValidation(loaded, given, release, capabilities, true)
	if err != nil {
		return invalid(err)
	}
	own, err := values.Table("Values")
	if err != nil {
		return invalid(err)
	}
	if err := checkValues(loaded, own.AsMap()); err != nil {
		return invalid(err)
	}
	return values, nil
}

func (c *Chart) capabilities(o Options) (*common.Capabilities, error) {
	capabilities := common.DefaultCapabilities.Copy()
	if o.KubeVersion != "" {
		version, err := common.ParseKubeVersion(o.KubeVersion)
		if err != nil {
			return nil, report.Errorf(report.Usage, "kubernetes version %q: %w", o.KubeVersion, err)
		}
		capabilities.KubeVersion = *version
	}
	if o.APIVersions != nil {
		capabilities.APIVersions = slices.Clone(o.APIVersions)
	}
	if have := capabilities.KubeVersion.String(); c.KubeVersion != "" && !chartutil.IsCompatibleRange(c.KubeVersion, have) {
		return nil, report.Errorf(report.Invalid, "chart %s wants Kubernetes %s, not %s", c.Name, c.KubeVersion, have)
	}
	return capabilities, nil
}

// copyValues protects the caller's maps: Helm writes into them.
func copyValues(values map[string]any) map[string]any {
	result := make(map[string]any, len(values))
	for key, value := range values {
		if m, ok := value.(map[string]any); ok {
			value = copyValues(m)
		}
		result[key] = value
	}
	return result
}

// manifests reads the documents of a rendered template. What has no content, and hooks of a kind that Helm does not
// know, are left out: Helm applies neither.
func manifests(template, text string) (list []Manifest, misread []Misread, err error) {
	crd := strings.Contains(template, "/crds/") && !strings.Contains(template, "/templates/")
	for _, d := range split(text) {
		m := Manifest{Template: template, Line: d.line, Text: []byte(d.text), CRD: crd}
		if err := m.decode(); err != nil {
			return nil, nil, report.Errorf(report.Invalid, "%s, document at line %d: %w", template, d.line, err)
		}
		if m.Object == nil {
			continue
		}
		misread = append(misread, m.misread()...)
		if m.Hook == nil || m.Hook.known() {
			list = append(list, m)
		}
	}
	return list, misread, nil
}

// decode leaves Object nil for an empty document.
func (m *Manifest) decode() error {
	if err := schema.CheckYAML(m.Template, m.Text); err != nil {
		return err
	}
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
	var head release.SimpleHead // what Helm reads; it refuses annotations that are not text
	if err := yaml.Unmarshal(m.Text, &head); err != nil && !m.CRD {
		return err
	}
	if head.Metadata == nil || m.CRD {
		return nil
	}
	annotations := head.Metadata.Annotations
	m.Keep = annotations[annotationPolicy] == "keep"
	m.Hook = readHook(annotations)
	return nil
}
