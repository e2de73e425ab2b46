package render_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
)

func powersOf(t *testing.T, p *render.Payload) *schema.Powers {
	t.Helper()
	judged, err := render.Powers(t.Context(), p, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	return judged
}

// The example asks for nothing that every Solution has not.
func TestPowersOfTheExample(t *testing.T) {
	judged := powersOf(t, exampleSolution(t, "1.0.0"))
	if len(judged.Unjudged) > 0 {
		t.Errorf("not judged: %q", judged.Unjudged)
	}
	for _, p := range judged.Powers {
		if p.Need != schema.NeedShown {
			t.Errorf("%s %s: %s", p.Name, p.Object, p.Why)
		}
	}
}

// Charts are judged with their hooks and with the Secrets of others that they look up.
func TestPowersOfCharts(t *testing.T) {
	judged := powersOf(t, cloud(t, map[string]string{"charts/chart.tgz": chartOf(t, map[string]string{
		"templates/a.yaml": `{{ range (lookup "v1" "Secret" "kube-system" "").items }}{{ end }}{{ $_ := lookup "v1" "Secret" .Release.Namespace "own" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
`,
		"templates/hook.yaml": `apiVersion: batch/v1
kind: Job
metadata: {name: hook, annotations: {helm.sh/hook: post-install}}
spec: {template: {spec: {hostPID: true, restartPolicy: Never, containers: [{name: a, image: "quay.io/acme/identity:2"}]}}}
`,
	})}))
	for _, want := range []schema.PowerName{schema.PowerReadSecrets, schema.PowerPodOnNode} {
		if !slices.ContainsFunc(judged.Powers, func(p schema.Power) bool { return p.Name == want }) {
			t.Errorf("%s is missing in %s", want, strings.Join(judged.Summary, "\n"))
		}
	}
}

// TestPowersBehindVersions: a chart that looks whether the cluster has an API cannot hide what it does there.
func TestPowersBehindVersions(t *testing.T) {
	for _, api := range []string{"rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io/v1/ClusterRoleBinding", "v1", "policy/v1/PodDisruptionBudget", "monitoring.coreos.com/v1"} {
		judged := powersOf(t, cloud(t, map[string]string{"charts/chart.tgz": chartOf(t, map[string]string{
			"templates/a.yaml": `{{ if .Capabilities.APIVersions.Has "` + api + `" }}
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: all}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: eve}]
{{ end }}`,
		})}))
		if !slices.ContainsFunc(judged.Powers, func(p schema.Power) bool { return p.Subject == "User eve" }) {
			t.Errorf("what the chart does where the cluster has %s is missing", api)
		}
	}
}
