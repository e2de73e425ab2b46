// Package archive holds no code: it tests the manifests beside it, which go into the archive as they are.
package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/example-solution/api/v1alpha1"
	"github.com/solutionctl/example-solution/api/v1beta1"
)

const crds = "operator/deploy/crds"

// TestCRDFile holds the file to what MetalK8s can apply: one document, which it renders through Jinja first.
func TestCRDFile(t *testing.T) {
	files, err := filepath.Glob(crds + "/*_crd.yaml")
	if err != nil || len(files) != 1 {
		t.Fatalf("got %v, %v; want one file", files, err)
	}
	data := read(t, files[0])
	for _, delimiter := range []string{"{{", "{%", "{#"} {
		if bytes.Contains(data, []byte(delimiter)) {
			t.Errorf("%s contains %s", files[0], delimiter)
		}
	}
	objects := documents(t, data)
	if len(objects) != 1 || objects[0].GetName() != "websites.example.solutionctl.io" {
		t.Errorf("got %d documents, the first %s", len(objects), objects[0].GetName())
	}
}

// TestSchema offers Websites to the schema of the resource definition, as the API server does.
func TestSchema(t *testing.T) {
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct{ OpenAPIV3Schema spec.Schema }
			}
		}
	}
	unmarshal(t, read(t, crds+"/websites_crd.yaml"), &definition)
	schema := &definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	valid := func(document []byte) error {
		var v any
		unmarshal(t, document, &v)
		return validate.NewSchemaValidator(schema, nil, "", strfmt.Default).Validate(v).AsError()
	}

	if err := valid(read(t, crds+"/websites_cr.yaml")); err != nil {
		t.Errorf("the sample: %v", err)
	}
	tests := map[string]struct{ doc, want string }{
		"least":                 {"spec: {title: a}", ""},
		"pre-release":           {"spec: {title: a, version: 1.2.3-rc.1}", ""},
		"stopped":               {"spec: {title: a, replicas: 0}", ""},
		"no spec":               {"metadata: {name: a}", "spec"},
		"no title":              {"spec: {replicas: 1}", "spec.title"},
		"empty title":           {"spec: {title: ''}", "spec.title"},
		"long title":            {"spec: {title: " + strings.Repeat("a", 81) + "}", "spec.title"},
		"long message":          {"spec: {title: a, message: " + strings.Repeat("a", 1001) + "}", "spec.message"},
		"unknown theme":         {"spec: {title: a, theme: Blue}", "spec.theme"},
		"fewer than none":       {"spec: {title: a, replicas: -1}", "spec.replicas"},
		"too many":              {"spec: {title: a, replicas: 101}", "spec.replicas"},
		"version with a v":      {"spec: {title: a, version: v1.0.0}", "spec.version"},
		"version with metadata": {"spec: {title: a, version: 1.0.0+a}", "spec.version"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := valid([]byte(tt.doc))
			if tt.want == "" && err != nil {
				t.Errorf("got %v", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want something about %s", err, tt.want)
			}
		})
	}
}

// TestSamples decodes strictly: no field of a sample is unknown to the program.
func TestSamples(t *testing.T) {
	for _, sample := range []struct {
		file, version, kind string
		object              any
	}{
		{crds + "/websites_cr.yaml", "v1alpha1", "Website", &v1alpha1.Website{}},
		{"../releases/1.1.0/archive/" + crds + "/websites_cr.yaml", "v1beta1", "Website", &v1beta1.Website{}},
		{"../releases/2.0.0/archive/" + crds + "/websites_cr.yaml", "v1beta1", "Website", &v1beta1.Website{}},
		{"../releases/2.0.0/archive/" + crds + "/banners_cr.yaml", "v1beta1", "Banner", &v1beta1.Banner{}},
	} {
		data := read(t, sample.file)
		if err := yaml.UnmarshalStrict(data, sample.object); err != nil {
			t.Errorf("%s: %v", sample.file, err)
		}
		want := "apiVersion: example.solutionctl.io/" + sample.version + "\nkind: " + sample.kind + "\n"
		if !strings.Contains(string(data), want) {
			t.Errorf("%s: want %s", sample.file, want)
		}
	}
}

// TestRoles holds every role of the archive to least privilege.
func TestRoles(t *testing.T) {
	roles := documents(t, read(t, "operator/deploy/role.yaml"))
	for _, o := range roles {
		if o.GetKind() != "Role" && o.GetKind() != "ClusterRole" {
			t.Errorf("role.yaml: %s %s: only roles are allowed", o.GetKind(), o.GetName())
		}
	}
	for _, o := range documents(t, read(t, "ui/ui.yaml")) {
		if o.GetKind() == "Role" {
			roles = append(roles, o)
		}
	}
	if len(roles) != 2 {
		t.Errorf("got %d roles, want one for the operator and one for the user interface", len(roles))
	}
	never := []string{
		"*", "escalate", "bind", "impersonate", "roles", "rolebindings", "clusterroles", "clusterrolebindings", "secrets",
		"pods/exec", "pods/attach", "serviceaccounts/token", "nodes/proxy", "customresourcedefinitions",
	}
	for _, role := range roles {
		rules, _, err := unstructured.NestedSlice(role.Object, "rules")
		if err != nil || len(rules) == 0 {
			t.Errorf("%s: got rules %v, %v", role.GetName(), rules, err)
		}
		for _, rule := range rules {
			for _, field := range []string{"apiGroups", "resources", "verbs"} {
				words, _, err := unstructured.NestedStringSlice(rule.(map[string]any), field)
				if err != nil {
					t.Error(err)
				}
				for _, word := range words {
					if slices.Contains(never, word) {
						t.Errorf("%s: %s: %s", role.GetName(), field, word)
					}
				}
			}
		}
	}
}

// TestUI holds the user interface to what can be deployed into any namespace from any registry.
func TestUI(t *testing.T) {
	for _, o := range documents(t, read(t, "ui/ui.yaml")) {
		if o.GetNamespace() != "" {
			t.Errorf("%s %s has a namespace", o.GetKind(), o.GetName())
		}
		if o.GetKind() != "Deployment" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) != 1 {
			t.Fatalf("got containers %v, %v", containers, err)
		}
		got := containers[0].(map[string]any)["image"]
		if want := "{{ repository }}/example-solution-ui:{{ version }}"; got != want {
			t.Errorf("got image %s, want %s", got, want)
		}
	}
}

func TestMonitoring(t *testing.T) {
	var text strings.Builder
	err := fs.WalkDir(os.DirFS("monitoring"), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data := read(t, filepath.Join("monitoring", path))
		if filepath.Ext(path) != ".prom" {
			text.Write(data)
		}
		switch filepath.Ext(path) {
		case ".json":
			if !json.Valid(data) {
				t.Errorf("%s is not JSON", path)
			}
		case ".yaml":
			for _, o := range documents(t, data) {
				if o.GetAPIVersion() != "monitoring.coreos.com/v1" || o.GetName() != "example-solution" {
					t.Errorf("%s: got %s %s", path, o.GetAPIVersion(), o.GetName())
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	metrics := 0
	for line := range strings.Lines(string(read(t, "monitoring/metrics.prom"))) {
		if metric, is := strings.CutPrefix(line, "# TYPE "); is {
			metrics++
			if metric, _, _ = strings.Cut(metric, " "); !strings.Contains(text.String(), metric) {
				t.Errorf("nobody looks at %s", metric)
			}
		}
	}
	if metrics == 0 {
		t.Error("no metric is declared")
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func unmarshal(t *testing.T, data []byte, v any) {
	t.Helper()
	if err := yaml.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
}

func documents(t *testing.T, data []byte) []unstructured.Unstructured {
	t.Helper()
	var objects []unstructured.Unstructured
	decoder := yamlutil.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var o unstructured.Unstructured
		if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}
