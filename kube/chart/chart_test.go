package chart_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/schema/report"
)

// pack makes a packaged chart of files whose names begin with the chart's directory.
func pack(files map[string]string) []byte {
	var entries []tar.Header
	for _, name := range slices.Sorted(maps.Keys(files)) {
		entries = append(entries, tar.Header{Name: name, Size: int64(len(files[name]))})
	}
	return packEntries(files, entries...)
}

func packEntries(files map[string]string, entries ...tar.Header) []byte {
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	archive := tar.NewWriter(zip)
	for _, header := range entries {
		header.Mode = 0o644
		if err := archive.WriteHeader(&header); err != nil {
			panic(err)
		}
		if _, err := archive.Write([]byte(files[header.Name])[:header.Size]); err != nil {
			panic(err)
		}
	}
	if archive.Close() != nil || zip.Close() != nil {
		panic("writing to memory failed")
	}
	return buf.Bytes()
}

func web() map[string]string {
	return map[string]string{
		"web/Chart.yaml":             "apiVersion: v2\nname: web\nversion: 1.2.0\nappVersion: \"3\"\n",
		"web/values.yaml":            "image: {repository: registry.example/web, tag: \"1\"}\nreplicas: 1\n",
		"web/templates/_helpers.tpl": `{{- define "web.name" -}}{{ .Release.Name }}-web{{- end }}`,
		"web/templates/deployment.yaml": `# comment
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "web.name" . }}
  namespace: {{ .Release.Namespace }}
spec:
  replicas: {{ .Values.replicas }}
  template: {spec: {containers: [{name: web, image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"}]}}
---
# nothing in this one
---
apiVersion: v1
kind: Service
metadata: {name: web, annotations: {helm.sh/resource-policy: keep}}
`,
		"web/templates/hook.yaml": `apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {"helm.sh/hook": "pre-upgrade, pre-install", "helm.sh/hook-weight": "-5"}
`,
		"web/templates/NOTES.txt": "Hello {{ .Release.Name }}",
		"web/crds/widget.yaml":    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n",
	}
}

func load(tb testing.TB, data []byte) *chart.Chart {
	tb.Helper()
	c, err := chart.Load(bytes.NewReader(data))
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func render(tb testing.TB, files map[string]string, o chart.Options) *chart.Rendering {
	tb.Helper()
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	r, err := load(tb, pack(files)).Render(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// summary is one line for each manifest.
func summary(r *chart.Rendering) []string {
	var lines []string
	for _, m := range r.Manifests {
		metadata, _ := m.Object["metadata"].(map[string]any)
		lines = append(lines, fmt.Sprintf("%s:%d %v %v", m.Template, m.Line, m.Object["kind"], metadata["name"]))
	}
	return lines
}

func TestRender(t *testing.T) {
	r := render(t, web(), chart.Options{Release: "a", Namespace: "ns", Values: map[string]any{"replicas": 3}})
	want := []string{
		"web/crds/widget.yaml:1 CustomResourceDefinition widgets.example.com",
		"web/templates/deployment.yaml:1 Deployment a-web",
		"web/templates/deployment.yaml:13 Service web",
		"web/templates/hook.yaml:1 Job migrate",
	}
	if got := summary(r); !slices.Equal(got, want) {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
	hook := &chart.Hook{Events: []string{"pre-install", "pre-upgrade"}, Weight: -5, DeletePolicies: []string{"before-hook-creation"}}
	if m := r.Manifests; !m[0].CRD || m[1].CRD || m[1].Hook != nil || !reflect.DeepEqual(m[3].Hook, hook) {
		t.Errorf("marks are wrong: %+v", m)
	}
	if spec := r.Manifests[1].Object["spec"].(map[string]any); spec["replicas"] != 3.0 || r.Notes != "Hello a" || len(r.Random) > 0 {
		t.Errorf("spec %v, notes %q, random %q", spec, r.Notes, r.Random)
	}
}

func TestLoadReadsTheMetadata(t *testing.T) {
	c := load(t, pack(web()))
	if c.Name != "web" || c.Version != "1.2.0" || c.AppVersion != "3" || len(c.Digest) != 64 {
		t.Errorf("got %+v", c)
	}
}

// A chart may hold subcharts as directories and as archives; aliases, conditions and values follow Helm.
func TestSubcharts(t *testing.T) {
	db := map[string]string{
		"db/Chart.yaml":        "apiVersion: v2\nname: db\nversion: 2.0.1\n",
		"db/values.yaml":       "size: 1\n",
		"db/templates/db.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Chart.Name }}-{{ .Values.size }}-{{ .Values.global.site }}\"}\n",
	}
	files := web()
	files["web/charts/db-2.0.1.tgz"] = string(pack(db))
	files["web/Chart.yaml"] += `dependencies:
- {name: db, version: ^2.0.0, repository: "https://charts.example", condition: db.enabled}
- {name: db, alias: replica, version: ~2, repository: "https://charts.example", condition: replica.enabled}
`
	files["web/values.yaml"] += "global: {site: x}\ndb: {size: 7}\nreplica: {enabled: false}\n"
	names := func(o chart.Options) []string {
		var got []string
		for _, line := range summary(render(t, files, o)) {
			if strings.Contains(line, "ConfigMap") {
				got = append(got, line)
			}
		}
		return got
	}
	for _, test := range []struct {
		values map[string]any
		want   []string
	}{
		{nil, []string{"web/charts/db/templates/db.yaml:1 ConfigMap db-7-x"}},
		{map[string]any{"db": map[string]any{"enabled": false}}, nil},
		{map[string]any{"replica": map[string]any{"enabled": true, "size": 2}}, []string{
			"web/charts/db/templates/db.yaml:1 ConfigMap db-7-x", "web/charts/replica/templates/db.yaml:1 ConfigMap replica-2-x",
		}},
	} {
		if got := names(chart.Options{Values: test.values}); !slices.Equal(got, test.want) {
			t.Errorf("%v: got %q, want %q", test.values, got, test.want)
		}
	}
}

func TestASubchartThatIsMissingIsNotDownloaded(t *testing.T) {
	files := web()
	files["web/Chart.yaml"] += "dependencies: [{name: db, version: 2.0.0, repository: \"https://charts.example\"}]\n"
	missing := `subchart db 2.0.0 of "https://charts.example" is not in the archive`
	if _, err := chart.Load(bytes.NewReader(pack(files))); err == nil || !strings.HasSuffix(err.Error(), missing) {
		t.Errorf("err = %v", err)
	}
	files["web/charts/db/Chart.yaml"] = "apiVersion: v2\nname: db\nversion: 1.0.0\n"
	if _, err := chart.Load(bytes.NewReader(pack(files))); err == nil || !strings.HasSuffix(err.Error(), missing+", which has db 1.0.0 instead") {
		t.Errorf("err = %v", err)
	}
}

func TestRenderIsReproducible(t *testing.T) {
	files := web()
	files["web/templates/secret.yaml"] = `apiVersion: v1
kind: Secret
metadata: {name: "{{ uuidv4 }}"}
stringData:
  a: {{ randAlphaNum 20 }}
  b: {{ randAlphaNum 20 }}
  c: {{ now | date "2006" | quote }}
  d: {{ htpasswd "u" "p" }}
  e: "{{ randInt 3 9 }}"
{{- $ca := genCA "ca" 365 }}
{{- $cert := genSignedCert "a" nil (list "b") 30 $ca }}
  f: {{ $cert.Cert | b64enc }}
  g: {{ index (lookup "v1" "Secret" "" "x") "data" | default "none" }}
  h: {{ getHostByName "example.com" | quote }}
`
	standIns := chart.Options{StandIns: true}
	first, second := render(t, files, standIns), render(t, files, standIns)
	if !reflect.DeepEqual(first, second) {
		t.Error("two renderings differ")
	}
	want := []string{"genCA", "genSignedCert", "htpasswd", "now", "randAlphaNum", "randInt", "uuidv4"}
	if !slices.Equal(first.Random, want) {
		t.Errorf("Random = %q, want %q", first.Random, want)
	}
	data := first.Manifests[4].Object["stringData"].(map[string]any)
	if data["a"] == data["b"] || len(data["a"].(string)) != 20 || data["g"] != "none" || data["h"] != "" {
		t.Errorf("data = %v", data)
	}
	if first.Generated != nil {
		t.Error("stand-ins are remembered as if they were random")
	}
}

func TestFunctionsAreHelms(t *testing.T) {
	for template, want := range map[string]string{
		"{{ until 3 }}": "[0 1 2]", "{{ until -2 }}": "[0 -1]", "{{ untilStep 3 9 3 }}": "[3 6]", "{{ untilStep 3 0 1 }}": "[]",
		"{{ seq 3 }}": "1 2 3", "{{ seq 3 1 }}": "3 2 1", "{{ seq 0 2 4 }}": "0 2 4", "{{ repeat 3 \"ab\" }}": "ababab",
		"{{ indent 2 \"a\\nb\" }}": "  a\n  b", "{{ nindent 1 \"a\" }}": "\n a", "{{ env \"HOME\" }}": "error",
		"{{ until 99999999 }}": "error", "{{ repeat 99999999 \"a\" }}": "error", "{{ randAlpha 99999999 }}": "error",
		"{{ indent 99999999 \"a\" }}": "error", "{{ seq 99999999 }}": "error", "{{ include \"loop\" . }}": "error",
	} {
		files := web()
		files["web/templates/loop.tpl"] = `{{ define "loop" }}{{ include "loop" . }}{{ end }}`
		files["web/templates/NOTES.txt"] = template
		c := load(t, pack(files))
		r, err := c.Render(t.Context(), chart.Options{StandIns: true})
		got := "error"
		if err == nil {
			got = r.Notes
		}
		if got != want {
			t.Errorf("%s = %q (%v), want %q", template, got, err, want)
		}
	}
}

func TestRenderErrors(t *testing.T) {
	for _, test := range []struct {
		name, file, content, want string
		options                   chart.Options
	}{
		{"template", "web/templates/a.yaml", "{{ .Values.x.y }}", "nil pointer evaluating", chart.Options{}},
		{"syntax", "web/templates/a.yaml", "{{ if }}", "missing value for if", chart.Options{}},
		{"fail", "web/templates/a.yaml", `{{ fail "no" }}`, "no", chart.Options{}},
		{"YAML", "web/templates/a.yaml", "---\na: [\n", "web/templates/a.yaml, document at line 2: ", chart.Options{}},
		{"not an object", "web/templates/a.yaml", "- a\n", "expected an object", chart.Options{}},
		{"values schema", "web/values.schema.json", `{"properties": {"replicas": {"maximum": 0}}}`, "web: replicas: is more than 0", chart.Options{}},
		{"a value that may be secret", "web/values.schema.json", `{"properties": {"image": {"properties": {"tag": {"pattern": "^v", "type": "string"}}, "required": ["digest"]}}}`, "web: image.digest: is required; image.tag: does not match pattern ^v", chart.Options{}},
		{"a schema elsewhere", "web/values.schema.json", `{"$ref": "https://example.com/a.json"}`, "is not in the chart", chart.Options{}},
		{"a schema on this host", "web/values.schema.json", `{"$ref": "file:///etc/passwd"}`, "is not in the chart", chart.Options{}},
		{"Kubernetes", "web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.2.0\nkubeVersion: '>=1.36'\n", "wants Kubernetes >=1.36, not v1.30", chart.Options{KubeVersion: "v1.30"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := web()
			files[test.file] = test.content
			options := test.options
			options.StandIns = true
			_, err := load(t, pack(files)).Render(t.Context(), options)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("err = %v, want %q", err, test.want)
			}
		})
	}
}

func TestCapabilities(t *testing.T) {
	files := web()
	files["web/templates/NOTES.txt"] = `{{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.APIVersions.Has "example.com/v1" }}`
	r := render(t, files, chart.Options{KubeVersion: "1.33.2-eks-1", APIVersions: []string{"example.com/v1"}})
	if r.Notes != "33 true" {
		t.Errorf("got %q", r.Notes)
	}
}

// TestAlwaysServed renders as prometheus-adapter and metrics-server do, without a cluster.
func TestAlwaysServed(t *testing.T) {
	const notes = `{{ range list "apiregistration.k8s.io/v1" "apiregistration.k8s.io/v1/APIService" "apps/v1" }}{{ $.Capabilities.APIVersions.Has . }} {{ end }}`
	files := web()
	files["web/templates/NOTES.txt"] = notes
	if r := render(t, files, chart.Options{}); r.Notes != "true true true " {
		t.Errorf("without a cluster: got %q", r.Notes)
	}
	if r := render(t, files, chart.Options{APIVersions: []string{"apps/v1"}}); r.Notes != "false false true " {
		t.Errorf("with the versions of a cluster: got %q", r.Notes)
	}
}

// TestConditional renders what charts have only where a cluster serves an API, of Kubernetes, of an operator or of a distribution.
func TestConditional(t *testing.T) {
	for api, conditional := range map[string]bool{
		"policy/v1": false, "autoscaling/v2": false, "networking.k8s.io/v1": false, "apiregistration.k8s.io/v1": false,
		"autoscaling/v2/HorizontalPodAutoscaler": true, "networking.k8s.io/v1/Ingress": true, // the defaults of Helm have no kinds
		"monitoring.coreos.com/v1": true, "monitoring.coreos.com/v1/ServiceMonitor": true, "cert-manager.io/v1": true,
		"route.openshift.io/v1/Route": true, "gateway.networking.k8s.io/v1": true, "acme.example/v1alpha1/Thing": true,
	} {
		t.Run(api, func(t *testing.T) {
			files := web()
			files["web/templates/more.yaml"] = `{{ if .Capabilities.APIVersions.Has "` + api + `" }}` + "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n{{ end }}"
			c, err := chart.Load(bytes.NewReader(pack(files)))
			if err != nil {
				t.Fatal(err)
			}
			o := chart.Options{StandIns: true}
			plain, err := c.Render(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			objects, apis, err := c.Conditional(t.Context(), o, plain)
			if err != nil || len(objects) > 1 || (len(objects) == 1) != conditional || slices.Contains(apis, api) != conditional {
				t.Errorf("got %d objects with %q, %v", len(objects), apis, err)
			}
		})
	}
}

func TestHostileArchives(t *testing.T) {
	zeros := strings.Repeat("0", 6<<20)
	nested := web()
	for range 12 {
		nested = map[string]string{"web/Chart.yaml": web()["web/Chart.yaml"], "web/charts/web.tgz": string(pack(nested))}
	}
	bombs := web()
	for i := range 20 {
		inner := web()
		inner["web/files/a"] = zeros[:4<<20]
		bombs[fmt.Sprintf("web/charts/a%d.tgz", i)] = string(pack(inner))
	}
	headers := web()
	directory := tar.Header{Name: "web/", Typeflag: tar.TypeDir, PAXRecords: map[string]string{"EXAMPLE.a": zeros[:1<<19]}}
	inner := packEntries(nil, slices.Repeat([]tar.Header{directory}, 60)...)
	for i := range 5 {
		headers[fmt.Sprintf("web/charts/a%d.tgz", i)] = string(inner)
	}
	many := web()
	for i := range 11000 {
		many[fmt.Sprintf("web/files/%d", i)] = ""
	}
	large := web()
	large["web/files/a"] = zeros
	versions := map[string]string{"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n"}
	for i := range 500 {
		versions[fmt.Sprintf("web/charts/s%03d/Chart.yaml", i)] = fmt.Sprintf("apiVersion: v2\nname: s\nversion: 1.0.%d\n", i)
		versions["web/Chart.yaml"] += fmt.Sprintf("- {name: s, version: '>=1.0.499, <2.0.%d', alias: a%[1]d}\n", i)
	}
	chartYAML := map[string]string{"web/Chart.yaml": web()["web/Chart.yaml"]}
	entry := func(header tar.Header) []byte {
		return packEntries(chartYAML, tar.Header{Name: "web/Chart.yaml", Size: int64(len(chartYAML["web/Chart.yaml"]))}, header)
	}
	for _, test := range []struct {
		name, want string
		data       []byte
	}{
		{"not gzip", "not a packaged chart", []byte("hello")},
		{"empty", "not a packaged chart", nil},
		{"not tar", "unexpected EOF", gzipped("hello")},
		{"no Chart.yaml", "there is no Chart.yaml", pack(map[string]string{"web/a": ""})},
		{"absolute", "has an absolute name", entry(tar.Header{Name: "/etc/passwd"})},
		{"parent", "leads out of the chart", entry(tar.Header{Name: "web/../../etc/passwd"})},
		{"parent on Windows", "leads out of the chart", entry(tar.Header{Name: `web\..\..\a`})},
		{"drive", "not portable", entry(tar.Header{Name: "web/c:/a"})},
		{"symbolic link", "is a link", entry(tar.Header{Name: "web/a", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink})},
		{"hard link", "is a link", entry(tar.Header{Name: "web/a", Linkname: "web/Chart.yaml", Typeflag: tar.TypeLink})},
		{"device", "is not a file", entry(tar.Header{Name: "web/a", Typeflag: tar.TypeChar})},
		{"twice", "in the archive twice", entry(tar.Header{Name: "web/./Chart.yaml"})},
		{"outside of the directory", "is not in the chart's directory", entry(tar.Header{Name: "Chart.yaml"})},
		{"large file", "larger than 5 MiB", pack(large)},
		{"many files", "10000 files", pack(many)},
		{"many versions", "more than 200000 versions of subcharts", pack(versions)},
		{"bombs in subcharts", "more than 64 MiB", pack(bombs)},
		{"headers in subcharts", "more than 64 MiB", pack(headers)},
		{"deep subcharts", "nested more than 8 deep", pack(nested)},
		{"library", "is a library", pack(map[string]string{"web/Chart.yaml": web()["web/Chart.yaml"] + "type: library\n"})},
		{"name", `"../a" is not a name`, pack(map[string]string{"web/Chart.yaml": "apiVersion: v2\nname: ../a\nversion: 1.0.0\n"})},
		{"truncated", "unexpected EOF", pack(web())[:200]},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := chart.Load(bytes.NewReader(test.data))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("chart %v, err = %v, want %q", c, err, test.want)
			}
		})
	}
}

func gzipped(text string) []byte {
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	if _, err := io.WriteString(zip, text); err != nil || zip.Close() != nil {
		panic("writing to memory failed")
	}
	return buf.Bytes()
}

// A gzip stream of empty entries is short and never ends; its unpacked size is bounded all the same.
func TestEndlessHeaders(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		zip := gzip.NewWriter(w)
		archive := tar.NewWriter(zip)
		for archive.WriteHeader(&tar.Header{Name: "web/", Typeflag: tar.TypeDir}) == nil {
		}
	}()
	if _, err := chart.Load(r); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("err = %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func ExampleChart_Render() {
	c, err := chart.Load(bytes.NewReader(pack(web())))
	if err != nil {
		panic(err)
	}
	rendering, err := c.Render(context.Background(), chart.Options{Release: "shop", Namespace: "prod", StandIns: true})
	if err != nil {
		panic(err)
	}
	for _, m := range rendering.Manifests {
		fmt.Printf("%s:%d %s\n", m.Template, m.Line, m.Object["kind"])
	}
	// Output:
	// web/crds/widget.yaml:1 CustomResourceDefinition
	// web/templates/deployment.yaml:1 Deployment
	// web/templates/deployment.yaml:13 Service
	// web/templates/hook.yaml:1 Job
}

func FuzzLoad(f *testing.F) {
	f.Add(pack(web()))
	packed := web()
	packed["web/charts/web.tgz"] = string(pack(web()))
	f.Add(pack(packed))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := chart.Load(bytes.NewReader(data))
		if err == nil && c.Name == "" {
			t.Error("a chart without a name was accepted")
		}
	})
}

// FuzzTar fuzzes the content of the compression, which mutations of the packed form hardly reach.
// FuzzTar: a refusal has a code, and the digest of a chart does not depend on the order of its files in the archive.
func FuzzTar(f *testing.F) {
	f.Add("web/Chart.yaml", web()["web/Chart.yaml"], "web/templates/a.yaml", "a: {{ .Values.b }}")
	f.Add(`web\Chart.yaml`, "name: web", "web/../a", "---\n")
	f.Add("web/Chart.yaml", web()["web/Chart.yaml"]+"dependencies: [null]", "web/charts/a/Chart.yaml", "name: a")
	f.Fuzz(func(t *testing.T, name, content, other, template string) {
		load := func(entries ...[2]string) (*chart.Chart, error) {
			var buf bytes.Buffer
			zip := gzip.NewWriter(&buf)
			archive := tar.NewWriter(zip)
			for _, entry := range entries {
				if archive.WriteHeader(&tar.Header{Name: entry[0], Size: int64(len(entry[1])), Mode: 0o644}) != nil {
					t.Skip("there is no such tar")
				}
				if _, err := archive.Write([]byte(entry[1])); err != nil {
					t.Skip("there is no such tar")
				}
			}
			if err := errors.Join(archive.Close(), zip.Close()); err != nil {
				t.Fatal(err)
			}
			return chart.Load(&buf)
		}
		c, err := load([2]string{name, content}, [2]string{other, template})
		if err != nil {
			if report.CodeOf(err) == report.Failure {
				t.Errorf("no code: %v", err)
			}
			return
		}
		again, err := load([2]string{other, template}, [2]string{name, content})
		if c.Name == "" || err != nil || again.Name != c.Name || again.Digest != c.Digest {
			t.Errorf("got %+v, in the other order %+v, %v", c, again, err)
		}
	})
}
