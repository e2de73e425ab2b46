package deployer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
)

// TestWaitingIsResumed checks that objects whose kind was missing are created by a resume, and by a run that ensures a document.
func TestWaitingIsResumed(t *testing.T) {
	const rule = "apiVersion: monitoring.coreos.com/v1\nkind: %s\nmetadata: {name: shop%s}\n"
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", deployertest.Content{Files: map[string]string{
		"monitoring/rule.yaml":    fmt.Sprintf(rule, "PrometheusRule", ", annotations: {solutionctl.io/scope: cluster}") + "spec: {groups: []}\n",
		"monitoring/monitor.yaml": fmt.Sprintf(rule, "ServiceMonitor", "") + "spec: {selector: {}, endpoints: []}\n",
		"monitoring/pods.yaml":    fmt.Sprintf(rule, "PodMonitor", "") + "spec: {selector: {}, podMetricsEndpoints: []}\n",
	}})
	must(b, add("1.0.0"))
	resume := func() (resumed []string) {
		t.Helper()
		done, err := b.Resume(t.Context(), deployer.ResumeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range done.Operations {
			resumed = append(resumed, fmt.Sprint(o.Operation, " ", o.Environment, " ", o.Finished))
		}
		return resumed
	}
	if got := resume(); len(got) > 0 {
		t.Errorf("without the kinds: %q", got)
	}
	b.Server.Put(t, deployertest.ServiceMonitors)
	b.Cluster.Refresh()
	if got := resume(); !slices.Equal(got, []string{"repair " + site + " true"}) || b.Server.Object("ServiceMonitor", site, shop) == nil {
		t.Errorf("with one of them: %q", got)
	}
	b.MonitoringKinds("PrometheusRule")
	if got := resume(); !slices.Equal(got, []string{"repair  true"}) || b.Server.Object("PrometheusRule", "shop-system", shop) == nil {
		t.Errorf("with the other one: %q", got)
	}
	b.MonitoringKinds("PodMonitor")
	if _, err := b.Ensure(t.Context(), deployer.EnsureOptions{Environment: site, Solutions: []plan.Wanted{{Solution: shop}}}); err != nil ||
		b.Server.Object("PodMonitor", site, shop) == nil {
		t.Errorf("the loader does not create the last one, %v", err)
	}
	if got := resume(); len(got) > 0 {
		t.Errorf("when everything is there: %q", got)
	}
}

// TestKindsInstalledLater checks that an object whose kind the cluster lacks is not an error and stays on record: once the kind is
// installed, the object counts as missing and repair creates it.
func TestKindsInstalledLater(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", deployertest.Content{Files: map[string]string{
		"monitoring/monitor.yaml": "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: shop}\nspec: {selector: {}, endpoints: []}\n",
	}})
	must(b, add("1.0.0"))
	monitor := schema.ObjectRef{APIVersion: "monitoring.coreos.com/v1", Kind: "ServiceMonitor", Namespace: site, Name: shop}
	status := func() schema.DeploymentStatus {
		t.Helper()
		s, err := b.Survey.EnvironmentStatus(t.Context(), survey.EnvironmentOptions{Environment: site})
		if err != nil {
			t.Fatal(err)
		}
		return slices.Collect(s.Deployments())[0].DeploymentStatus
	}
	difference := func() []string {
		t.Helper()
		done, err := b.Diff(t.Context(), survey.Selection{Solution: shop})
		if err != nil {
			t.Fatal(err)
		}
		return changes(done)
	}
	repair := func() []string {
		t.Helper()
		done, err := b.Repair(t.Context(), deployer.RepairOptions{Selection: survey.Selection{Environment: site, Solution: shop}})
		if err != nil {
			t.Fatal(err)
		}
		return changes(done)
	}
	if s := status(); s.Health != schema.HealthReady || !slices.Equal(s.Waiting, []schema.ObjectRef{monitor}) {
		t.Errorf("without the kind it is %s, and waits for %v: %q", s.Health, s.Waiting, s.Reasons)
	}
	if got := append(difference(), repair()...); len(got) > 0 {
		t.Errorf("without the kind there are changes: %q", got)
	}
	if err := b.Cluster.Delete(t.Context(), b.Server.Object("Deployment", site, "shop-operator"), cluster.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := repair(); !slices.Equal(got, []string{"create Deployment " + site + "/shop-operator"}) {
		t.Errorf("repair does %q", got)
	}
	if s := status(); s.Health != schema.HealthReady || !slices.Equal(s.Waiting, []schema.ObjectRef{monitor}) {
		t.Errorf("after the repair of something else it is %s, and waits for %v: %q", s.Health, s.Waiting, s.Reasons)
	}

	b.Server.Put(t, deployertest.ServiceMonitors)
	b.Cluster.Refresh()
	if s := status(); s.Health != schema.HealthDrifted || len(s.Waiting) > 0 || !strings.Contains(strings.Join(schema.Sentences(s.Reasons), "\n"), monitor.String()) {
		t.Errorf("with the kind it is %s, and waits for %v: %q", s.Health, s.Waiting, s.Reasons)
	}
	create := []string{"create " + monitor.String()}
	if got := difference(); !slices.Equal(got, create) {
		t.Errorf("with the kind the difference is %q", got)
	}
	if got := repair(); !slices.Equal(got, create) {
		t.Errorf("repair does %q", got)
	}
	if s := status(); s.Health != schema.HealthReady || len(s.Waiting) > 0 {
		t.Errorf("after repair it is %s, and waits for %v: %q", s.Health, s.Waiting, s.Reasons)
	}
	if got := append(difference(), repair()...); len(got) > 0 {
		t.Errorf("after repair there are changes: %q", got)
	}
}
