package render_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const cloudManifest = `apiVersion: solutions.metalk8s.scality.com/v1alpha1
kind: Solution
metadata: {name: cloud}
spec:
  version: 1.0.0
  operator: {clusterWide: true}
  imageOrigins: {"identity:2": "quay.io/acme/identity:2"}
  components:
    - {name: identity-operator, operator: operators/identity, image: {name: identity, tag: "2"}}
    - {name: compute, operator: operators/compute/}
    - {name: web, manifests: components/web}
    - {name: one, manifests: components/one.yaml}
    - {name: sync, job: components/sync.yaml}
    - {name: metrics, manifests: components/metrics.yaml, scope: cluster, namespace: watch, namespaces: [kube-system]}
    - {name: base, manifests: components/one.yaml, scope: cluster}
    - {name: chart, chart: charts/chart.tgz}
    - {name: gone, manifests: components/gone}
`

const cloudRoles = `kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: manager}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
---
kind: Role
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: election}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get]}]
`

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n"

func cloud(t *testing.T, changes map[string]string) *render.Payload {
	t.Helper()
	files := map[string]string{
		"manifest.yaml":                cloudManifest,
		"operator/deploy/role.yaml":    cloudRoles,
		"operators/identity/role.yaml": cloudRoles,
		"components/web/web.yaml":      deploymentOf("web", "quay.io/acme/identity:2"),
		"components/web/deep/s.yaml":   "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n",
		"components/web/README.md":     "for people\n",
		"components/one.yaml":          configMap,
		"components/sync.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: sync}\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n" +
			"      containers: [{name: sync, image: \"{{ repository }}/identity:2\"}]\n",
		"components/metrics.yaml": `kind: ServiceAccount
apiVersion: v1
metadata: {name: metrics}
---
kind: RoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: metrics, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{kind: ServiceAccount, name: metrics, namespace: elsewhere}, {kind: ServiceAccount, name: other, namespace: kube-system}]
---
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: metrics}
---
kind: ClusterRoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: metrics}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: metrics}
subjects: [{kind: ServiceAccount, name: metrics}]
`,
	}
	maps.Copy(files, changes)
	image := func(name, tag string) render.Image {
		return render.Image{Ref: schema.ImageRef{Name: name, Tag: tag}, Digest: "sha256:" + strings.Repeat(name[:1], 64), Origin: "quay.io/acme/" + name + ":" + tag}
	}
	return newPayload(t, files, image("cloud-operator", "1.0.0"), image("compute", "1.0.0"), image("identity", "2"))
}

func deploymentOf(name, image string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + "}\nspec:\n  selector: {matchLabels: {app: a}}\n  template:\n" +
		"    metadata: {labels: {app: a}}\n    spec: {containers: [{name: a, image: \"" + image + "\"}]}\n"
}

func component(t *testing.T, p *render.Payload, name string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := render.Component(p, name, settings())
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// places are kind, namespace and name of objects.
func places(objects []*unstructured.Unstructured) []string {
	var list []string
	for _, o := range objects {
		list = append(list, strings.Join([]string{o.GetKind(), o.GetNamespace(), o.GetName()}, "/"))
	}
	return list
}

func TestComponents(t *testing.T) {
	p := cloud(t, nil)
	for name, want := range map[string][]string{
		"identity-operator": {
			"ServiceAccount/prod/identity-operator",
			"ClusterRole//solutionctl:prod:cloud:identity-operator:manager",
			"Role/prod/identity-operator:election",
			"RoleBinding/prod/identity-operator:clusterrole:manager",
			"RoleBinding/prod/identity-operator:role:election",
			"ConfigMap/prod/identity-operator-config",
			"Deployment/prod/identity-operator",
		},
		"compute": {"ServiceAccount/prod/compute", "ConfigMap/prod/compute-config", "Deployment/prod/compute"},
		"web":     {"Service/prod/web", "Deployment/prod/web"},
		"one":     {"ConfigMap/prod/one"},
		"sync":    {"Job/prod/sync"},
		"base":    {"ConfigMap/cloud-system/one"},
		"metrics": {
			"ServiceAccount/watch/metrics", "RoleBinding/kube-system/metrics",
			"ClusterRole//solutionctl:watch:cloud:metrics:metrics", "ClusterRoleBinding//solutionctl:watch:cloud:metrics:metrics",
		},
	} {
		objects := component(t, p, name)
		if diff := cmp.Diff(places(objects), want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
}

// TestComponentOperator: an additional operator differs from that of the Solution only in its name, its command, and
// its permissions, which end with the namespace.
func TestComponentOperator(t *testing.T) {
	p := cloud(t, nil)
	s := settings()
	s.Webhook = true
	own, err := render.Environment(p, s)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := render.Component(p, "identity-operator", s)
	if err != nil {
		t.Fatal(err)
	}
	both := slices.Concat(places(own), places(objects))
	slices.Sort(both)
	if len(slices.Compact(slices.Clone(both))) != len(both) {
		t.Errorf("two operators have one object: %q", both)
	}
	config := func(objects []*unstructured.Unstructured, name string) string {
		text, _, _ := unstructured.NestedString(find(t, objects, "ConfigMap", name).Object, "data", "operator.yaml")
		return text
	}
	if a, b := config(own, "cloud-operator-config"), config(objects, "identity-operator-config"); a != b || !strings.Contains(a, "identity:2") {
		t.Errorf("the configurations differ:\n%s\n%s", a, b)
	}
	deployment := find(t, objects, "Deployment", "identity-operator")
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	container := containers[0].(map[string]any)
	if want := "registry.solutionctl.invalid/cloud-1.0.0/identity:2@sha256:" + strings.Repeat("i", 64); container["image"] != want {
		t.Errorf("image %v, want %s", container["image"], want)
	}
	if diff := cmp.Diff(container["args"], []any{"--config=/etc/config/operator.yaml"}); diff != "" || container["command"] != nil {
		t.Errorf("command %v, args %s", container["command"], diff)
	}
	if mounts := container["volumeMounts"].([]any); len(mounts) != 1 {
		t.Errorf("the certificate is the Solution's own: %v", mounts)
	}
	if labels := deployment.GetLabels(); labels["app.kubernetes.io/part-of"] != "cloud" || labels["app.kubernetes.io/component"] != "operator" {
		t.Errorf("labels %v", labels)
	}
	for _, o := range objects {
		if o.GetKind() == "ClusterRoleBinding" {
			t.Errorf("%s: the rights of a component leave its namespace", o.GetName())
		}
	}
	binding := find(t, objects, "RoleBinding", "identity-operator:role:election")
	name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
	subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
	if account := subjects[0].(map[string]any)["name"]; name != "identity-operator:election" || account != "identity-operator" {
		t.Errorf("the binding gives %s to %s", name, account)
	}
}

func TestComponentObjects(t *testing.T) {
	p := cloud(t, nil)
	pinned := "registry.solutionctl.invalid/cloud-1.0.0/identity:2@sha256:" + strings.Repeat("i", 64)
	for name, kind := range map[string]string{"web": "Deployment", "sync": "Job"} {
		o := find(t, component(t, p, name), kind, name)
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		if image := containers[0].(map[string]any)["image"]; image != pinned {
			t.Errorf("%s starts %s, want %s", name, image, pinned)
		}
		if o.GetLabels()["app.kubernetes.io/part-of"] != "cloud" {
			t.Errorf("%s: labels %v", name, o.GetLabels())
		}
	}
	objects := component(t, p, "metrics")
	subjects, _, _ := unstructured.NestedSlice(find(t, objects, "RoleBinding", "metrics").Object, "subjects")
	var namespaces []any
	for _, subject := range subjects {
		namespaces = append(namespaces, subject.(map[string]any)["namespace"])
	}
	if diff := cmp.Diff(namespaces, []any{"watch", "kube-system"}); diff != "" {
		t.Errorf("the accounts of the binding are in other namespaces:\n%s", diff)
	}
	role, _, _ := unstructured.NestedString(find(t, objects, "ClusterRoleBinding", "solutionctl:watch:cloud:metrics:metrics").Object, "roleRef", "name")
	if role != "solutionctl:watch:cloud:metrics:metrics" {
		t.Errorf("the binding gives %s", role)
	}
}

// TestActivationOfSeveralOperators: objects that several operators need once per cluster are activated once.
func TestActivationOfSeveralOperators(t *testing.T) {
	p := cloud(t, map[string]string{
		"operator/cluster/a.yaml":            configMap,
		"operators/identity/cluster/b.yaml":  strings.Replace(configMap, "one", "two", 1),
		"operators/nobody/cluster/c.yaml":    strings.Replace(configMap, "one", "three", 1),
		"operators/identity/deploy/odd.yaml": strings.Replace(configMap, "one", "four", 1),
		"manifest.yaml":                      cloudManifest + "    - {name: identity-again, operator: operators/identity/, image: {name: identity, tag: \"2\"}}\n",
	})
	want := []string{"Namespace//cloud-system", "ConfigMap/cloud-system/one", "ConfigMap/cloud-system/two"}
	if diff := cmp.Diff(places(activation(t, p, settings())), want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestRefusedComponents(t *testing.T) {
	in := func(namespace string) string {
		return strings.Replace(configMap, "name: one", "name: one, namespace: "+namespace, 1)
	}
	const clusterRole = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: one}\n"
	for _, test := range []struct {
		name, component, file, text string
		code                        report.Code
		want, hint                  string
	}{
		{"unknown", "nobody", "", "", report.Usage, "cloud-1.0.0 has no component nobody", ""},
		{"a chart", "chart", "", "", report.Usage, "component chart of cloud-1.0.0 is a chart: it is rendered with values", ""},
		{"nothing there", "gone", "", "", report.Invalid, "component gone of cloud-1.0.0: there is no object in components/gone", ""},
		{"a namespace", "one", "components/one.yaml", in("kube-system"), report.Refused, "components/one.yaml:3: ConfigMap/one: component one lives in the namespace of an environment, and not in kube-system", "leave the namespace out"},
		{"the whole cluster", "one", "components/one.yaml", clusterRole, report.Refused, "components/one.yaml:2: ClusterRole/one: component one lives in an environment, which cannot have an object of the whole cluster", "write scope: cluster"},
		{"another namespace", "metrics", "components/metrics.yaml", in("default"), report.Refused, "components/metrics.yaml:3: ConfigMap/one: component metrics does not name namespace default", "which has: watch, kube-system"},
		{"a forbidden kind", "base", "components/one.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: one}\n", report.Refused, "a Solution cannot bring an object of this kind", ""},
		{"a definition", "base", "components/one.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b.c}\n", report.Refused, "a component cannot bring a definition", "operator/deploy/crds"},
		{"a job that is none", "sync", "components/sync.yaml", configMap, report.Invalid, "components/sync.yaml:2: ConfigMap/one: a component that is a job has one Job and nothing else", ""},
		{"a job and more", "sync", "components/sync.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\n---\n" + configMap, report.Invalid, "components/sync.yaml:6: ConfigMap/one: a component that is a job", ""},
		{"an image that is not there", "one", "components/one.yaml", deploymentOf("one", "{{ repository }}/other:1"), report.Invalid, "image other:1 is not in the archive", ""},
		{"other objects in role.yaml", "identity-operator", "operators/identity/role.yaml", configMap, report.Invalid, "operators/identity/role.yaml:2: ConfigMap/one: only Role and ClusterRole may be in this file", ""},
		{
			"an operator without image", "compute", "manifest.yaml", strings.Replace(cloudManifest, "operators/compute/", "operators/compute, image: {name: gone}", 1),
			report.Invalid, "the image of the operator, gone:1.0.0, is not in the archive", "name it in the image of component compute of manifest.yaml",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			changes := map[string]string{}
			if test.file != "" {
				changes[test.file] = test.text
			}
			_, err := render.Component(cloud(t, changes), test.component, settings())
			if report.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %s %v\nwant %s %s", report.CodeOf(err), err, test.code, test.want)
			}
			if hint := strings.Join(report.Hints(err), "; "); !strings.Contains(hint, test.hint) {
				t.Errorf("hint %q, want %q", hint, test.hint)
			}
		})
	}
	s := settings()
	s.Namespace = ""
	if _, err := render.Component(cloud(t, nil), "one", s); report.CodeOf(err) != report.Usage {
		t.Errorf("without a namespace: %v", err)
	}
}
