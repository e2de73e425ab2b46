package deployer_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/plan"
)

var (
	services     = kube.GroupVersionKind{Version: "v1", Kind: "Service"}
	pods         = kube.GroupVersionKind{Version: "v1", Kind: "Pod"}
	ingresses    = kube.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}
	clusterRoles = kube.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
)

// withWebhook is an archive whose custom resources are converted, and whose objects are judged, by a webhook.
func withWebhook(b *bed) content {
	return content{
		Conversion: "{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: any, name: webhook, path: /convert}}}}",
		Files: map[string]string{"operator/cluster/webhook.yaml": strings.ReplaceAll(`apiVersion: v1
kind: Service
metadata: {name: webhook}
spec: {selector: {app: webhook}, ports: [{port: 443, targetPort: 9443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: webhook}
spec:
  replicas: 0 # there are no nodes
  selector: {matchLabels: {app: webhook}}
  template:
    metadata: {labels: {app: webhook}}
    spec:
      containers: [{name: webhook, image: "{{ repository }}/SOLUTION-operator:1.0.0"}]
      volumes: [{name: cert, secret: {secretName: SOLUTION-cert}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: SOLUTION}
webhooks:
  - name: clocks.SOLUTION.example
    admissionReviewVersions: [v1]
    sideEffects: None
    clientConfig: {service: {namespace: any, name: webhook}}
    rules: [{apiGroups: [SOLUTION.example], apiVersions: ["*"], operations: [CREATE], resources: [clocks]}]
`, "SOLUTION", b.Solution)},
	}
}

// TestWebhookOfTheActiveVersion: the API server accepts the certificate, and doing it again changes nothing.
func TestWebhookOfTheActiveVersion(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.imported("1.0.0", withWebhook(b))
	o := deployer.ActivateOptions{Options: plan.Options{NoWait: true}, Solution: b.Solution}
	if _, err := b.Activate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	system := b.Solution + "-system"
	authority, _, _ := unstructured.NestedString(b.get(secrets, system, b.Solution+"-cert").Object, "data", "ca.crt")
	conversion, _, _ := unstructured.NestedMap(b.get(crds, "", b.crdName()).Object, "spec", "conversion", "webhook", "clientConfig")
	if authority == "" || conversion["caBundle"] != authority {
		t.Errorf("the API server trusts %v, want %s", conversion["caBundle"], authority)
	}
	if service, _ := conversion["service"].(map[string]any); service["namespace"] != system {
		t.Errorf("the webhook is looked for in %v", service)
	}
	if b.find(services, system, "webhook") == nil || b.find(deployments, system, "webhook") == nil {
		t.Error("the webhook is not deployed")
	}
	if again, err := b.Activate(t.Context(), o); err != nil || !again.Empty() {
		t.Errorf("activating again: %+v, %v", again, err)
	}
}

// TestUserInterfaceIsCompleted: what an archive leaves out is made, the certificate of the operator's webhook stays the
// same, and adding again changes nothing.
func TestUserInterfaceIsCompleted(t *testing.T) {
	t.Parallel()
	b := newJudgment(t)
	b.activated("1.0.0", content{Files: map[string]string{"ui/ui.yaml": strings.ReplaceAll(`apiVersion: apps/v1
kind: Deployment
metadata: {name: page, namespace: metalk8s-solutions}
spec:
  selector: {matchLabels: {app: page}}
  template:
    metadata: {labels: {app: page}}
    spec: {containers: [{name: page, image: "{{ repository }}/SOLUTION-operator:1.0.0", ports: [{name: http, containerPort: 8080}]}]}
`, "SOLUTION", b.Solution)}})
	webhook := true
	o := deployer.AddOptions{
		Options: plan.Options{NoWait: true}, Environment: b.Env, Solution: b.Solution, Rendering: plan.Rendering{Webhook: &webhook},
	}
	if _, err := b.Add(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	b.get(deployments, b.Env, "page")
	b.get(services, b.Env, b.Solution+"-ui")
	b.get(configMaps, b.Env, b.Solution+"-ui")
	ingress := b.get(ingresses, b.Env, b.Solution+"-ui")
	if class, has, _ := unstructured.NestedString(ingress.Object, "spec", "ingressClassName"); has {
		t.Errorf("class %s outside of MetalK8s", class)
	}
	before := b.get(secrets, b.Env, b.Solution+"-cert")
	o.Webhook = nil
	if again, err := b.Add(t.Context(), o); err != nil || !again.Empty() {
		t.Errorf("adding again: %+v, %v", again, err)
	}
	if after := b.get(secrets, b.Env, b.Solution+"-cert"); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Error("the certificate was written again")
	}
}

// TestInterfaceBehindNginx checks that nginx removes the path from a request, and that the API server accepts its configuration.
func TestInterfaceBehindNginx(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.activated("1.0.0", content{Files: map[string]string{"ui/ui.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: page}\nspec: {ports: [{port: 80}]}\n"}})
	class := "nginx-control-plane"
	_, err := b.Add(t.Context(), deployer.AddOptions{
		Options: plan.Options{NoWait: true}, Environment: b.Env, Solution: b.Solution, Rendering: plan.Rendering{IngressClass: &class},
	})
	if err != nil {
		t.Fatal(err)
	}
	ingress := b.get(ingresses, b.Env, b.Solution+"-ui")
	rules, _, _ := unstructured.NestedSlice(ingress.Object, "spec", "rules")
	paths, _, _ := unstructured.NestedSlice(rules[0].(map[string]any), "http", "paths")
	if path := paths[0].(map[string]any)["path"]; path != "/env/"+b.Env+"/"+b.Solution+"(/|$)(.*)" {
		t.Errorf("path %s", path)
	}
}
