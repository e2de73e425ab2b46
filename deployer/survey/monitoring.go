package survey

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/prometheus"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// PrometheusServers returns the objects of the cluster that select monitors and rules; there are none where the cluster has no
// Prometheus operator.
func (v *Survey) PrometheusServers(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var servers []*unstructured.Unstructured
	for _, kind := range prometheus.Servers() {
		for server, err := range v.Cluster.List(ctx, kind, "", metav1.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			server.SetGroupVersionKind(kind)
			servers = append(servers, server)
		}
	}
	return servers, nil
}

// Selectors are what of a cluster decides which monitors and rules are selected.
type Selectors struct {
	servers    []*unstructured.Unstructured
	namespaces map[string]map[string]string // their labels
	site       schema.Monitoring
}

// Selectors reads what decides which monitors and rules are selected. It is nil where there is no Prometheus object.
func (v *Survey) Selectors(ctx context.Context) (*Selectors, error) {
	servers, err := v.PrometheusServers(ctx)
	if err != nil || len(servers) == 0 {
		return nil, err
	}
	s := &Selectors{servers: servers, namespaces: map[string]map[string]string{}}
	for namespace, err := range v.Cluster.ListMetadata(ctx, cluster.NamespaceKind, "", metav1.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		s.namespaces[namespace.GetName()] = namespace.GetLabels()
	}
	s.site, err = v.Records.Monitoring(ctx)
	return s, err
}

// Remarks says of each of some objects that is a monitor or a rule, and that no Prometheus selects, why that is and what mends it.
// Those that lack the same share a sentence.
func (v *Survey) Remarks(ctx context.Context, objects []*unstructured.Unstructured) ([]string, error) {
	if !slices.ContainsFunc(objects, isSelectable) {
		return nil, nil
	}
	s, err := v.Selectors(ctx)
	if report.CodeOf(err) == report.Forbidden || s == nil && err == nil {
		return nil, nil // nothing is known
	}
	if err != nil {
		return nil, err
	}
	return s.remarks(objects), nil
}

// Unselected is [Survey.Remarks] on all that is deployed.
func (v *Survey) Unselected(ctx context.Context, s *Selectors) ([]string, error) {
	var objects []*unstructured.Unstructured
	for _, kind := range prometheus.Selected() {
		for object, err := range v.Cluster.ListMetadata(ctx, kind, "", metav1.ListOptions{LabelSelector: engine.LabelRelease}) {
			if err != nil {
				return nil, err
			}
			object.SetGroupVersionKind(kind)
			objects = append(objects, object)
		}
	}
	return s.remarks(objects), nil
}

func isSelectable(o *unstructured.Unstructured) bool {
	return o != nil && slices.Contains(prometheus.Selected(), o.GroupVersionKind())
}

// enough is how many objects a remark names.
const enough = 10

func (s *Selectors) remarks(objects []*unstructured.Unstructured) []string {
	alike := map[string][]string{} // objects, by the rest of the sentence
	for _, o := range objects {
		if !isSelectable(o) {
			continue
		}
		everywhere := o.GetAnnotations()[schema.AnnotationScope] == string(schema.ScopeCluster)
		verdict := prometheus.Judge(s.servers, prometheus.Object{Unstructured: o, Namespace: s.namespaces[o.GetNamespace()], Everywhere: everywhere})
		if verdict.Selected || verdict.Server == "" {
			continue
		}
		why := verdict.Why(o.GetNamespace()) + s.remedy(verdict, o)
		alike[why] = append(alike[why], cluster.NameOf(o))
	}
	var remarks []string
	for _, why := range slices.Sorted(maps.Keys(alike)) {
		names := alike[why]
		if more := len(names) - enough; more > 0 {
			names = append(names[:enough:enough], fmt.Sprintf("%d more", more))
		}
		remarks = append(remarks, "no Prometheus selects "+strings.Join(names, ", ")+": "+why)
	}
	return remarks
}

// remedy says what brings an object the labels that it lacks. Those that are recorded come when it is deployed again.
func (s *Selectors) remedy(verdict prometheus.Verdict, o *unstructured.Unstructured) string {
	option, recorded := "label", maps.Clone(s.site.Labels)
	if o.GetKind() == prometheus.Rule {
		option = "rule-label"
		if recorded == nil {
			recorded = map[string]string{}
		}
		maps.Copy(recorded, s.site.RuleLabels)
	}
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(verdict.Labels)) {
		if value, is := recorded[key]; !is || value != verdict.Labels[key] {
			labels = append(labels, key+"="+verdict.Labels[key])
		}
	}
	switch {
	case len(verdict.Labels) == 0:
		return ""
	case len(labels) == 0:
		return "; it is recorded, and comes when the Solution is deployed there again"
	}
	command := report.Run("deploy monitoring config").String() + " --" + option + " " + strings.Join(labels, " --"+option+" ")
	return "; '" + command + "', and deploying the Solution again, mends that"
}

// remark adds to findings what no Prometheus selects. It says nothing about health: a Solution works without.
func (v *Survey) remark(ctx context.Context, states []*engine.State, live sightings, findings map[engine.Key]*finding) error {
	byRelease := map[engine.Key][]*unstructured.Unstructured{}
	for _, state := range states {
		for _, known := range inventory(state) {
			if seen := live[known.ObjectRef]; seen != nil && isSelectable(seen.object) {
				byRelease[state.Key] = append(byRelease[state.Key], seen.object)
			}
		}
	}
	if len(byRelease) == 0 {
		return nil
	}
	s, err := v.Selectors(ctx)
	if report.CodeOf(err) == report.Forbidden || s == nil && err == nil {
		return nil
	}
	if err != nil {
		return err
	}
	for key, objects := range byRelease {
		findings[key].reasons = append(findings[key].reasons, s.remarks(objects)...)
	}
	return nil
}
