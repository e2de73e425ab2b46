package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Rendering has the options with which a Solution is rendered in a namespace. A nil option keeps its deployed value, which is off at first.
// Unfinished runs save them.
type Rendering struct {
	Webhook      *bool   `json:"webhook,omitempty"`      // give the operator a certificate for its webhooks
	ClusterWide  *bool   `json:"clusterWide,omitempty"`  // approve of an operator that asks for its ClusterRoles in every namespace
	IngressClass *string `json:"ingressClass,omitempty"` // of the user interface
	// AcceptHazards are reasons of package kube/rbac, which allow the powers that they are about, and [HazardForeignImages].
	AcceptHazards []string       `json:"acceptHazards,omitempty"`
	Allow         []string       `json:"allow,omitempty"`    // as in [Options], for one Solution
	Approved      []schema.Power `json:"approved,omitempty"` // as in [Options]
	Parts
}

// Names of settings as they are recorded with a revision.
const (
	SettingWebhook      = "webhook"
	SettingClusterWide  = "clusterWide"
	SettingIngressClass = "ingressClass"
	settingImages       = "foreignImages" // that are accepted although no archive has them
)

// merge returns the settings of a revision after those of an earlier one.
func (r Rendering) merge(previous map[string]string) map[string]string {
	settings := map[string]string{}
	set := func(name, value string) {
		if value != "" && value != "false" {
			settings[name] = value
		}
	}
	flag := func(name string, value *bool) {
		switch {
		case value == nil:
			set(name, previous[name])
		case *value:
			set(name, "true")
		}
	}
	flag(SettingWebhook, r.Webhook)
	flag(SettingClusterWide, r.ClusterWide)
	if r.IngressClass != nil {
		set(SettingIngressClass, *r.IngressClass)
	} else {
		set(SettingIngressClass, previous[SettingIngressClass])
	}
	set(settingImages, previous[settingImages])
	return settings
}

// Parts say which components of a Solution are deployed, and with which values. Unset options stay as they were.
type Parts struct {
	Choice components.Choice     `json:"choice,omitzero"`
	Values map[string]SiteValues `json:"values,omitempty"` // by component
	Rotate []string              `json:"rotate,omitempty"` // components whose random values are generated again
	// Helm are the Helm releases that components adopt, by component. Empty fields default to the name of the component.
	Helm map[string]HelmRelease `json:"helm,omitempty"`
	// Restart accepts that pods of adopted releases start again.
	Restart bool `json:"restart,omitempty"`
}

// empty reports whether no option is set.
func (p *Parts) empty() bool {
	return len(p.Choice.Profiles)+len(p.Choice.Components)+len(p.Choice.Default)+len(p.Values)+len(p.Rotate)+len(p.Helm) == 0
}

// SiteValues are the values that a site gives to a chart, over those of the archive.
type SiteValues struct {
	Values render.Values `json:"values,omitempty"`
	Reset  bool          `json:"reset,omitempty"` // drop the earlier values of the site
}

// Add puts more values over those that are there.
func (s *SiteValues) Add(values map[string]any) { s.Values = render.MergeValues(s.Values, values) }

// unset reports whether no option is set.
func (r *Rendering) unset() bool {
	return r.Webhook == nil && r.ClusterWide == nil && r.IngressClass == nil && len(r.AcceptHazards)+len(r.Allow)+len(r.Approved) == 0 && r.empty()
}

// after returns the options over earlier ones, which stay where r does not set them.
func (r Rendering) after(earlier Rendering) Rendering {
	if earlier.unset() {
		return r
	}
	r.Webhook, r.ClusterWide, r.IngressClass = cmp.Or(r.Webhook, earlier.Webhook), cmp.Or(r.ClusterWide, earlier.ClusterWide), cmp.Or(r.IngressClass, earlier.IngressClass)
	r.AcceptHazards, r.Allow = slices.Concat(earlier.AcceptHazards, r.AcceptHazards), slices.Concat(earlier.Allow, r.Allow)
	r.Approved = slices.Concat(earlier.Approved, r.Approved)
	r.Parts = r.Parts.after(earlier.Parts)
	return r
}

func (p Parts) after(earlier Parts) Parts {
	choice := earlier.Choice.With(p.Choice)
	if len(p.Choice.Profiles) > 0 {
		choice.Profiles = p.Choice.Profiles // as they are given: none is one, too
	}
	p.Choice = choice
	p.Values = mergeSiteValues(earlier.Values, p.Values)
	p.Rotate = slices.Compact(slices.Sorted(slices.Values(slices.Concat(earlier.Rotate, p.Rotate))))
	helm := map[string]HelmRelease{}
	maps.Copy(helm, earlier.Helm)
	maps.Copy(helm, p.Helm)
	p.Helm, p.Restart = helm, p.Restart || earlier.Restart
	return p
}

// mergeSiteValues returns values over earlier ones, by component.
func mergeSiteValues(before, after map[string]SiteValues) map[string]SiteValues {
	merged := map[string]SiteValues{}
	maps.Copy(merged, before)
	for name, own := range after {
		if under, there := merged[name]; there && !own.Reset {
			own = SiteValues{Values: render.MergeValues(under.Values, own.Values), Reset: under.Reset}
		}
		merged[name] = own
	}
	return merged
}

// Settings in which the choice of components is recorded with a revision.
const (
	settingProfiles   = "profiles"
	SettingComponents = "components"
)

// Select returns the components of a version that belong to a deployment, and writes the choice into its settings. It names those parts of
// the previous choice that this version does not have, and drops them.
func (p *Parts) Select(payload *render.Payload, previous, settings map[string]string) (selection *components.Selection, dropped []string, err error) {
	graph, err := components.New(payload.Solution, payload.Parts()...)
	if err != nil {
		return nil, nil, err
	}
	earlier, err := components.ParseChoice(listed(previous[settingProfiles]), listed(previous[SettingComponents]))
	if err != nil {
		return nil, nil, err
	}
	earlier, dropped = graph.Restrict(earlier)
	choice := earlier.With(p.Choice)
	if selection, err = graph.Select(choice); err != nil {
		return nil, nil, err
	}
	choice.Default = nil // nothing is on record of it any more
	profiles, names := choice.Texts()
	for name, list := range map[string][]string{settingProfiles: profiles, SettingComponents: names} {
		if len(list) > 0 {
			settings[name] = strings.Join(list, ",")
		}
	}
	return selection, dropped, p.check(payload.Solution, selection)
}

func listed(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// check refuses values of components that take none, or are not selected.
func (p *Parts) check(solution *schema.Solution, s *components.Selection) error {
	charts := map[string]bool{}
	var names []string
	for _, n := range s.Nodes() {
		if n.Kind == schema.ComponentChart {
			charts[n.Name] = true
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(p.Values)), p.Rotate, slices.Sorted(maps.Keys(p.Helm))) {
		if charts[name] {
			continue
		}
		err := report.Errorf(report.Usage, "no chart %q that takes values is among the selected components of %s", name, solution.ID())
		if near := report.Nearest(name, names); near != "" {
			return err.WithHint("did you mean %s?", near)
		}
		if len(names) == 0 {
			return err.WithHint("none of the components that are selected is a chart")
		}
		return err.WithHint("its charts are %s", strings.Join(names, ", "))
	}
	return nil
}
