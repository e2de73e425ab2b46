package survey

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/prometheus"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// PrometheusServers returns the objects of the cluster that select monitors and rules; there are none where the cluster has no
// Prometheus operator.
func (v *Survey) PrometheusServers(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var servers []*unstructured.Unstructured
	for _, kind := range prometheus.Servers() {
		found, err := cluster.Collect(v.Cluster.List(ctx, kind, "", metav1.ListOptions{}))
		if err != nil {
			return nil, err
		}
		servers = append(servers, found...)
	}
	return servers, nil
}

// Selectors are the objects of a cluster that decide which monitors and rules are selected.
type Selectors struct {
	cluster    *cluster.Cluster
	servers    []*unstructured.Unstructured
	namespaces map[string]map[string]string // their labels
	site       schema.Monitoring
	sees       map[string]bool // whether an account may see the pods of a namespace
}

// Selectors reads the objects that decide which monitors and rules are selected. It returns nil when the cluster has no Prometheus
// object.
func (v *Survey) Selectors(ctx context.Context) (*Selectors, error) {
	servers, err := v.PrometheusServers(ctx)
	if err != nil || len(servers) == 0 {
		return nil, err
	}
	s := &Selectors{cluster: v.Cluster, servers: servers, namespaces: map[string]map[string]string{}, sees: map[string]bool{}}
	for namespace, err := range v.Cluster.ListMetadata(ctx, cluster.NamespaceKind, "", metav1.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		s.namespaces[namespace.GetName()] = namespace.GetLabels()
	}
	s.site, err = v.Records.Monitoring(ctx)
	return s, err
}

// Remarks explains, for each monitor or rule among some objects that no Prometheus selects, why that is and how to
// change it. Objects that lack the same share a sentence.
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
	return s.remarks(ctx, objects)
}

// Unselected is [Survey.Remarks] about all deployed objects, and about the monitoring of solutionctl itself.
func (v *Survey) Unselected(ctx context.Context, s *Selectors) ([]string, error) {
	var objects []*unstructured.Unstructured
	for _, kind := range prometheus.Selected() {
		list := v.Cluster.List
		if kind.Kind == prometheus.Rule {
			list = v.Cluster.ListMetadata
		}
		for _, of := range []struct{ namespace, selector string }{{"", schema.LabelRelease}, {cluster.SystemNamespace, schema.SelectItself + ",!" + schema.LabelRelease}} {
			found, err := cluster.Collect(list(ctx, kind, of.namespace, metav1.ListOptions{LabelSelector: of.selector}))
			if err != nil {
				return nil, err
			}
			objects = append(objects, found...)
		}
	}
	return s.remarks(ctx, objects)
}

func isSelectable(o *unstructured.Unstructured) bool {
	return o != nil && slices.Contains(prometheus.Selected(), o.GroupVersionKind())
}

// enough is how many objects a remark names.
const enough = 10

func (s *Selectors) remarks(ctx context.Context, objects []*unstructured.Unstructured) ([]string, error) {
	alike := map[string][]string{} // objects, by the rest of the sentence
	for _, o := range objects {
		if !isSelectable(o) {
			continue
		}
		everywhere := o.GetAnnotations()[schema.AnnotationScope] == string(schema.ScopeCluster)
		object := prometheus.Object{Unstructured: o, Namespace: s.namespaces[o.GetNamespace()], Everywhere: everywhere}
		verdict := prometheus.Judge(s.servers, object)
		why := "no Prometheus selects %s: " + verdict.Why(o.GetNamespace()) + s.remedy(verdict, o)
		switch {
		case verdict.Server == "":
			continue
		case verdict.Selected:
			var err error
			if why, err = s.explainNoPods(ctx, object); err != nil {
				return nil, err
			}
		}
		if why != "" {
			alike[why] = append(alike[why], cluster.NameOf(o))
		}
	}
	var remarks []string
	for _, why := range slices.Sorted(maps.Keys(alike)) {
		names := alike[why]
		if more := len(names) - enough; more > 0 {
			names = append(names[:enough:enough], fmt.Sprintf("%d more", more))
		}
		remarks = append(remarks, strings.Replace(why, "%s", strings.Join(names, ", "), 1))
	}
	return remarks, nil
}

// explainNoPods explains why a selected monitor finds no pods: the account of no Prometheus that selects it has permission to
// list them. It is empty when one has, or when this cannot be checked.
func (s *Selectors) explainNoPods(ctx context.Context, o prometheus.Object) (string, error) {
	if o.GetKind() == prometheus.Rule {
		return "", nil
	}
	why := ""
	for _, server := range s.servers {
		if !prometheus.Judge([]*unstructured.Unstructured{server}, o).Selected {
			continue
		}
		account, _, _ := unstructured.NestedString(server.Object, "spec", "serviceAccountName")
		account = cmp.Or(account, "default")
		sees, err := s.mayList(ctx, server.GetNamespace(), account, o.GetNamespace())
		if err != nil || sees {
			return "", err
		}
		why = cmp.Or(why, fmt.Sprintf("%s selects %%s and finds nothing there: its account %s/%s has no permission to list the pods of namespace %s; it needs a role with the rules\n%s",
			cluster.NameOf(server), server.GetNamespace(), account, o.GetNamespace(), cluster.Rules(discovering()...)))
	}
	return why, nil
}

// discovering returns the permissions with which a Prometheus discovers its targets.
func discovering() (all []cluster.Permission) {
	for _, p := range []cluster.Permission{{Resource: "services"}, {Resource: "endpoints"}, {Resource: "pods"}, {Group: "discovery.k8s.io", Resource: "endpointslices"}} {
		all = append(all, p.Each("get", "list", "watch")...)
	}
	return all
}

// maxAsked limits the checks of accounts in namespaces; any further account counts as permitted.
const maxAsked = 100

// mayList reports whether an account has permission to list the pods of a namespace. If this cannot be checked, it
// does.
func (s *Selectors) mayList(ctx context.Context, of, account, namespace string) (bool, error) {
	for _, place := range []string{"", namespace} {
		key := of + "/" + account + "/" + place
		sees, known := s.sees[key]
		if !known && len(s.sees) >= maxAsked {
			return true, nil
		}
		if !known {
			var err error
			sees, err = s.cluster.AccountMay(ctx, of, account, cluster.Permission{Verb: "list", Resource: "pods", Namespace: place})
			if report.CodeOf(err) == report.Forbidden {
				sees, err = true, nil
			}
			if err != nil {
				return false, err
			}
			s.sees[key] = sees
		}
		if sees {
			return true, nil
		}
	}
	return false, nil
}

// remedy describes how an object gets the labels that it lacks. Recorded labels are set by the next deployment.
func (s *Selectors) remedy(verdict prometheus.Verdict, o *unstructured.Unstructured) string {
	option, recorded := "label", maps.Clone(s.site.Labels)
	if o.GetKind() == prometheus.Rule {
		option = "rule-label"
		if recorded == nil {
			recorded = map[string]string{}
		}
		maps.Copy(recorded, s.site.RuleLabels)
	}
	itself := o.GetNamespace() == cluster.SystemNamespace
	if itself {
		option, recorded = "monitoring-label", nil
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
	options := " --" + option + " " + strings.Join(labels, " --"+option+" ")
	if itself {
		return "; '" + report.Run("deploy serve").With("listen", "ADDRESS").String() + " --print-monitoring" + options + " | kubectl apply -f -' on the host of the registry mends that"
	}
	return "; '" + report.Run("deploy monitoring config").String() + options + "', and deploying the Solution again, mends that"
}

// remark adds to findings the monitors and rules that no Prometheus selects. They do not change the health: a Solution
// works without them.
func (v *Survey) remark(ctx context.Context, states []*record.State, live observations, findings map[record.Key]*finding) error {
	byRelease := map[record.Key][]*unstructured.Unstructured{}
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
		remarks, err := s.remarks(ctx, objects)
		if err != nil {
			return err
		}
		for _, remark := range remarks {
			findings[key].reasons = append(findings[key].reasons, schema.Reason{Text: remark})
		}
	}
	return nil
}
