package deployer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
)

// TestOperatorMetrics: an operator that serves metrics may ask who reads them, and what it takes for that stays as it is.
func TestOperatorMetrics(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", deployertest.Content{Manifest: "operator: {metrics: {enabled: true}}"})
	done := must(b, add("1.0.0"))
	for _, want := range []string{
		"create Service site/shop-operator-metrics", "create Secret site/shop-operator-metrics-cert",
		"create ClusterRoleBinding solutionctl:site:shop:operator-metrics-auth",
	} {
		if !slices.Contains(changes(done), want) {
			t.Errorf("it does not %s: %q", want, changes(done))
		}
	}
	if again := must(b, add("1.0.0")); !again.Empty() {
		t.Errorf("the same again changes %q", changes(again))
	}
}

// TestRemoveMetricsOfMetalK8s: what MetalK8s made for the metrics of an operator is removed with it. Objects that environments share stay.
func TestRemoveMetricsOfMetalK8s(t *testing.T) {
	for _, readable := range []bool{true, false} {
		b := deployertest.New(t)
		b.Activated(shop, "1.0.0", plain)
		b.MonitoringKinds("ServiceMonitor")
		for _, kind := range []string{"Issuer", "Certificate"} {
			b.Server.Put(t, strings.NewReplacer("servicemonitor", strings.ToLower(kind), "ServiceMonitor", kind, "monitoring.coreos.com", "cert-manager.io").Replace(deployertest.ServiceMonitors))
		}
		b.Cluster.Refresh()
		own := []struct{ apiVersion, kind, name string }{
			{"v1", "ServiceAccount", "shop-operator"},
			{"v1", "Service", "shop-operator-metrics"},
			{"monitoring.coreos.com/v1", "ServiceMonitor", "shop-operator"},
			{"cert-manager.io/v1", "Issuer", "shop-operator-metrics-issuer"},
			{"cert-manager.io/v1", "Certificate", "shop-operator-metrics-cert"},
			{"apps/v1", "Deployment", "shop-operator"},
		}
		for _, o := range own {
			b.Server.Put(t, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s, namespace: %s}}", o.apiVersion, o.kind, o.name, site))
		}
		const shared = "shop-operator-metrics-auth"
		for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
			b.Server.Put(t, fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: %s, metadata: {name: %s}}", kind, shared))
		}
		if !readable {
			b.Only(site, func(a authorization.ResourceAttributes) bool { return !strings.HasPrefix(a.Resource, "clusterrole") })
		}
		done, err := b.Remove(t.Context(), deployer.RemoveOptions{Options: plan.Options{Adopt: true}, Environment: site, Solution: shop})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range own {
			if b.Server.Object(o.kind, site, o.name) != nil {
				t.Errorf("%s %s is left", o.kind, o.name)
			}
		}
		if b.Server.Object("ClusterRole", "", shared) == nil || b.Server.Object("ClusterRoleBinding", "", shared) == nil {
			t.Error("shared objects are gone")
		}
		text := strings.Join(done.Notices, "\n")
		if strings.Contains(text, "kubectl delete clusterrolebinding/"+shared+" clusterrole/"+shared) != readable {
			t.Errorf("readable %t, notices: %s", readable, text)
		}
	}
}
