package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/kube/images"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// chart renders a component that is a chart, with the values of the site and the values that were generated before.
func (t *target) chart(ctx context.Context, c *schema.Component, release *engine.Release) error {
	stored := t.charts[release.Key]
	adopted, err := t.adoption(ctx, c, release)
	if err != nil {
		return err
	}
	before := stored.Generated
	if adopted != nil && before == nil {
		stored.SetValues(adopted.Values, true)
	}
	if values, ok := t.wanted.Values[c.Name]; ok {
		stored.SetValues(values.Values, values.Reset)
	}
	if err = render.CheckSite(c, stored.Values); err != nil {
		return err
	}
	rendered, err := t.renderChart(ctx, c, release, adopted, stored)
	if err != nil {
		return err
	}
	t.addLookups(rendered.Lookups)
	if before != nil && (slices.Contains(t.wanted.Rotate, c.Name) || len(rendered.Renewed) > 0) {
		t.rotated = append(t.rotated, stored.Rotate(stored.objects, release.Objects)...)
		if release.GeneratedValues, err = stored.Encode(); err != nil {
			return err
		}
	}
	if adopted != nil {
		if err = t.adopt(ctx, adopted, release, rendered); err != nil {
			return err
		}
	}
	if err = t.addGenerated(release.Key, before, stored.ChartValues); err != nil {
		return err
	}
	if len(rendered.Foreign) > 0 {
		if t.of.foreign == nil {
			t.of.foreign = map[string][]images.Use{}
		}
		t.of.foreign[c.Name] = rendered.Foreign
	}
	if len(rendered.InParts) > 0 {
		t.notice(mirrorNotice(c.Name, rendered.InParts))
	}
	if len(rendered.Renewed) > 0 {
		t.notice(fmt.Sprintf("component %s gets new certificates, as the old ones end: %s", c.Name, strings.Join(rendered.Renewed, ", ")))
	}
	return t.checkDefined(ctx, c.Name, rendered.Definitions)
}

// renderChart renders a chart: one that was adopted from Helm just now with the values that Helm generated, unless they are generated again.
func (t *target) renderChart(ctx context.Context, c *schema.Component, release *engine.Release, adopted *adoption, stored storedChart) (*render.ChartObjects, error) {
	renderer := t.of.renderer.In(t.namespace, c)
	renderer.Allows = consentOf(Options{}, t.wanted).covers
	rotate := slices.Contains(t.wanted.Rotate, c.Name)
	if adopted != nil && stored.Generated == nil && !rotate {
		return renderer.adopted(ctx, stored.ChartValues, release, adopted)
	}
	if rotate {
		stored.Generated = nil
	}
	return renderer.Chart(ctx, stored.ChartValues, stored.installed || adopted != nil, release)
}

// addGenerated adds what stands in the plan's digest for a component some of whose values are generated again, which are others in each plan.
func (t *target) addGenerated(key record.Key, before *chart.GeneratedValues, stored *render.ChartValues) error {
	if reflect.DeepEqual(before, stored.Generated) || before == nil && len(stored.Generated.Values) == 0 {
		return nil
	}
	values, err := json.Marshal(stored.Values)
	if err != nil {
		return err
	}
	if t.generated == nil {
		t.generated = map[record.Key]string{}
	}
	t.generated[key] = t.of.Payload + " " + string(values)
	return nil
}

// storedChart is the stored state of the last revision of a chart: its values, including generated ones, and its objects.
type storedChart struct {
	*render.ChartValues
	installed bool
	objects   []*unstructured.Unstructured
}

// readCharts reads what is stored of the charts among components.
func (t *target) readCharts(ctx context.Context, nodes []*components.Node) error {
	var mu sync.Mutex
	t.charts = map[record.Key]storedChart{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(records.Parallel)
	for _, node := range nodes {
		if node.Kind != schema.ComponentChart {
			continue
		}
		key := t.release.Key
		key.Component = node.Name
		group.Go(func() error {
			stored, err := t.storedChart(ctx, key)
			mu.Lock()
			defer mu.Unlock()
			t.charts[key] = stored
			return err
		})
	}
	return group.Wait()
}

func (p *Planner) storedChart(ctx context.Context, key record.Key) (storedChart, error) {
	state, err := p.Records.Engine.State(ctx, key)
	if err != nil {
		return storedChart{}, err
	}
	for _, r := range state.Recent() {
		if r.Version == "" {
			continue
		}
		content, err := p.Records.Engine.Content(ctx, key, r)
		if r == state.Pending && report.CodeOf(err) == report.Corrupt {
			continue // the run that began it was killed before it had stored the generated values
		}
		if err != nil {
			return storedChart{}, err
		}
		m, err := render.DecodeChartValues(content.GeneratedValues)
		return storedChart{m, state.Installed(), content.Objects}, err
	}
	return storedChart{ChartValues: &render.ChartValues{}}, nil
}

// checkDefined refuses a chart whose CustomResourceDefinitions are neither in the cluster nor part of this activation: with the values of the
// site it may have others than those with the values of the archive.
func (t *target) checkDefined(ctx context.Context, name string, crds []*unstructured.Unstructured) error {
	var required []schema.CRDRequirement
	for _, crd := range crds {
		required = append(required, schema.CRDRequirement{Name: crd.GetName(), Versions: render.ServedVersions(crd)})
	}
	applied := definitions.ByName(t.release.Objects)
	missing, err := t.Definitions.Missing(ctx, render.MissingCRDs(required, func(name string) *unstructured.Unstructured { return applied[name] }))
	if err != nil || len(missing) == 0 {
		return err
	}
	return report.Errorf(report.Refused, "component %s of %s brings definitions that the cluster does not serve: %s", name, t.of.renderer.Payload.Solution.ID(), definitions.Requirements(missing)).
		WithHint("%s; what only the values of a site ask for is not part of an activation", report.Run("deploy activate", t.of.Name, t.of.Version).With("component", name))
}
