package render_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/kube/schemas"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

var update = flag.Bool("update", false, "rewrite the expected objects")

var now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func settings() render.Settings {
	return render.Settings{Registry: "registry.solutionctl.invalid", Namespace: "prod", Environment: "prod", Now: now}
}

// exampleSolution is the payload of release 1.0.0 of the example, called by another version.
func exampleSolution(t *testing.T, version string) *render.Payload {
	t.Helper()
	return exampleRelease(t, "../../example-solution", version)
}

// exampleRelease is the payload of a release of the example as a build would put it into an archive, with made-up digests.
func exampleRelease(t *testing.T, dir, version string) *render.Payload {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "solution.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	set, err := schema.ParseSetting("test", "spec.version="+version)
	if err != nil {
		t.Fatal(err)
	}
	build, err := schema.ParseSolutionBuild("solution.yaml", data, set)
	if err != nil {
		t.Fatal(err)
	}
	var images []render.Image
	var refs []schema.ImageRef
	for i, image := range build.Spec.Images {
		ref := build.Spec.ImageRef(image)
		refs = append(refs, ref)
		images = append(images, render.Image{Ref: ref, Digest: "sha256:" + strings.Repeat(string(rune('a'+i)), 64)})
	}
	manifest, err := build.Solution(refs, now).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"manifest.yaml": string(manifest)}
	for _, part := range []string{"operator", "ui", "monitoring"} {
		root := filepath.Join(dir, "archive")
		for _, name := range paths(t, os.DirFS(filepath.Join(root, part))) {
			data, err := os.ReadFile(filepath.Join(root, part, name))
			if err != nil {
				t.Fatal(err)
			}
			files[part+"/"+name] = strings.ReplaceAll(string(data), "{{ version }}", version) // as a build does
		}
	}
	return newPayload(t, files, images...)
}

func golden(t *testing.T, name string, objects []*unstructured.Unstructured) {
	t.Helper()
	var text strings.Builder
	for _, o := range objects {
		data, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n" + string(data))
	}
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("%s (go test -update rewrites it):\n%s", file, diff)
	}
}

func TestExampleSolution(t *testing.T) {
	first, second := exampleSolution(t, "1.0.0"), exampleSolution(t, "1.1.0")
	s := settings()
	s.Imported = []*render.Payload{second, first}
	activation, err := render.Activation(first, s)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "example-activation.yaml", activation)
	environment, err := render.Environment(first, s)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "example-environment.yaml", environment)

	again, err := render.Environment(first, s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(environment, again); diff != "" {
		t.Errorf("rendering twice differs:\n%s", diff)
	}
	valid(t, append(activation, environment...))
}

// TestExampleReleases: activating 1.1.0 brings its conversion webhook, activating 2.0.0 takes it away.
func TestExampleReleases(t *testing.T) {
	const releases = "../../example-solution/releases/"
	p := exampleRelease(t, releases+"1.1.0", "1.1.0")
	wanted, err := render.ActivationSecrets(p, settings())
	if diff := cmp.Diff([]string{"example-solution-cert"}, wanted); diff != "" || err != nil {
		t.Fatal(diff, err)
	}
	objects := activation(t, p, settings())
	definition, secret := find(t, objects, "CustomResourceDefinition", "websites.example.solutionctl.io"), find(t, objects, "Secret", wanted[0])
	bundle := []string{"spec", "conversion", "webhook", "clientConfig", "caBundle"}
	if err := handshake(t, secret, text(t, definition, bundle...), "example-solution-webhook.example-solution-system.svc", now); err != nil {
		t.Error(err)
	}
	deployment := find(t, objects, "Deployment", "example-solution-webhook")
	for _, random := range []struct {
		object *unstructured.Unstructured
		path   []string
	}{
		{definition, bundle},
		{secret, []string{"data", "ca.crt"}},
		{secret, []string{"data", "tls.crt"}},
		{secret, []string{"data", "tls.key"}},
		{deployment, []string{"spec", "template", "metadata", "annotations", "solutionctl.io/certificate"}},
	} {
		if text(t, random.object, random.path...) == "" {
			t.Errorf("%s: %v is empty", random.object.GetKind(), random.path)
		}
		if err := unstructured.SetNestedField(random.object.Object, "(another each time)", random.path...); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "example-1.1.0-activation.yaml", objects)

	want := []string{
		"Namespace /example-solution-system", "CustomResourceDefinition /banners.example.solutionctl.io",
		"CustomResourceDefinition /websites.example.solutionctl.io",
		"ConfigMap example-solution-system/example-solution-dashboard-websites",
	}
	if diff := cmp.Diff(want, names(activation(t, exampleRelease(t, releases+"2.0.0", "2.0.0"), settings()))); diff != "" {
		t.Error(diff)
	}
}

// valid holds objects to the schemas of the oldest and the newest Kubernetes.
func valid(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	catalogue, err := schemas.Load()
	if err != nil {
		t.Fatal(err)
	}
	versions := catalogue.Versions()
	for _, version := range []string{versions[0], versions[len(versions)-1]} {
		release, err := catalogue.Release(version)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if strings.HasSuffix(o.GroupVersionKind().Group, ".coreos.com") {
				continue // Kubernetes does not know them
			}
			for _, problem := range release.Validate(o.Object) {
				t.Errorf("%s: %s/%s: %s", version, o.GetKind(), o.GetName(), problem)
			}
		}
	}
}

func TestOperatorConfigListsAllVersions(t *testing.T) {
	first, second := exampleSolution(t, "1.0.0"), exampleSolution(t, "1.1.0")
	render1 := func(imported ...*render.Payload) map[string]string {
		s := settings()
		s.Imported = imported
		objects, err := render.Environment(first, s)
		if err != nil {
			t.Fatal(err)
		}
		config, _, _ := unstructured.NestedString(find(t, objects, "ConfigMap", "example-solution-operator-config").Object, "data", "operator.yaml")
		annotation, _, _ := unstructured.NestedString(find(t, objects, "Deployment", "example-solution-operator").Object,
			"spec", "template", "metadata", "annotations", "solutionctl.io/configuration")
		return map[string]string{"config": config, "annotation": annotation}
	}
	alone, both := render1(), render1(second)
	parsed, err := schema.ParseOperatorConfig("operator.yaml", []byte(both["config"]))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]schema.Repository{
		"1.0.0": {{Endpoint: "registry.solutionctl.invalid/example-solution-1.0.0", Images: first.Solution.Spec.Images}},
		"1.1.0": {{Endpoint: "registry.solutionctl.invalid/example-solution-1.1.0", Images: second.Solution.Spec.Images}},
	}
	if diff := cmp.Diff(want, parsed.Repositories); diff != "" {
		t.Error(diff)
	}
	if alone["annotation"] == both["annotation"] {
		t.Error("the operator is not started again when a version was imported")
	}
	if diff := cmp.Diff(both, render1(first, second)); diff != "" {
		t.Errorf("the order of imports matters:\n%s", diff)
	}
}

func find(t *testing.T, objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	t.Fatalf("no %s %s in %v", kind, name, names(objects))
	return nil
}

// names lists objects as KIND NAMESPACE/NAME.
func names(objects []*unstructured.Unstructured) []string {
	var list []string
	for _, o := range objects {
		list = append(list, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	return list
}

const role = `apiVersion: rbac.authorization.k8s.io/v1
kind: %KIND%
metadata: {name: %NAME%, namespace: elsewhere}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
`

func roleOf(kind, name string) string {
	return strings.NewReplacer("%KIND%", kind, "%NAME%", name).Replace(role)
}

func TestRoles(t *testing.T) {
	long := strings.Repeat("long-", 12) + "role"
	p := newPayload(t, map[string]string{"operator/deploy/role.yaml": strings.Join([]string{
		roleOf("Role", "db"), roleOf("ClusterRole", "db"), roleOf("Role", long), roleOf("Role", long+"-2"), roleOf("ClusterRole", "db:deep:name"),
	}, "---\n")})
	objects, err := render.Environment(p, settings())
	if err != nil {
		t.Fatal(err)
	}
	valid(t, objects)
	want := []string{
		"ServiceAccount prod/db-operator",
		"Role prod/db", "ClusterRole /solutionctl:prod:db:db",
		"Role prod/" + long, "Role prod/" + long + "-2", "ClusterRole /solutionctl:prod:db:db:deep:name",
		"RoleBinding prod/db-operator-role-db", "RoleBinding prod/db-operator-clusterrole-db",
		"RoleBinding prod/db-operator-role-long-long-long-long-long-long-long-lo-d22054e2",
		"RoleBinding prod/db-operator-role-long-long-long-long-long-long-long-lo-08678417",
		"RoleBinding prod/db-operator-clusterrole-db:deep:name",
		"ConfigMap prod/db-operator-config", "Deployment prod/db-operator",
	}
	if diff := cmp.Diff(want, names(objects)); diff != "" {
		t.Error(diff)
	}
	binding := find(t, objects, "RoleBinding", "db-operator-clusterrole-db").Object
	if diff := cmp.Diff(map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "solutionctl:prod:db:db"}, binding["roleRef"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]any{map[string]any{"kind": "ServiceAccount", "name": "db-operator", "namespace": "prod"}}, binding["subjects"]); diff != "" {
		t.Error(diff)
	}
}

func TestTwoNamespacesShareNothing(t *testing.T) {
	p := newPayload(t, map[string]string{"operator/deploy/role.yaml": roleOf("ClusterRole", "db")})
	seen := map[string]string{}
	for _, namespace := range []string{"a", "b"} {
		s := settings()
		s.Namespace = namespace
		objects, err := render.Environment(p, s)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names(objects) {
			if other, twice := seen[name]; twice {
				t.Errorf("%s is in %s and %s", name, other, namespace)
			}
			seen[name] = namespace
		}
	}
}

func TestClusterWide(t *testing.T) {
	p := newPayload(t, map[string]string{
		"manifest.yaml":             strings.Replace(dbManifest, "1.0.0", "1.0.0, operator: {clusterWide: true}", 1),
		"operator/deploy/role.yaml": roleOf("Role", "here") + "---\n" + roleOf("ClusterRole", "everywhere"),
	})
	objects, err := render.Environment(p, settings())
	if err != nil {
		t.Fatal(err)
	}
	valid(t, objects)
	binding := find(t, objects, "ClusterRoleBinding", "solutionctl:prod:db:everywhere")
	if binding.GetNamespace() != "" {
		t.Errorf("the binding is in namespace %s", binding.GetNamespace())
	}
	find(t, objects, "RoleBinding", "db-operator-role-here")
}

const ui = `apiVersion: apps/v1
kind: Deployment
metadata: {name: db-ui, namespace: metalk8s-solutions}
spec:
  selector: {matchLabels: {app: db-ui}}
  template:
    metadata: {labels: {app: db-ui}}
    spec:
      nodeSelector: {node-role.kubernetes.io/infra: ""}
      initContainers: [{name: init, image: "nginx:1.27"}]
      containers:
        - name: ui
          image: {{ repository }}/db-ui:1.0.0
          args: ["--sidecar={{repository}}/db-operator:1.0.0", "--other={{ repository }}/missing:1", "--pinned={{ repository }}/db-ui:1.0.0@sha256:0000000000000000000000000000000000000000000000000000000000000000"]
          ports: [{containerPort: 8080, name: web}, {containerPort: 9090}, {containerPort: 53, protocol: UDP}]
        - {name: extra, image: "quay.io/other/thing:1"}
`

func TestUI(t *testing.T) {
	nginx := image("nginx", "1.27-alpine")
	nginx.Origin = "docker.io/library/nginx:1.27"
	images := []render.Image{image("db-operator", "1.0.0"), image("db-ui", "1.0.0"), nginx}
	p := newPayload(t, map[string]string{"ui/ui.yaml": ui}, images...)
	s := settings()
	s.Environment, s.IngressClass = "production.eu", "nginx-control-plane"
	objects, err := render.Environment(p, s)
	if err != nil {
		t.Fatal(err)
	}
	valid(t, objects)
	golden(t, "ui-generated.yaml", objects[3:])
}

// TestImageByDigest: an image of the archive is found by its digest, too, whatever tag stands beside it.
func TestImageByDigest(t *testing.T) {
	nginx := image("nginx", "1.27-alpine")
	nginx.Origin = "docker.io/library/nginx:1.27@sha256:" + strings.Repeat("1", 64)
	other := "nginx@sha256:" + strings.Repeat("2", 64)
	for text, ours := range map[string]bool{
		"nginx@" + nginx.Digest: true, "docker.io/library/nginx:other@" + nginx.Digest: true, "nginx@sha256:" + strings.Repeat("1", 64): true,
		nginx.Origin: true, other: false, "quay.io/acme/nginx@" + nginx.Digest: false,
	} {
		manifest := strings.Replace(ui, `"nginx:1.27"`, `"`+text+`"`, 1)
		objects, err := render.Environment(newPayload(t, map[string]string{"ui/ui.yaml": manifest}, image("db-operator", "1.0.0"), image("db-ui", "1.0.0"), nginx), settings())
		if err != nil {
			t.Fatal(err)
		}
		found := fmt.Sprint(objects[3].Object)
		if got := strings.Contains(found, "/nginx:1.27-alpine@"+nginx.Digest); got != ours {
			t.Errorf("%s: pinned %t, want %t\n%s", text, got, ours, found)
		}
	}
}

func TestUIBringsItsOwn(t *testing.T) {
	service := "---\napiVersion: v1\nkind: Service\nmetadata: {name: page}\nspec: {ports: [{port: 8000}]}\n"
	config := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: ui-branding}\n"
	ingress := "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: own}\nspec: {defaultBackend: {service: {name: page, port: {number: 8000}}}}\n"
	one := strings.Replace(ui, "image: \"nginx:1.27\"", "image: \"nginx:1.26\"", 1)
	for name, test := range map[string]struct {
		manifest string
		want     []string
	}{
		"everything":   {one + service + config + ingress, []string{"Deployment db-ui", "Service page", "ConfigMap ui-branding", "Ingress own"}},
		"service":      {one + service, []string{"Deployment db-ui", "Service page", "ConfigMap db-ui", "Ingress db-ui"}},
		"nothing runs": {config, []string{"ConfigMap ui-branding"}},
		"list":         {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]\n", []string{"ConfigMap a"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := render.Environment(newPayload(t, map[string]string{"ui/ui.yaml": test.manifest}), settings())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range objects[3:] {
				got = append(got, o.GetKind()+" "+o.GetName())
				if o.GetNamespace() != "prod" {
					t.Errorf("%s is in namespace %s", o.GetName(), o.GetNamespace())
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			valid(t, objects)
		})
	}
}

func TestIngressOfOwnServiceAndOtherClass(t *testing.T) {
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: page}\nspec: {ports: [{port: 8000}]}\n"
	s := settings()
	s.Environment = "staging"
	objects, err := render.Environment(newPayload(t, map[string]string{"ui/ui.yaml": service}), s)
	if err != nil {
		t.Fatal(err)
	}
	ingress := find(t, objects, "Ingress", "db-ui")
	want := map[string]any{"rules": []any{map[string]any{"http": map[string]any{"paths": []any{map[string]any{
		"path": "/env/staging/prod/db", "pathType": "Prefix",
		"backend": map[string]any{"service": map[string]any{"name": "page", "port": map[string]any{"number": int64(8000)}}},
	}}}}}}
	if diff := cmp.Diff(want, ingress.Object["spec"]); diff != "" {
		t.Error(diff)
	}
}

func TestMonitoringIsSplit(t *testing.T) {
	object := func(apiVersion, kind string) string {
		return "---\napiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: db, namespace: monitoring}\n"
	}
	const group = "monitoring.coreos.com/v1"
	p := newPayload(t, map[string]string{
		"monitoring/all.yaml": object(group, "ServiceMonitor") + object(group, "PodMonitor") + object(group, "Probe") + object(group, "PrometheusRule") +
			object("v1", "ConfigMap") + object("v1", "Service") + object("grafana.integreatly.org/v1beta1", "GrafanaDashboard"),
		"monitoring/dashboards/Over View.json":     `{"uid": "over", "title": "{{legend}}"}`,
		"monitoring/dashboards/sub/more_here.json": `{}`,
		"monitoring/dashboards/README":             `not a dashboard`,
	})
	environment, err := render.Environment(p, settings())
	if err != nil {
		t.Fatal(err)
	}
	activation, err := render.Activation(p, settings())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ServiceMonitor prod/db", "PodMonitor prod/db", "Probe prod/db", "PrometheusRule prod/db", "Service prod/db"}, names(environment[3:])); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"Namespace /db-system", "ConfigMap db-system/db", "GrafanaDashboard db-system/db",
		"ConfigMap db-system/db-dashboard-over-view", "ConfigMap db-system/db-dashboard-sub-more-here",
	}
	if diff := cmp.Diff(want, names(activation)); diff != "" {
		t.Error(diff)
	}
	monitor := find(t, environment, "ServiceMonitor", "db").GetLabels()
	if label, has := monitor["metalk8s.scality.com/monitor"]; !has || label != "" {
		t.Errorf("MetalK8s' Prometheus does not select it: %v", monitor)
	}
	dashboard := find(t, activation, "ConfigMap", "db-dashboard-over-view")
	if diff := cmp.Diff(map[string]any{"db-dashboard-over-view.json": `{"uid": "over", "title": "{{legend}}"}`}, dashboard.Object["data"]); diff != "" {
		t.Error(diff)
	}
	if dashboard.GetLabels()["grafana_dashboard"] != "1" {
		t.Errorf("Grafana does not find it: %v", dashboard.GetLabels())
	}
}

// TestOnlyWhatIsApplied: generated files of the Operator SDK, samples and documentation are left out.
func TestOnlyWhatIsApplied(t *testing.T) {
	p := newPayload(t, map[string]string{
		"operator/deploy/operator.yaml":         "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: old}\n",
		"operator/deploy/role_binding.yaml":     roleOf("RoleBinding", "old"),
		"operator/deploy/service_account.yaml":  "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: old}\n",
		"operator/deploy/crds/v1/dbs_cr.yaml":   "apiVersion: db.example/v1\nkind: DB\nmetadata: {name: sample}\n",
		"operator/deploy/crds/v1/dbs_crd.yaml":  crd,
		"operator/deploy/crds/notes.yaml":       "- 1",
		"operator/deploy/role.yaml":             "",
		"ui/deep/ignored.yaml":                  "- 1",
		"ui/README.md":                          "x",
		"operator/cluster/deep/not-either.yaml": "- 1",
	})
	environment, err := render.Environment(p, settings())
	if err != nil {
		t.Fatal(err)
	}
	activation, err := render.Activation(p, settings())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"CustomResourceDefinition /dbs.db.example",
		"ServiceAccount prod/db-operator", "ConfigMap prod/db-operator-config", "Deployment prod/db-operator",
		"ConfigMap prod/db-applications",
	}
	if diff := cmp.Diff(want, append(names(activation), names(environment)...)); diff != "" {
		t.Error(diff)
	}
	if parts := p.Parts(); !slices.Equal(parts, []string{schema.NodeOperator}) {
		t.Errorf("parts %q", parts)
	}
}

func TestWithoutOperator(t *testing.T) {
	p := newPayload(t, map[string]string{"monitoring/dashboards/a.json": "{}"}, image("other", "1"))
	objects, err := render.Environment(p, settings())
	if err != nil || len(objects) != 0 {
		t.Errorf("got %v, %v", names(objects), err)
	}
}

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: dbs.db.example}
spec:
  group: db.example
  names: {kind: DB, listKind: DBList, plural: dbs, singular: db}
  scope: Namespaced
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
    - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
    - {name: v0, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
`

func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		files   map[string]string
		images  []render.Image
		code    report.Code
		message string
	}{
		"another kind in role.yaml": {
			files: map[string]string{"operator/deploy/role.yaml": roleOf("Role", "a") + "---\n" + roleOf("RoleBinding", "b")},
			code:  report.Invalid, message: "operator/deploy/role.yaml:7: RoleBinding/b: only Role and ClusterRole",
		},
		"a kind called Role of another group": {
			files: map[string]string{"operator/deploy/role.yaml": strings.Replace(roleOf("Role", "a"), "rbac.authorization.k8s.io", "iam.example", 1)},
			code:  report.Invalid, message: "only Role and ClusterRole",
		},
		"role twice": {
			files: map[string]string{"operator/deploy/role.yaml": roleOf("Role", "a") + "---\n" + roleOf("Role", "a")},
			code:  report.Invalid, message: "Role/a is in operator/deploy/role.yaml and again in operator/deploy/role.yaml",
		},
		"not YAML": {
			files: map[string]string{"operator/deploy/role.yaml": "a: [\n"},
			code:  report.Invalid, message: "operator/deploy/role.yaml",
		},
		"not an object": {
			files: map[string]string{"ui/ui.yaml": "a: 1\n---\n- 1\n"},
			code:  report.Invalid, message: "ui/ui.yaml:1: a document is not a Kubernetes object",
		},
		"no name": {
			files: map[string]string{"ui/ui.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a}\n"},
			code:  report.Invalid, message: "metadata.name",
		},
		"entry of a list": {
			files: map[string]string{"ui/ui.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- 5\n"},
			code:  report.Invalid, message: "ui/ui.yaml:5: a document is not",
		},
		"cluster-scoped object of the user interface": {
			files: map[string]string{"ui/ui.yaml": "# first\n" + roleOf("ClusterRole", "a")},
			code:  report.Refused, message: "ui/ui.yaml:3: ClusterRole/a: an environment cannot have",
		},
		"cluster-scoped custom resource": {
			files: map[string]string{
				"operator/deploy/crds/dbs_crd.yaml": strings.Replace(crd, "Namespaced", "Cluster", 1),
				"ui/ui.yaml":                        "apiVersion: db.example/v1\nkind: DB\nmetadata: {name: a}\n",
			},
			code: report.Refused, message: "DB/a: an environment cannot have",
		},
		"image that is not there": {
			files: map[string]string{"ui/ui.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: a\n    image: '{{ repository }}/db-ui:2.0.0'\n"},
			code:  report.Invalid, message: "ui/ui.yaml:7: Pod/a: image db-ui:2.0.0 is not in the archive",
		},
		"image volume that is not there": {
			files: map[string]string{"ui/ui.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {volumes: [{name: m, image: {reference: '{{ repository }}/m:1'}}]}\n"},
			code:  report.Invalid, message: "image m:1 is not in the archive",
		},
		"operator's name taken": {
			files: map[string]string{"ui/ui.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: db-operator}\n"},
			code:  report.Invalid, message: "Deployment/db-operator is in what solutionctl makes itself and again in ui/ui.yaml",
		},
		"no image of the operator": {
			files:  map[string]string{"operator/deploy/role.yaml": ""},
			images: []render.Image{image("other", "1.0.0")},
			code:   report.Invalid, message: "the image of the operator, db-operator:1.0.0, is not in the archive",
		},
		"another kind among definitions": {
			files: map[string]string{"operator/deploy/crds/a_crd.yaml": roleOf("Role", "a")},
			code:  report.Invalid, message: "a_crd.yaml:2: Role/a: only a CustomResourceDefinition",
		},
		"definition of an old version": {
			files: map[string]string{"operator/deploy/crds/a_crd.yaml": strings.Replace(crd, "k8s.io/v1", "k8s.io/v1beta1", 1)},
			code:  report.Invalid, message: "has not served apiextensions.k8s.io/v1beta1",
		},
		"dashboard that is not JSON": {
			files: map[string]string{"monitoring/dashboards/a.json": "{"},
			code:  report.Invalid, message: "monitoring/dashboards/a.json is not JSON",
		},
		"dashboard that is too large": {
			files: map[string]string{"monitoring/dashboards/a.json": `"` + strings.Repeat("a", 1<<20) + `"`},
			code:  report.Invalid, message: "more than a ConfigMap holds",
		},
		"dashboards of one name": {
			files: map[string]string{"monitoring/dashboards/a b.json": "{}", "monitoring/dashboards/a-b.json": "{}"},
			code:  report.Invalid, message: "again in monitoring/dashboards/a-b.json",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPayload(t, test.files, test.images...)
			_, err := render.Environment(p, settings())
			if err == nil {
				_, err = render.Activation(p, settings())
			}
			if report.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.message) {
				t.Errorf("got %s: %v", report.CodeOf(err), err)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	p := newPayload(t, map[string]string{})
	other, err := render.NewPayload(map[string]string{"manifest.yaml": strings.Replace(dbManifest, "name: db", "name: other", 1)})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*render.Settings){
		"no registry":      func(s *render.Settings) { s.Registry = "" },
		"URL":              func(s *render.Settings) { s.Registry = "https://registry" },
		"no namespace":     func(s *render.Settings) { s.Namespace = "" },
		"another Solution": func(s *render.Settings) { s.Imported = []*render.Payload{other} },
	} {
		t.Run(name, func(t *testing.T) {
			s := settings()
			change(&s)
			if _, err := render.Environment(p, s); report.CodeOf(err) != report.Usage {
				t.Errorf("got %s: %v", report.CodeOf(err), err)
			}
		})
	}
}

func TestRequiredCRDs(t *testing.T) {
	p := newPayload(t, map[string]string{
		"manifest.yaml":                     strings.Replace(dbManifest, "1.0.0", `1.0.0, operator: {requiresCRDs: [{name: certificates.cert-manager.io, versions: [v1]}]}`, 1),
		"operator/deploy/crds/dbs_crd.yaml": crd,
	})
	required, err := render.RequiredCRDs(p)
	if err != nil {
		t.Fatal(err)
	}
	want := []schema.CRDRequirement{{Name: "certificates.cert-manager.io", Versions: []string{"v1"}}, {Name: "dbs.db.example", Versions: []string{"v1", "v2"}}}
	if diff := cmp.Diff(want, required); diff != "" {
		t.Error(diff)
	}
	var older unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(strings.Replace(crd, "name: v2, served: true", "name: v2, served: false", 1)), &older.Object); err != nil {
		t.Fatal(err)
	}
	missing := render.MissingCRDs(required, func(name string) *unstructured.Unstructured {
		if name == older.GetName() {
			return &older
		}
		return nil
	})
	want[1].Versions = []string{"v2"}
	if diff := cmp.Diff(want, missing); diff != "" {
		t.Error(diff)
	}
}

// TestClusterScopedKinds compares the table with the API types of Kubernetes.
func TestClusterScopedKinds(t *testing.T) {
	catalogue, err := schemas.Load()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for _, version := range catalogue.Versions() {
		release, err := catalogue.Release(version)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range release.Resources() {
			if !resource.Namespaced && !slices.Contains(want[resource.Group], resource.Kind) {
				want[resource.Group] = append(want[resource.Group], resource.Kind)
			}
		}
	}
	for _, kinds := range want {
		slices.Sort(kinds)
	}
	if diff := cmp.Diff(want, render.ClusterScoped()); diff != "" {
		t.Error(diff)
	}
}

// TestApplications: the list of kinds in a namespace is read as it was written, and a forged one gives access to no
// other kinds.
func TestApplications(t *testing.T) {
	p := newPayload(t, map[string]string{"operator/deploy/crds/dbs_crd.yaml": crd})
	objects, err := render.Environment(p, settings())
	if err != nil {
		t.Fatal(err)
	}
	document := find(t, objects, "ConfigMap", render.ApplicationsName("db"))
	definitions, err := render.Applications(document, "db")
	if err != nil || len(definitions) != 1 || definitions[0].GetName() != "dbs.db.example" {
		t.Fatalf("got %v, %v", names(definitions), err)
	}
	packed := func(text string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(b.Bytes())
	}
	with := func(definition string) string {
		return packed(`{"formatVersion": 1, "writtenBy": "1", "solution": "db", "version": "1.0.0", "definitions": [` + definition + `]}`)
	}
	definition := func(name, group, plural, scope string) string {
		return with(fmt.Sprintf(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": %q},
			"spec": {"group": %q, "names": {"kind": "X", "plural": %q}, "scope": %q}}`, name, group, plural, scope))
	}
	for name, data := range map[string]string{
		"nothing":              "",
		"not base64":           "%",
		"not compressed":       base64.StdEncoding.EncodeToString([]byte("{}")),
		"too large":            packed(strings.Repeat(" ", 17<<20)),
		"not JSON":             packed("{"),
		"another Solution":     packed(`{"formatVersion": 1, "writtenBy": "1", "solution": "x", "version": "1.0.0", "definitions": []}`),
		"no object":            with(`{}`),
		"no definition":        with(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}`),
		"a core kind":          definition("secrets.", "", "secrets", "Namespaced"),
		"a built-in group":     definition("deployments.apps", "apps", "deployments", "Namespaced"),
		"roles":                definition("roles.rbac.authorization.k8s.io", "rbac.authorization.k8s.io", "roles", "Namespaced"),
		"of the whole cluster": definition("dbs.db.example", "db.example", "dbs", "Cluster"),
		"under another name":   definition("x.db.example", "db.example", "dbs", "Namespaced"),
	} {
		t.Run(name, func(t *testing.T) {
			forged := document.DeepCopy()
			if err := unstructured.SetNestedField(forged.Object, data, "binaryData", "applications.json.gz"); err != nil {
				t.Fatal(err)
			}
			if got, err := render.Applications(forged, "db"); report.CodeOf(err) != report.Corrupt {
				t.Errorf("got %v, %v", names(got), err)
			}
		})
	}
}
