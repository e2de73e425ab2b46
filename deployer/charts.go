package deployer

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
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/kube/images"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// SiteValues are what a site says to a chart. They go before those of the archive.
type SiteValues struct {
	Values map[string]any `json:"values,omitempty"`
	Reset  bool           `json:"reset,omitempty"` // what the site said before counts no more
}

// Add puts more values over those that are there.
func (s *SiteValues) Add(values map[string]any) { s.Values = render.MergeValues(s.Values, values) }

// renderChart renders a component that is a chart, with what the site has said and what was drawn before.
func (d *Deployer) renderChart(ctx context.Context, one *placement, settings render.Settings, c *schema.Component, release *engine.Release) (notices []string, err error) {
	memory := one.memories[release.Key]
	taken, err := d.takeover(ctx, one, settings.Namespace, c, release)
	if err != nil {
		return nil, err
	}
	name, remembered := c.Name, memory.Memo
	isNew := taken != nil && remembered == nil
	if isNew {
		memory.Say(taken.Values, true)
	}
	if said, ok := one.Values[name]; ok {
		memory.Say(said.Values, said.Reset)
	}
	var rendered *render.ChartObjects
	if rotate := slices.Contains(one.Rotate, name); isNew && !rotate {
		rendered, err = d.renderTaken(ctx, one, settings, memory.Memory, release, taken)
	} else {
		if rotate {
			memory.Memo = nil
		}
		rendered, err = d.renderWith(ctx, one.payload, settings, memory.Memory, memory.installed || taken != nil, release, one.allows())
	}
	if err != nil {
		return nil, err
	}
	one.looked(release.Key, rendered.Lookups)
	if remembered != nil && (slices.Contains(one.Rotate, name) || len(rendered.Renewed) > 0) {
		one.rotated = append(one.rotated, memory.Rotate(memory.objects, release.Objects)...)
		if release.Memory, err = memory.Encode(); err != nil {
			return nil, err
		}
	}
	if taken != nil {
		if notices, err = d.hand(ctx, taken, release, rendered); err != nil {
			return nil, err
		}
	}
	if err = one.noteDrawn(release.Key, remembered, memory.Memory); err != nil {
		return nil, err
	}
	if len(rendered.Foreign) > 0 {
		if one.foreign == nil {
			one.foreign = map[string][]images.Use{}
		}
		one.foreign[name] = rendered.Foreign
	}
	if len(rendered.Renewed) > 0 {
		notices = append(notices, fmt.Sprintf("component %s gets new certificates, as the old ones end: %s", name, strings.Join(rendered.Renewed, ", ")))
	}
	return notices, d.checkDefined(ctx, one, name, rendered.Definitions)
}

// noteDrawn notes of a component for which something was generated again what its objects follow from besides: they are others in each
// plan.
func (o *placement) noteDrawn(key engine.Key, remembered *chart.Memo, memory *render.Memory) error {
	if reflect.DeepEqual(remembered, memory.Memo) || remembered == nil && len(memory.Memo.Values) == 0 {
		return nil
	}
	values, err := json.Marshal(memory.Values)
	if err != nil {
		return err
	}
	if o.drawn == nil {
		o.drawn = map[engine.Key]string{}
	}
	o.drawn[key] = o.Payload + " " + string(values)
	return nil
}

// renderWith renders a component that is a chart with what is remembered of it, and remembers what it draws. Its templates read those
// Secrets of others that allows, or an approval on record, lets them read.
func (d *Deployer) renderWith(ctx context.Context, p *render.Payload, settings render.Settings, memory *render.Memory, upgrade bool, release *engine.Release,
	allows func(schema.Power) bool,
) (*render.ChartObjects, error) {
	reads, err := d.lookups(p, settings.Namespace, release, allows)
	if err != nil {
		return nil, err
	}
	with := render.ChartSettings{Values: memory.Values, Memo: memory.Memo, Upgrade: upgrade, Lookup: reads.find}
	if with.KubeVersion, err = d.Cluster.Version(ctx); err != nil {
		return nil, err
	}
	if with.APIVersions, err = d.Cluster.APIVersions(ctx); err != nil {
		return nil, err
	}
	rendered, err := render.Chart(ctx, p, release.Component, settings, with)
	if err != nil {
		return nil, reads.explain(err)
	}
	rendered.Lookups = reads.powers
	release.Objects, release.Stay, release.Tasks = rendered.Objects, render.Staying(rendered.Objects), tasks(rendered.Tasks)
	memory.Memo = rendered.Memo
	release.Memory, err = memory.Encode()
	return rendered, err
}

// memory is what an earlier rendering of a component left behind.
type memory struct {
	*render.Memory
	installed bool
	objects   []*unstructured.Unstructured // that were rendered
}

// memories are those of the charts among the components of a release.
func (d *Deployer) memories(ctx context.Context, main engine.Key, nodes []*components.Node) (map[engine.Key]memory, error) {
	var mu sync.Mutex
	found := map[engine.Key]memory{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(records.Parallel)
	for _, node := range nodes {
		if node.Kind != schema.ComponentChart {
			continue
		}
		key := main
		key.Component = node.Name
		group.Go(func() error {
			m, err := d.memory(ctx, key)
			mu.Lock()
			defer mu.Unlock()
			found[key] = m
			return err
		})
	}
	return found, group.Wait()
}

func (d *Deployer) memory(ctx context.Context, key engine.Key) (memory, error) {
	state, err := d.Records.Engine.State(ctx, key)
	if err != nil {
		return memory{}, err
	}
	for _, r := range state.Recent() {
		if r.Version == "" {
			continue
		}
		content, err := d.Records.Engine.Content(ctx, key, r)
		if r == state.Pending && report.CodeOf(err) == report.Corrupt {
			continue // the run that began it was killed before it had stored what it drew
		}
		if err != nil {
			return memory{}, err
		}
		m, err := render.DecodeMemory(content.Memory)
		return memory{m, state.Installed(), content.Objects}, err
	}
	return memory{Memory: &render.Memory{}}, nil
}

// checkDefined refuses a chart whose definitions are not active: with the values of the site it may have others than its archive knew.
func (d *Deployer) checkDefined(ctx context.Context, one *placement, name string, crds []*unstructured.Unstructured) error {
	var required []schema.CRDRequirement
	for _, crd := range crds {
		required = append(required, schema.CRDRequirement{Name: crd.GetName(), Versions: render.ServedVersions(crd)})
	}
	missing, err := d.Definitions.Missing(ctx, required)
	if err != nil || len(missing) == 0 {
		return err
	}
	return report.Errorf(report.Refused, "component %s of %s brings definitions that the cluster does not serve: %s", name, one.payload.Solution.ID(), definitions.Requirements(missing)).
		WithHint("%s; what only the values of a site ask for is not part of an activation", report.Run("deploy activate", one.Name, one.Version).With("component", name))
}
