package controller

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/example-solution/api"
)

const tag100 = "registry.example:5000/example-solution-1.0.0/example-solution-server:1.0.0"

func website(change func(*api.Website)) *api.Website {
	site := &api.Website{
		ObjectMeta: metav1.ObjectMeta{Name: "tea", Namespace: "shop", UID: "1-2-3", Generation: 7},
		Spec:       api.WebsiteSpec{Title: "Tea", Theme: api.Dark, Replicas: new(int32(2))},
	}
	*api.Text(&site.Spec) = "open"
	if change != nil {
		change(site)
	}
	return site
}

// TestObjects compares every object with the one in testdata, for reviewers to read. Each release has its own.
// UPDATE=1 go test ./operator/controller rewrites them.
func TestObjects(t *testing.T) {
	const banners = "closed today\nopen tomorrow\n"
	dir := filepath.Join("testdata", api.GroupVersion.Version)
	objects := map[string]any{
		"deployment.yaml": deployment(website(nil), "1.0.0", tag100, banners),
		"service.yaml":    service(website(nil)),
	}
	if api.HasBanners {
		dir += "-banners"
		objects["configmap.yaml"] = content(website(nil), banners)
	}
	for name, object := range objects {
		t.Run(name, func(t *testing.T) {
			got, err := yaml.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, name)
			if os.Getenv("UPDATE") != "" {
				if err = os.WriteFile(file, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(got), string(want)); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

// TestDeploymentFollowsSpec changes one thing at a time and looks at what it does to the Deployment.
func TestDeploymentFollowsSpec(t *testing.T) {
	tests := map[string]struct {
		change func(*api.Website)
		path   string
		want   any
	}{
		"replicas":                {func(w *api.Website) { w.Spec.Replicas = new(int32(5)) }, "spec.replicas", 5.0},
		"stopped":                 {func(w *api.Website) { w.Spec.Replicas = new(int32(0)) }, "spec.replicas", 0.0},
		"replicas not set":        {func(w *api.Website) { w.Spec.Replicas = nil }, "spec.replicas", 1.0},
		"title":                   {func(w *api.Website) { w.Spec.Title = "Coffee" }, "spec.template.spec.containers.0.env.0.value", "Coffee"},
		"title is not expanded":   {func(w *api.Website) { w.Spec.Title = "$(HOME) $$" }, "spec.template.spec.containers.0.env.0.value", "$$(HOME) $$$$"},
		"theme":                   {func(w *api.Website) { w.Spec.Theme = api.Light }, "spec.template.spec.containers.0.env.2.value", "Light"},
		"name":                    {func(w *api.Website) { w.Name = "a" }, "metadata.name", "a-website"},
		"selector has the name":   {func(w *api.Website) { w.Name = "a" }, "spec.selector.matchLabels", map[string]any{"app.kubernetes.io/name": "website", "app.kubernetes.io/instance": "a"}},
		"selector has no version": {func(w *api.Website) { w.Spec.Version = "9.9.9" }, "spec.selector.matchLabels", map[string]any{"app.kubernetes.io/name": "website", "app.kubernetes.io/instance": "tea"}},
		"owner":                   {func(w *api.Website) { w.UID = "9" }, "metadata.ownerReferences.0.uid", "9"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := at(t, deployment(website(tt.change), "1.0.0", tag100, ""), tt.path)
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("%s (-got +want):\n%s", tt.path, diff)
			}
		})
	}
}

// at returns what lies at a dotted path of an object as JSON has it.
func at(t *testing.T, object any, path string) any {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	for step := range strings.SplitSeq(path, ".") {
		switch node := v.(type) {
		case map[string]any:
			v = node[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(node) {
				t.Fatalf("%s: no %q in a list of %d", path, step, len(node))
			}
			v = node[i]
		default:
			t.Fatalf("%s: nothing at %q", path, step)
		}
	}
	return v
}
