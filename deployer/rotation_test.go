package deployer_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
)

// TestRotate: what reads a password that is generated again starts again, in whatever component it is, and nothing else does.
func TestRotate(t *testing.T) {
	pods := func(kind, name, volumes, env string) string {
		return "---\napiVersion: apps/v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec:\n  replicas: 0\n  selector: {matchLabels: {app: " + name + "}}\n" +
			"  updateStrategy: {type: " + map[bool]string{true: "OnDelete", false: "RollingUpdate"}[name == "manual"] + "}\n" +
			"  template:\n    metadata: {labels: {app: " + name + "}}\n    spec:\n      volumes: " + volumes +
			"\n      containers: [{name: a, image: registry.solutionctl.invalid/shop-1.0.0/shop-operator:1.0.0, " + env + "}]\n"
	}
	b := deployertest.New(t)
	content := parts(t, map[string]string{
		"charts/app.tgz": deployertest.Chart(t, "app", map[string]string{
			"templates/app.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: app}\nstringData: {password: {{ randAlphaNum 20 }}}\n" +
				"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: fixed}\n" +
				pods("Deployment", "env", "[]", "env: [{name: P, valueFrom: {secretKeyRef: {name: app, key: password}}}]") +
				pods("StatefulSet", "manual", "[{name: s, secret: {secretName: app}}]", "env: []") +
				pods("Deployment", "other", "[{name: s, configMap: {name: fixed}}]", "env: []"),
		}),
		"components/user.yaml": strings.TrimPrefix(pods("StatefulSet", "user", "[{name: s, projected: {sources: [{secret: {name: app}}]}}]", "env: []"), "---\n"),
	})
	content.Manifest += "  - {name: app, chart: charts/app.tgz}\n  - {name: user, manifests: components/user.yaml, dependsOn: [{component: app}]}\n"
	b.Activated(shop, "1.0.0", content)
	numbers := func() string {
		t.Helper()
		var list []string
		for _, of := range []string{"Deployment/env", "StatefulSet/manual", "Deployment/other", "StatefulSet/user"} {
			kind, name, _ := strings.Cut(of, "/")
			number, _, _ := unstructured.NestedString(b.Server.Object(kind, site, name).Object, "spec", "template", "metadata", "annotations", "solutionctl.io/rotation")
			list = append(list, name+"="+number)
		}
		return strings.Join(list, " ")
	}
	rotate := choose(t, func(p *plan.Parts) { p.Rotate = []string{"app"} })
	for _, step := range []struct {
		name string
		run  verb
		want string
	}{
		{"added", add("1.0.0"), "env= manual= other= user="},
		{"rotated", rotate, "env=1 manual= other= user=1"},
		{"added again", add("1.0.0"), "env=1 manual= other= user=1"},
		{"another password", choose(t, func(p *plan.Parts) { p.Rotate = []string{"db"} }), "env=1 manual= other= user=1"},
		{"rotated again", rotate, "env=2 manual= other= user=2"},
	} {
		planned, err := step.run(t.Context(), b.Deployer, plan.Options{DryRun: true})
		if err != nil {
			t.Fatal(step.name, err)
		}
		done := must(b, step.run)
		if got := numbers(); got != step.want {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
		said, want := strings.Join(done.Notices, "\n"), strings.HasPrefix(step.name, "rotated")
		for _, text := range []string{
			"the pods of Deployment site/env, StatefulSet site/user start again", "StatefulSet site/manual: pods that read the old values keep them until you delete them",
			"restart workloads outside the Solution that read Secret site/app",
		} {
			if strings.Contains(said, text) != want || strings.Contains(strings.Join(planned.Notices, "\n"), text) != want {
				t.Errorf("%s: the notices with %q:\n%s", step.name, text, said)
			}
		}
	}
	must(b, rollback(0))
	if got := numbers(); got != "env=1 manual= other= user=1" {
		t.Errorf("rolled back: %s", got)
	}
}
