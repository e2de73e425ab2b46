package manifest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/kube/manifest"
)

// TestWithoutField checks that a field disappears and that nothing else does, however it is written.
func TestWithoutField(t *testing.T) {
	for name, test := range map[string]struct{ document, want string }{
		"a line of its own":     {"metadata:\n  name: web # kept\n  namespace: shop # gone\nspec: {}\n", "metadata:\n  name: web # kept\nspec: {}\n"},
		"the last line":         {"metadata:\n  name: web\n  namespace: shop", "metadata:\n  name: web\n"},
		"quoted":                {"metadata:\n    namespace: \"shop\"\n    name: web\n", "metadata:\n    name: web\n"},
		"in flow style":         {"metadata: {name: web, namespace: shop}\n", "metadata: {name: web}\n"},
		"in JSON":               {`{"metadata": {"namespace": "shop", "name": "web"}}`, "{\"metadata\": {\"name\": \"web\"}}\n"},
		"text over several":     {"metadata:\n  namespace: >-\n    shop\n  name: web\n", "metadata:\n  name: web\n"},
		"alone":                 {"metadata:\n  namespace: shop\n", "metadata: {}\n"},
		"not there":             {"metadata:\n  name: web\n", "metadata:\n  name: web\n"},
		"no mapping on the way": {"metadata: web\n", "metadata: web\n"},
		"with an anchor":        {"metadata:\n  name: web\n  namespace: &ns shop\n", "metadata:\n  name: web\n"},
		"referred to":           {"metadata:\n  name: web\n  namespace: &ns shop\nspec: [*ns, *ns]\n", "metadata:\n  name: web\nspec: [&ns shop, *ns]\n"},
		"a reference":           {"kind: &ns shop\nmetadata: {name: web, namespace: *ns}\nspec: *ns\n", "kind: &ns shop\nmetadata: {name: web}\nspec: *ns\n"},
		"the same word elsewhere": {
			"metadata:\n  labels:\n    namespace: a\n  namespace: shop\n  name: web\n", "metadata:\n  labels:\n    namespace: a\n  name: web\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := manifest.WithoutField([]byte(test.document), "metadata", "namespace")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAddItems checks that items are added in the form that the list has.
func TestAddItems(t *testing.T) {
	for name, test := range map[string]struct{ document, want string }{
		"a line each":   {"spec:\n  images:\n  - {name: a}\n  next: 1\n", "spec:\n  images:\n  - {name: a}\n  - {name: b}\n  next: 1\n"},
		"several lines": {"spec:\n  images:\n    - name: a\n      source: >-\n        x\n    # end\n", "spec:\n  images:\n    - name: a\n      source: >-\n        x\n    - {name: b}\n    # end\n"},
		"a comment in the item": {
			"spec:\n  images:\n  - name: a\n#    tag: '1.0'\n    tag: '1.1'\n# end\n", "spec:\n  images:\n  - name: a\n#    tag: '1.0'\n    tag: '1.1'\n  - {name: b}\n# end\n",
		},
		"a script": {
			"spec:\n  images:\n  - name: |\n      a\n      # b\n# end\n", "spec:\n  images:\n  - name: |\n      a\n      # b\n  - {name: b}\n# end\n",
		},
		"braces with less indentation": {
			"spec:\n  images:\n  - {name: a, tag:\n '1.0'}\n  next: 1\n", "spec:\n  images:\n    - {name: a, tag: '1.0'}\n    - {name: b}\n  next: 1\n",
		},
		"without line end": {"spec:\n  images:\n  - {name: a}", "spec:\n  images:\n  - {name: a}\n  - {name: b}\n"},
		"in one line":      {"spec: {images: [{name: a}]}\n", "spec: {images: [{name: a}, {name: b}]}\n"},
		"not there":        {"spec: {}\n", "spec: {}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := manifest.AddItems([]byte(test.document), []string{"{name: b}"}, "spec", "images")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
