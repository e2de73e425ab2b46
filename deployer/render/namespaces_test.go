package render_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// namespaceOf is a Namespace of a component with a Pod Security level, and another label.
func namespaceOf(name, level string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + ", labels: {pod-security.kubernetes.io/enforce: " + level + ", team: a}}\n---\n"
}

// TestNamespaceLabels checks that activation sets the Pod Security labels of the Namespaces that cluster components bring, and that the
// components do not apply these Namespaces.
func TestNamespaceLabels(t *testing.T) {
	p := cloud(t, map[string]string{
		"manifest.yaml": cloudManifest + "    - {name: agent, manifests: components/agent.yaml, scope: cluster, namespace: agents}\n" +
			"    - {name: cni, chart: charts/cni.tgz, scope: cluster, namespace: cni}\n",
		"components/agent.yaml": namespaceOf("agents", "privileged") + configMap,
		"charts/cni.tgz": chartOf(t, map[string]string{
			"templates/a.yaml": strings.Replace(namespaceOf("cni", "baseline"), "name: cni", "name: {{ .Release.Namespace }}", 1) + configMap,
		}),
	})
	s := settings()
	s.Creates = []string{"agents", "cni", "watch"}
	levels := map[string]string{}
	for _, o := range activation(t, p, s) {
		if o.GetKind() == "Namespace" {
			levels[o.GetName()] = o.GetLabels()["pod-security.kubernetes.io/enforce"]
			if o.GetLabels()["team"] != "" {
				t.Errorf("Namespace %s has a label that no administrator was shown", o.GetName())
			}
		}
	}
	if diff := cmp.Diff(levels, map[string]string{"agents": "privileged", "cni": "baseline", "cloud-system": "", "watch": ""}); diff != "" {
		t.Errorf("levels (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(places(component(t, p, "agent")), []string{"ConfigMap/agents/one"}); diff != "" {
		t.Errorf("component (-got +want):\n%s", diff)
	}
	found, err := render.Chart(t.Context(), p, "cni", s, render.ChartSettings{StandIns: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(places(found.Objects), []string{"ConfigMap/cni/one"}); diff != "" {
		t.Errorf("chart (-got +want):\n%s", diff)
	}
	isPrivileged := func(p schema.Power) bool {
		return p.Name == schema.PowerMarkNamespaces && p.Object.Name == "agents" && p.Need != schema.NeedShown
	}
	if judged := powersOf(t, p); !slices.ContainsFunc(judged.Powers, isPrivileged) {
		t.Errorf("no approval for privileged pods in namespace agents:\n%s", strings.Join(judged.Summary, "\n"))
	}
}

func TestRefusedNamespaces(t *testing.T) {
	for name, test := range map[string]struct {
		component, text string
		render          func(*render.Payload) ([]*unstructured.Unstructured, error)
		want            string
	}{
		"not of the component": {"", namespaceOf("other", "baseline") + configMap, func(p *render.Payload) ([]*unstructured.Unstructured, error) {
			return render.Component(p, "agent", settings())
		}, "a Solution cannot bring an object of this kind"},
		"of the cluster itself": {", namespaces: [kube-system]", namespaceOf("kube-system", "baseline") + configMap, func(p *render.Payload) ([]*unstructured.Unstructured, error) {
			return render.Component(p, "agent", settings())
		}, "a Solution cannot bring an object of this kind"},
		"of two that disagree": {"", namespaceOf("agents", "baseline") + namespaceOf("agents", "restricted") + configMap, func(p *render.Payload) ([]*unstructured.Unstructured, error) {
			return render.Activation(p, settings())
		}, "another Namespace of this name sets the label to baseline"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.render(cloud(t, map[string]string{
				"manifest.yaml":         cloudManifest + "    - {name: agent, manifests: components/agent.yaml, scope: cluster, namespace: agents" + test.component + "}\n",
				"components/agent.yaml": test.text,
			}))
			if err == nil || !strings.Contains(err.Error(), test.want) || report.CodeOf(err) == report.Failure {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
