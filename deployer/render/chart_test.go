package render_test

import (
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// chartOf is a chart of these templates.
func chartOf(t *testing.T, templates map[string]string) string {
	t.Helper()
	files := map[string]string{
		"db/Chart.yaml":  "apiVersion: v2\nname: db\nversion: 1.0.0\n",
		"db/values.yaml": "size: 1\nmode: {name: single, fast: true}\nimage: quay.io/acme/identity:2\n",
	}
	for name, text := range templates {
		files["db/"+name] = text
	}
	var entries []entry
	for _, name := range slices.Sorted(maps.Keys(files)) {
		entries = append(entries, entry{name: name, data: files[name]})
	}
	return string(packed(t, entries...))
}

var database = map[string]string{
	"templates/db.yaml": `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}
spec:
  replicas: {{ .Values.size }}
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - name: db
        image: {{ .Values.image }}
        args: ["--mode={{ .Values.mode.name }}", "--fast={{ .Values.mode.fast }}", "--sidecar=quay.io/acme/compute:1.0.0", "quay.io/acme/unknown:1"]
        env: [{name: SIDECAR, value: quay.io/acme/compute:1.0.0}]
---
apiVersion: v1
kind: Secret
metadata: {name: password, annotations: {helm.sh/resource-policy: " Keep"}}
stringData: {password: {{ randAlphaNum 20 }}}
`,
	"templates/hook.yaml": `apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {helm.sh/hook: "post-install,post-upgrade", helm.sh/hook-weight: "-5", helm.sh/hook-delete-policy: hook-succeeded}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: "quay.io/acme/identity:2"}]}}}
`,
	"crds/crd.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: dbs.acme.example}
spec: {group: acme.example, scope: Namespaced, names: {kind: Db, plural: dbs}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}
`,
}

func chartPayload(t *testing.T, templates map[string]string) *render.Payload {
	t.Helper()
	manifest := strings.Replace(cloudManifest, "chart: charts/chart.tgz}", "chart: charts/chart.tgz, values: components/values.yaml, release: main}", 1)
	return cloud(t, map[string]string{"manifest.yaml": manifest, "charts/chart.tgz": chartOf(t, templates), "components/values.yaml": "size: 3\nmode: {name: replicated}\n"})
}

// TestActivationLeavesThePayload: a payload is never changed, and later renderings read the CRDs of its charts from it.
func TestActivationLeavesThePayload(t *testing.T) {
	p := chartPayload(t, database)
	for _, o := range activation(t, p, settings()) {
		if o.GetKind() == "CustomResourceDefinition" && len(o.GetLabels()) == 0 {
			t.Errorf("%s has no labels", o.GetName())
		}
	}
	definitions, err := render.Definitions(p)
	if err != nil || len(definitions) != 1 || len(definitions[0].GetLabels()) > 0 {
		t.Errorf("%v, %v", definitions, err)
	}
}

func TestChart(t *testing.T) {
	p := chartPayload(t, database)
	first, err := render.Chart(t.Context(), p, "chart", settings(), render.ChartSettings{Values: map[string]any{"mode": map[string]any{"name": "mine"}}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"StatefulSet/prod/main", "Secret/prod/password"}, places(first.Objects)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if len(first.Definitions) != 1 || first.Definitions[0].GetName() != "dbs.acme.example" {
		t.Errorf("definitions %v", places(first.Definitions))
	}
	if staying := render.Staying(first.Objects); len(staying) != 1 || staying[0].Name != "password" {
		t.Errorf("staying: %v", staying)
	}
	set := first.Objects[0]
	if n, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas"); n != 3 {
		t.Errorf("%d replicas, not those of the archive", n)
	}
	containers, _, _ := unstructured.NestedSlice(set.Object, "spec", "template", "spec", "containers")
	const identity, compute = "registry.solutionctl.invalid/cloud-1.0.0/identity:2@sha256:", "registry.solutionctl.invalid/cloud-1.0.0/compute:1.0.0@sha256:"
	container := containers[0].(map[string]any)
	if image := container["image"].(string); !strings.HasPrefix(image, identity) {
		t.Errorf("the image is %s", image)
	}
	args := container["args"].([]any)
	if args[0] != "--mode=mine" || args[1] != "--fast=true" || !strings.HasPrefix(args[2].(string), "--sidecar="+compute) || args[3] != "quay.io/acme/unknown:1" {
		t.Errorf("arguments %q", args)
	}
	if value := container["env"].([]any)[0].(map[string]any)["value"].(string); !strings.HasPrefix(value, compute) {
		t.Errorf("the variable is %s", value)
	}
	if len(first.Tasks) != 1 || first.Tasks[0].Weight != -5 || first.Tasks[0].Object.GetNamespace() != "prod" {
		t.Errorf("tasks %+v", first.Tasks)
	}
	second, err := render.Chart(t.Context(), p, "chart", settings(), render.ChartSettings{Values: map[string]any{"mode": map[string]any{"name": "mine"}}, Generated: first.Generated})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Objects, second.Objects); diff != "" {
		t.Errorf("rendered again: %s", diff)
	}
}

// TestChartOfManyLines renders documents far below each other: the lines above them take no memory.
func TestChartOfManyLines(t *testing.T) {
	p := chartPayload(t, map[string]string{"templates/a.yaml": `{{ range until 500 }}---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a{{ . }}}}
{{ repeat 2000 "\n" }}{{ end }}`})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := render.Chart(t.Context(), p, "chart", settings(), render.ChartSettings{}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 150 {
		t.Errorf("%d MiB were allocated", allocated)
	}
}

// TestImagesByShortNames: an operator gets images of the archive by their place in it, also where the chart has a short name.
func TestImagesByShortNames(t *testing.T) {
	p := chartPayload(t, map[string]string{"templates/a.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: operator}
spec:
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - name: operator
        image: quay.io/acme/compute:1.0.0
        args: ["--cache-image=redis:7", "--sidecar-image", "redis:7", "--listen=redis:7"]
        env: [{name: CACHE_IMAGE, value: "library/redis:7"}, {name: HOST, value: "redis:7"}]
---
apiVersion: acme.example/v1
kind: Db
metadata: {name: db, annotations: {image: "redis:7"}}
spec: {image: "redis:7", cache: {image: {repository: redis, tag: "7"}}, images: ["redis:7", "redis:8"]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: db}
data: {image: "redis:7"}
`})
	for i := range p.Images {
		if p.Images[i].Ref.Name == "identity" {
			p.Images[i].Origin = "docker.io/library/redis:7"
		}
	}
	rendered, err := render.Chart(t.Context(), p, "chart", settings(), render.ChartSettings{})
	if err != nil {
		t.Fatal(err)
	}
	if uses := rendered.InParts; len(uses) != 1 || uses[0].Path != "spec.cache.image" || uses[0].Image != "redis:7" {
		t.Errorf("in parts: %v", uses)
	}
	redis := regexp.MustCompile(`registry\.solutionctl\.invalid/cloud-1\.0\.0/identity:2@sha256:\w+`)
	want := []string{
		`[--cache-image=REDIS --sidecar-image REDIS --listen=redis:7]`, `[map[name:CACHE_IMAGE value:REDIS] map[name:HOST value:redis:7]]`,
		`map[cache:map[image:map[repository:redis tag:7]] image:REDIS images:[REDIS redis:8]]`, `map[image:redis:7]`,
	}
	var got []string
	for _, o := range rendered.Objects {
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		values := []any{o.Object["spec"]}
		if len(containers) > 0 {
			container := containers[0].(map[string]any)
			values = []any{container["args"], container["env"]}
		} else if o.GetKind() == "ConfigMap" {
			values = []any{o.Object["data"]}
		}
		for _, value := range values {
			got = append(got, redis.ReplaceAllString(fmt.Sprint(value), "REDIS"))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestChartRefused(t *testing.T) {
	for name, test := range map[string]struct {
		template, want string
		code           report.Code
	}{
		"elsewhere": {"\n\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: kube-system}\n", "charts/chart.tgz/db/templates/a.yaml:5", report.Refused},
		"cluster":   {"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\n", "lives in an environment", report.Refused},
		"values":    {"{{ required \"a size is needed\" .Values.nothing }}", "a size is needed", report.Invalid},
		"missing image": {
			"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: \"{{ \"{{ repository }}\" }}/other:1\"}]}\n", "image other:1 is not in the archive", report.Invalid,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := chartPayload(t, map[string]string{"templates/a.yaml": test.template})
			_, err := render.Chart(t.Context(), p, "chart", settings(), render.ChartSettings{})
			if report.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v", report.CodeOf(err), err)
			}
		})
	}
	p := chartPayload(t, database)
	for _, name := range []string{"web", "nothing"} {
		if _, err := render.Chart(t.Context(), p, name, settings(), render.ChartSettings{}); report.CodeOf(err) != report.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRequiredValueHint checks that the option in the hint about a missing value can be pasted into a shell, also if a key has a dot.
func TestRequiredValueHint(t *testing.T) {
	c := &schema.Component{Name: "web", Site: &schema.SiteRules{Required: []string{`nodeSelector.kubernetes\.io/os`}}}
	err := render.CheckSite(c, nil)
	if want := `--set 'web.nodeSelector.kubernetes\.io/os=VALUE'`; !strings.Contains(strings.Join(report.Hints(err), "\n"), want) {
		t.Errorf("%v, hints %q, want %s", err, report.Hints(err), want)
	}
	if err = render.CheckSite(c, chart.SetValue(nil, `nodeSelector.kubernetes\.io/os`, "linux")); err != nil {
		t.Error(err)
	}
}

// TestValuesOfOneDocument checks that a file with values is refused if a part of it would be lost.
func TestValuesOfOneDocument(t *testing.T) {
	for text, want := range map[string]string{"a: 1\n---\nb: 2\n": "2 documents", "a: 1\nb: 2\na: 3\n": "a", "---\na: 1\n": ""} {
		p := newPayload(t, map[string]string{
			"manifest.yaml":  strings.Replace(dbManifest, "1.0.0}", "1.0.0, components: [{name: web, chart: charts/web.tgz, values: charts/web.yaml}]}", 1),
			"charts/web.tgz": chartOf(t, nil), "charts/web.yaml": text,
		})
		_, err := p.Values(&p.Solution.Spec.Components[0])
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
