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
	"github.com/solutionctl/solutionctl/schema/report"
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
	if got := resume(); !slices.Equal(got, []string{"add " + site + " true"}) || b.Server.Object("ServiceMonitor", site, shop) == nil {
		t.Errorf("with one of them: %q", got)
	}
	b.MonitoringKinds("PrometheusRule")
	if got := resume(); !slices.Equal(got, []string{"activate  true"}) || b.Server.Object("PrometheusRule", "shop-system", shop) == nil {
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
// installed, the object counts as missing. A repair, which judges no powers, does not create it; adding the version again does.
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
	var notices []string
	const command = "solutionctl deploy add site shop 1.0.0"
	difference := func() []string {
		t.Helper()
		done, err := b.Diff(t.Context(), survey.Selection{Solution: shop})
		if err != nil {
			t.Fatal(err)
		}
		notices = append(notices, done.Notices...)
		return changes(done)
	}
	repair := func() []string {
		t.Helper()
		done, err := b.Repair(t.Context(), deployer.RepairOptions{Selection: survey.Selection{Environment: site, Solution: shop}})
		if err != nil {
			t.Fatal(err)
		}
		notices = append(notices, done.Notices...)
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

	notices = nil
	b.Server.Put(t, deployertest.ServiceMonitors)
	b.Cluster.Refresh()
	if s := status(); s.Health != schema.HealthDrifted || len(s.Waiting) > 0 || !strings.Contains(strings.Join(schema.Sentences(s.Reasons), "\n"), monitor.String()) {
		t.Errorf("with the kind it is %s, and waits for %v: %q", s.Health, s.Waiting, s.Reasons)
	}
	if got := append(difference(), repair()...); len(got) > 0 || len(notices) != 2 || !strings.Contains(notices[0], command) || notices[0] != notices[1] {
		t.Errorf("with the kind there are changes %q and the notices %q", got, notices)
	}
	if got := changes(must(b, add("1.0.0"))); !slices.Equal(got, []string{"create " + monitor.String()}) {
		t.Errorf("add does %q", got)
	}
	if s := status(); s.Health != schema.HealthReady || len(s.Waiting) > 0 {
		t.Errorf("after add it is %s, and waits for %v: %q", s.Health, s.Waiting, s.Reasons)
	}
	if got := append(difference(), repair()...); len(got) > 0 {
		t.Errorf("after add there are changes: %q", got)
	}
}

// TestKindsOfOthersInstalledLater checks that an object of a group that others bring after the deployment is created by nothing that does not judge
// it, and in no case in the cluster.
func TestKindsOfOthersInstalledLater(t *testing.T) {
	for _, scope := range []string{"Namespaced", "Cluster"} {
		t.Run(scope, func(t *testing.T) {
			b := deployertest.New(t)
			content := shown("{apiVersion: " + deployertest.Group("bank") + "/v1, kind: Clock, metadata: {name: part}, spec: {hands: 2}}\n")
			content.Manifest = strings.Replace(content.Manifest, "}]", ", optionalKinds: ["+deployertest.Group("bank")+"/Clock]}]", 1) +
				"\n  customApiGroups: [" + deployertest.Group("bank") + "]"
			b.Added(shop, "1.0.0", content)
			b.Activated(shop, "1.1.0", deployertest.Content{})
			b.Server.Put(t, strings.Replace(deployertest.Content{}.CRD("bank"), "Namespaced", scope, 1))
			b.Cluster.Refresh()
			repaired, err := b.Repair(t.Context(), deployer.RepairOptions{Selection: survey.Selection{Environment: site, Solution: shop}})
			if err != nil || !repaired.Empty() {
				t.Errorf("repair: %q, %v", changes(repaired), err)
			}
			if s, failure := b.Survey.EnvironmentStatus(t.Context(), survey.EnvironmentOptions{Environment: site}); failure != nil || slices.Collect(s.Deployments())[0].Health != schema.HealthDrifted {
				t.Errorf("status: %+v, %v", s, failure)
			}
			want := map[string]string{"Namespaced": "instructs-controller:Clock/site/part", "Cluster": "the kind is cluster-wide"}[scope]
			_, err = b.Resume(t.Context(), deployer.ResumeOptions{})
			deployertest.Refused(t, err, report.Refused, want)
			must(b, upgrade("1.1.0"))
			_, err = b.Rollback(t.Context(), deployer.RollbackOptions{Environment: site, Solution: shop})
			deployertest.Refused(t, err, report.Refused, want)
			if clocks := b.Server.Names("Clock"); len(clocks) > 0 {
				t.Errorf("there are %q", clocks)
			}
		})
	}
}
