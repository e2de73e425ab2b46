package deployer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema/report"
)

// withExtras is an archive that has what extras.yaml of docs/installer-role is for.
func withExtras(b *bed, crds string) content {
	page := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: page}\nspec:\n  selector: {matchLabels: {app: page}}\n  template:\n" +
		"    metadata: {labels: {app: page}}\n    spec: {containers: [{name: page, image: \"{{ repository }}/" + b.Solution + "-operator:1.0.0\", ports: [{name: http, containerPort: 8080}]}]}\n"
	var monitoring []string
	for _, kind := range monitors() {
		monitoring = append(monitoring, "apiVersion: monitoring.coreos.com/v1\nkind: "+kind+"\nmetadata: {name: "+b.Solution+"}\nspec: {}\n")
	}
	return content{Versions: crds, Files: map[string]string{"ui/ui.yaml": page, "monitoring/more.yaml": strings.Join(monitoring, "---\n")}}
}

func monitors() []string { return []string{"ServiceMonitor", "PodMonitor", "PrometheusRule"} }

// defineMonitors makes the cluster know monitoring.
func (b *bed) defineMonitors() {
	b.Helper()
	for _, kind := range monitors() {
		one := strings.ToLower(kind)
		b.create(fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: %[2]s, plural: %[1]ss, singular: %[1]s, listKind: %[2]sList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, one, kind))
	}
	await(b.T, func() (bool, bool) {
		b.Cluster.Refresh()
		kinds, err := b.Cluster.Kinds(b.Context())
		known := 0
		for _, k := range kinds {
			if k.Resource.Group == "monitoring.coreos.com" {
				known++
			}
		}
		return true, err == nil && known == len(monitors())
	})
}

// TestInstallerRoleExtras: a Solution with everything takes extras.yaml besides, and every verb of it.
func TestInstallerRoleExtras(t *testing.T) {
	t.Parallel()
	testcluster.Long(t, "TestRoles/installer")
	b := newBedOn(t, testcluster.StartFor(t, testcluster.Options{FakeNodes: 1}))
	b.defineMonitors()
	b.imported("1.0.0", withExtras(b, "v1"))
	b.imported("1.1.0", withExtras(b, "v1 v2"))
	b.imported("2.0.0", withExtras(b, "v1"))
	extras := b.shipped("extras.yaml")
	installer, trials := b.installer(append(b.shipped("installer.yaml", "solution.yaml"), extras...), func(r role) bool {
		return r.Name == extras[0].Name || r.Name == extras[1].Name
	})
	protect := true
	activate := func(version string) command {
		return command{"activate " + version, nil, func(d *deployer.Deployer, o plan.Options) error {
			_, err := d.Activate(t.Context(), deployer.ActivateOptions{Options: o, Solution: b.Solution, Version: version, ProtectCRDs: &protect})
			return err
		}, true}
	}
	webhook := true
	b.live([]command{
		activate("1.0.0"),
		{"add", nil, func(d *deployer.Deployer, o plan.Options) error {
			_, err := d.Add(t.Context(), deployer.AddOptions{
				Options: o, Environment: b.Env, Solution: b.Solution, Version: "1.0.0", Rendering: plan.Rendering{Webhook: &webhook},
			})
			return err
		}, true},
		activate("1.1.0"),
		activate("2.0.0"),
		{"remove", nil, func(d *deployer.Deployer, o plan.Options) error {
			_, err := d.Remove(t.Context(), deployer.RemoveOptions{Options: o, Environment: b.Env, Solution: b.Solution})
			return err
		}, true},
		{"deactivate", nil, func(d *deployer.Deployer, o plan.Options) error {
			_, err := d.Deactivate(t.Context(), deployer.DeactivateOptions{Options: o, Solution: b.Solution})
			return err
		}, true},
	}, installer, trials)
}

// TestRightsAreAskedFirst: what changes data step by step asks for all rights before the first step.
func TestRightsAreAskedFirst(t *testing.T) {
	t.Parallel()
	testcluster.Long(t, "TestRoles/installer, and TestMissingRights without a cluster")
	b := newBedOn(t, testcluster.StartFor(t, testcluster.Options{}))
	b.activated("1.0.0", content{})
	b.imported("1.1.0", content{Versions: "v1 v2"})
	b.imported("2.0.0", content{})
	protect := true
	if _, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: b.Solution, Version: "1.1.0", ProtectCRDs: &protect}); err != nil {
		t.Fatal(err)
	}
	installer, trials := b.installer(b.shipped("installer.yaml", "solution.yaml", "extras.yaml"), func(role) bool { return true })
	used := func() { b.newClock(b.Env, "one", "hands: 2") }
	for _, c := range []struct {
		command
		rights []string // resource and verb
	}{
		{command{"activate", used, func(d *deployer.Deployer, o plan.Options) error {
			_, err := d.Activate(t.Context(), deployer.ActivateOptions{Options: o, Solution: b.Solution, Version: "2.0.0"})
			return err
		}, false}, []string{"* update", "customresourcedefinitions update", "customresourcedefinitions/status update"}},
		{command{"remove", func() { b.mustAdd("2.0.0") }, func(d *deployer.Deployer, o plan.Options) error {
			o.Timeout = testcluster.Deadline(time.Minute)
			_, err := d.Remove(t.Context(), deployer.RemoveOptions{
				Options: o, Environment: b.Env, Solution: b.Solution, Data: plan.DeleteData, Export: new(exported).open,
			})
			return err
		}, false}, []string{"* delete", "* watch", "configmaps update", "deployments delete"}},
		{command{"env delete", func() { used(); b.mustAdd("2.0.0") }, func(d *deployer.Deployer, o plan.Options) error {
			others, err := d.Survey.Others(t.Context(), survey.OthersOptions{Environment: b.Env})
			if err != nil {
				return err
			}
			_, err = d.DeleteEnvironment(t.Context(), environments.DeleteOptions{
				Options: o, Environment: b.Env, Data: plan.DeleteData, Others: others, Export: new(exported).open,
			})
			return err
		}, false}, []string{"* delete", "* watch", "configmaps update", "deployments delete", "namespaces delete", "namespaces watch"}},
		{command{"deactivate", func() { b.environment(b.Env, b.Env); used() }, func(d *deployer.Deployer, o plan.Options) error {
			_, err := d.Deactivate(t.Context(), deployer.DeactivateOptions{
				Options: o, Solution: b.Solution, Data: plan.DeleteData, Export: new(exported).open,
			})
			return err
		}, false}, []string{"* delete", "* watch", "customresourcedefinitions update", "customresourcedefinitions delete", "validatingadmissionpolicies delete"}},
	} {
		c.prepare()
		c.prepare = nil
		for _, right := range c.rights {
			b.try(c.command, lacking(t, trials, right))
			if one := lacking(t, trials, right); one.caught != c.name {
				t.Errorf("%s did not need %s", c.name, one)
			}
		}
		if err := c.run(installer, plan.Options{}); err != nil {
			t.Fatalf("%s: %v\n%q", c.name, err, report.Hints(err))
		}
	}
}

// lacking is the user who lacks a verb on a resource.
func lacking(t *testing.T, trials []*trial, right string) *trial {
	t.Helper()
	for _, one := range trials {
		if one.rule.Resources[0]+" "+one.verb == right {
			return one
		}
	}
	t.Fatalf("everybody may %s", right)
	return nil
}
