package deployer_test

import (
	"context"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestForeignImages: a chart that would pull what no archive has is refused with all that is missing, before anything is changed,
// unless that is accepted. Accepted images stay so, and others are refused again.
func TestForeignImages(t *testing.T) {
	b := deployertest.New(t)
	content := parts(t, map[string]string{
		"charts/mon.tgz": deployertest.Chart(t, "mon", map[string]string{
			"values.yaml": "agent: \"\"\n",
			"templates/mon.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: mon, annotations: {note: "built from quay.io/acme/base:1"}}
spec:
  replicas: 0
  selector: {matchLabels: {app: mon}}
  template:
    metadata: {labels: {app: mon}}
    spec:
      containers:
      - name: mon
        image: registry.solutionctl.invalid/shop-1.0.0/shop-operator:1.0.0
        args: [--reloader=quay.io/acme/reloader:v2, --listen=0.0.0.0:8080]
        env: [{name: AGENT, value: "{{ .Values.agent }}"}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: mon}
data: {text: "see quay.io/acme/manual:1", config.yaml: "image: quay.io/acme/later:1"}
`,
			"templates/test.yaml": `apiVersion: v1
kind: Pod
metadata: {name: test, annotations: {helm.sh/hook: test}}
spec: {containers: [{name: test, image: "quay.io/acme/test:1"}]}
`,
		}),
		"charts/web.tgz": deployertest.Chart(t, "web", map[string]string{"templates/job.yaml": `apiVersion: batch/v1
kind: Job
metadata: {name: web, annotations: {helm.sh/hook: post-install}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: web, image: busybox}]}}}
`}),
	})
	content.Manifest += "  - {name: mon, chart: charts/mon.tgz}\n  - {name: web, chart: charts/web.tgz, select: optional}\n"
	b.Activated(shop, "1.0.0", content)
	adding := func(names string, hazards ...string) verb {
		t.Helper()
		choice, err := components.ParseChoice(nil, []string{names})
		if err != nil {
			t.Fatal(err)
		}
		return func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
			return d.Add(ctx, deployer.AddOptions{Options: o, Environment: site, Solution: shop, Version: "1.0.0", Rendering: plan.Rendering{
				AcceptHazards: hazards, Parts: plan.Parts{
					Choice: choice, Values: map[string]plan.SiteValues{"mon": {Values: map[string]any{"agent": "quay.io/acme/agent@sha256:" + strings.Repeat("a", 64)}}},
				},
			}})
		}
	}
	for _, dry := range []bool{true, false} {
		b.Server.Requests()
		_, err := adding("web", "read-secrets")(t.Context(), b.Deployer, plan.Options{DryRun: dry})
		deployertest.Refused(t, err, report.Refused, "component mon: Deployment/mon, spec.template.spec.containers[0].args[0]: quay.io/acme/reloader:v2",
			"component mon: Deployment/mon, spec.template.spec.containers[0].env[0].value: quay.io/acme/agent@sha256:", "component web: Job/web, spec.template.spec.containers[0].image: busybox",
			`- {name: reloader, tag: "v2", source: "docker://quay.io/acme/reloader:v2"}`, `- {name: busybox, tag: "latest", source: "docker://docker.io/library/busybox:latest"}`,
			"--accept-hazard foreign-images")
		for _, none := range []string{"base:1", "manual:1", "later:1", "test:1", "shop-operator"} {
			if err != nil && strings.Contains(err.Error(), none) {
				t.Errorf("%s is none of them:\n%v", none, err)
			}
		}
		for _, write := range b.Writes() {
			if !strings.Contains(write, "/leases") && !strings.HasSuffix(write, "/namespaces/solutionctl-system") {
				t.Errorf("refused, and it writes %s", write)
			}
		}
	}
	done := must(b, adding("web=false", plan.HazardForeignImages))
	if text := strings.Join(done.Notices, "\n"); !strings.Contains(text, "are accepted") || !strings.Contains(text, "reloader:v2") {
		t.Errorf("notices: %s", text)
	}
	must(b, adding("web=false"))
	_, err := adding("web")(t.Context(), b.Deployer, plan.Options{})
	deployertest.Refused(t, err, report.Refused, "component web: Job/web, spec.template.spec.containers[0].image: busybox", "--accept-hazard foreign-images")
	if err != nil && strings.Contains(err.Error(), "reloader:v2") {
		t.Errorf("accepted images are refused: %v", err)
	}
}
