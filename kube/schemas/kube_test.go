package schemas_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/kube/schemas"
)

func load(tb testing.TB) *schemas.Catalogue {
	tb.Helper()
	catalogue, err := schemas.Load()
	if err != nil {
		tb.Fatal(err)
	}
	return catalogue
}

func release(tb testing.TB, version string) *schemas.Release {
	tb.Helper()
	r, err := load(tb).Release(version)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func object(tb testing.TB, text string) map[string]any {
	tb.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		tb.Fatal(err)
	}
	return m
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app.kubernetes.io/name: web}
  creationTimestamp: null
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  strategy: {rollingUpdate: {maxUnavailable: 25%, maxSurge: 1}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: app
        image: registry.example/web:1.0.0
        imagePullPolicy: IfNotPresent
        ports:
        - {containerPort: 80}
        - {containerPort: 80, protocol: UDP}
        env: [{name: A, value: "1"}]
        resources: {limits: {cpu: 1, memory: 64Mi}, requests: {cpu: 100m}}
        livenessProbe: {httpGet: {path: /, port: http}}
status: {conditions: null, replicas: 0}
`

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		name    string
		replace []string // of the deployment above
		want    []string
	}{
		{"valid", nil, nil},
		{"unknown field", []string{"imagePullPolicy: IfNotPresent", "imagepullPolicy: IfNotPresent"}, []string{
			"spec.template.spec.containers[0].imagepullPolicy: unknown field; did you mean imagePullPolicy?",
		}},
		{"far from any field", []string{"replicas: 2", "zzzz: 2"}, []string{"spec.zzzz: unknown field"}},
		{"misspelt", []string{"replicas: 2", "replica: 2"}, []string{"spec.replica: unknown field; did you mean replicas?"}},
		{"missing", []string{"selector: {matchLabels: {app: web}}", "minReadySeconds: 3"}, []string{"spec: selector is missing"}},
		{"null is missing", []string{"selector: {matchLabels: {app: web}}", "selector: null"}, []string{"spec: selector is missing"}},
		{"number for string", []string{`value: "1"`, "value: 1"}, []string{
			`spec.template.spec.containers[0].env[0].value: expected a string, got a number`,
		}},
		{"string for number", []string{"replicas: 2", `replicas: "2"`}, []string{"spec.replicas: expected an integer, got a string"}},
		{"fraction", []string{"replicas: 2", "replicas: 2.5"}, []string{"spec.replicas: expected an integer, got 2.5"}},
		{"too large", []string{"replicas: 2", "replicas: 4294967296"}, []string{"spec.replicas: 4294967296 does not fit in 32 bits"}},
		{"list for map", []string{"{app.kubernetes.io/name: web}", "[a]"}, []string{"metadata.labels: expected an object, got a list"}},
		{"map for list", []string{"[{name: A, value: \"1\"}]", "{A: x}"}, []string{
			"spec.template.spec.containers[0].env: expected a list, got an object",
		}},
		{"enumeration", []string{"imagePullPolicy: IfNotPresent", "imagePullPolicy: Sometimes"}, []string{
			`spec.template.spec.containers[0].imagePullPolicy: "Sometimes" is not one of Always, Never, IfNotPresent`,
		}},
		{"quantity", []string{"64Mi", "64MiB"}, []string{
			`spec.template.spec.containers[0].resources.limits.memory: "64MiB" is not a quantity: expected a number with a suffix such as m, Ki, Mi, Gi, k, M or G`,
		}},
		{"int or string", []string{"maxSurge: 1", "maxSurge: true"}, []string{
			"spec.strategy.rollingUpdate.maxSurge: expected an integer, got a boolean",
		}},
		{"same name twice", []string{"[{name: A, value: \"1\"}]", "[{name: A}, {name: B}, {name: A}]"}, []string{
			"spec.template.spec.containers[0].env[2]: has the same name as entry 0",
		}},
		{"same port twice", []string{"protocol: UDP", "protocol: TCP"}, []string{
			"spec.template.spec.containers[0].ports[1]: has the same containerPort and protocol as entry 0",
		}},
		{"label value", []string{"app.kubernetes.io/name: web", "app.kubernetes.io/name: \"-web\""}, []string{
			`metadata.labels[app.kubernetes.io/name]: "-web" is not a label value`,
		}},
		{"no name", []string{"  name: web\n", "", "creationTimestamp", "generation: 1 #"}, []string{"metadata: name is missing"}},
		{"date", []string{"creationTimestamp: null", "creationTimestamp: yesterday"}, []string{
			`metadata.creationTimestamp: "yesterday" is not a time of the form 2006-01-02T15:04:05Z`,
		}},
		{"removed API", []string{"apps/v1", "extensions/v1beta1"}, []string{
			"extensions/v1beta1 Deployment is not served by Kubernetes 1.34",
		}},
		{"not an object", []string{"kind: Deployment", ""}, []string{"apiVersion and kind are missing"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := strings.NewReplacer(test.replace...).Replace(deployment)
			if len(test.replace) > 0 && text == deployment {
				t.Fatal("nothing was replaced")
			}
			checkProblems(t, release(t, "1.34").Validate(object(t, text)), test.want)
		})
	}
}

func checkProblems(t *testing.T, got []schemas.Problem, want []string) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(p schemas.Problem, prefix string) bool { return strings.HasPrefix(p.String(), prefix) }) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestValidateAList(t *testing.T) {
	list := object(t, `{apiVersion: v1, kind: List, items: [
		{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: 1}},
		{apiVersion: v1, kind: List, items: []}, text]}`)
	checkProblems(t, release(t, "1.30").Validate(list), []string{
		`items[0].data.a: expected a string, got a number`,
		"items[1]: v1 List is not served by Kubernetes 1.30",
		"items[2]: expected an object, got a string",
	})
}

// Objects of encoding/json, YAML 1.2 decoders and unstructured objects have the same findings.
func TestValidateNumberTypes(t *testing.T) {
	for _, number := range []any{2, int32(2), int64(2), uint64(2), 2.0, json.Number("2")} {
		m := object(t, deployment)
		m["spec"].(map[string]any)["replicas"] = number
		checkProblems(t, release(t, "1.36").Validate(m), nil)
	}
}

func TestFieldsDependOnTheRelease(t *testing.T) {
	pod := object(t, `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a}], volumes: [
		{name: payload, image: {reference: "registry.example/payload:1"}}]}}`)
	checkProblems(t, release(t, "1.30").Validate(pod), []string{"spec.volumes[0].image: unknown field; known from Kubernetes 1.31"})
	checkProblems(t, release(t, "v1.36.3-eks-1").Validate(pod), nil)
}

func TestProblemsAreBounded(t *testing.T) {
	data := map[string]any{}
	for i := range 10000 {
		data[fmt.Sprint(i)] = i
	}
	deep := any("x")
	for range 10000 {
		deep = map[string]any{"properties": map[string]any{"a": deep}}
	}
	crd := object(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {
		group: g, scope: Namespaced, names: {kind: K, plural: p}, versions: [{name: v1, served: true, storage: true, schema: {}}]}}`)
	crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": deep}
	for name, m := range map[string]map[string]any{
		"many": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": data},
		"deep": crd,
	} {
		problems := release(t, "1.36").Validate(m)
		if got := len(problems); got == 0 || got > 100 {
			t.Errorf("%s: %d problems, want 1 to 100", name, got)
		}
		if again := release(t, "1.36").Validate(m); !slices.Equal(again, problems) {
			t.Errorf("%s: other problems the second time: %v", name, again)
		}
	}
}

func TestReleases(t *testing.T) {
	catalogue := load(t)
	want := []string{"1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36"}
	if got := catalogue.Versions(); !slices.Equal(got, want) {
		t.Errorf("Versions = %q, want %q", got, want)
	}
	for _, bad := range []string{"", "1", "1.29", "1.37", "2.30", "latest", "1.x"} {
		if _, err := catalogue.Release(bad); err == nil {
			t.Errorf("Release(%q) succeeded", bad)
		}
	}
	for _, good := range []string{"1.33", "v1.33.1", "1.33+", "v1.33.0-rc.1"} {
		if r, err := catalogue.Release(good); err != nil || r.Version() != "1.33" {
			t.Errorf("Release(%q) = %v, %v", good, r, err)
		}
	}
}

// Every definition that a release needs exists and can be parsed: an object of each kind is validated.
func TestEveryKindHasADescription(t *testing.T) {
	catalogue := load(t)
	for _, version := range catalogue.Versions() {
		r := release(t, version)
		resources := r.Resources()
		if len(resources) < 60 {
			t.Errorf("%s: only %d resources", version, len(resources))
		}
		for _, resource := range resources {
			problems := r.Validate(map[string]any{
				"apiVersion": resource.GroupVersion().String(), "kind": resource.Kind,
				"metadata": map[string]any{"name": "a"}, "zzz": 1,
			})
			unknown := func(p schemas.Problem) bool { return p.Path == "zzz" && p.Reason == schemas.UnknownField }
			if !slices.ContainsFunc(problems, unknown) {
				t.Errorf("%s %v: the unknown field is not found: %v", version, resource, problems)
			}
		}
	}
}

func TestScope(t *testing.T) {
	r := release(t, "1.36")
	for _, test := range []struct {
		group, resource   string
		namespaced, known bool
	}{
		{"", "pods", true, true},
		{"", "pods/exec", true, true},
		{"", "nodes/proxy", false, true},
		{"", "namespaces", false, true},
		{"rbac.authorization.k8s.io", "clusterroles", false, true},
		{"apiextensions.k8s.io", "customresourcedefinitions", false, true},
		{"apps", "deployments", true, true},
		{"apps", "pods", false, false},
		{"example.com", "widgets", false, false},
	} {
		if namespaced, known := r.Scope(test.group, test.resource); namespaced != test.namespaced || known != test.known {
			t.Errorf("Scope(%q, %q) = %v, %v", test.group, test.resource, namespaced, known)
		}
	}
	pods, _ := r.Resource(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	if !slices.Contains(pods.Subresources, "exec") || pods.Name != "pods" || !pods.Namespaced {
		t.Errorf("Pod = %+v", pods)
	}
}

func TestAvailability(t *testing.T) {
	for _, test := range []struct {
		version, group, apiVersion, kind string
		want                             schemas.Availability
		message                          string
	}{
		{"1.34", "apps", "v1", "Deployment", schemas.Served, ""},
		{"1.34", "extensions", "v1beta1", "Ingress", schemas.Removed, "extensions/v1beta1 Ingress is not served since Kubernetes 1.22; use networking.k8s.io/v1 Ingress"},
		{"1.34", "policy", "v1beta1", "PodSecurityPolicy", schemas.Removed, "policy/v1beta1 PodSecurityPolicy is not served since Kubernetes 1.25"},
		{"1.31", "flowcontrol.apiserver.k8s.io", "v1beta3", "FlowSchema", schemas.Deprecated, "flowcontrol.apiserver.k8s.io/v1beta3 FlowSchema is deprecated since Kubernetes 1.29 and goes with 1.32; use flowcontrol.apiserver.k8s.io/v1 FlowSchema"},
		{"1.32", "flowcontrol.apiserver.k8s.io", "v1beta3", "FlowSchema", schemas.Removed, "flowcontrol.apiserver.k8s.io/v1beta3 FlowSchema is not served since Kubernetes 1.32; use flowcontrol.apiserver.k8s.io/v1 FlowSchema"},
		{"1.30", "resource.k8s.io", "v1", "ResourceClaim", schemas.NotYet, "resource.k8s.io/v1 ResourceClaim is served from Kubernetes 1.34 on, not in 1.30"},
		{"1.34", "example.com", "v1", "Widget", schemas.NotCore, ""},
		{"1.34", "apiextensions.k8s.io", "v1beta1", "CustomResourceDefinition", schemas.Removed, "apiextensions.k8s.io/v1beta1 CustomResourceDefinition is not served since Kubernetes 1.22; use apiextensions.k8s.io/v1 CustomResourceDefinition"},
	} {
		got, message := release(t, test.version).Availability(schema.GroupVersionKind{Group: test.group, Version: test.apiVersion, Kind: test.kind})
		if got != test.want || message != test.message {
			t.Errorf("%s in %s: %s, %q", test.kind, test.version, got, message)
		}
	}
}

func ExampleRelease_Validate() {
	catalogue, err := schemas.Load()
	if err != nil {
		panic(err)
	}
	release, err := catalogue.Release("1.34")
	if err != nil {
		panic(err)
	}
	for _, problem := range release.Validate(map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"port": []any{}, "type": "Nodeport"},
	}) {
		fmt.Println(problem)
	}
	// Output:
	// spec.port: unknown field; did you mean ports?
	// spec.type: "Nodeport" is not one of ClusterIP, NodePort, LoadBalancer, ExternalName
}

func FuzzValidate(f *testing.F) {
	f.Add([]byte(deployment))
	f.Add([]byte(`{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod}]}`))
	r := release(f, "1.36")
	f.Fuzz(func(t *testing.T, data []byte) {
		var m map[string]any
		if yaml.Unmarshal(data, &m) != nil {
			return
		}
		first, second := r.Validate(m), r.Validate(m)
		if !slices.Equal(first, second) {
			t.Errorf("two runs differ: %v, %v", first, second)
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		load(b)
	}
}

func BenchmarkValidate1000Deployments(b *testing.B) {
	r := release(b, "1.34")
	objects := make([]map[string]any, 1000)
	for i := range objects {
		objects[i] = object(b, strings.Replace(deployment, "name: web", fmt.Sprintf("name: web-%d", i), 1))
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, m := range objects {
			if problems := r.Validate(m); len(problems) > 0 {
				b.Fatal(problems)
			}
		}
	}
}
