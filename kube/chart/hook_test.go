package chart_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/solutionctl/solutionctl/kube/chart"
)

func TestMisreadHooks(t *testing.T) {
	tests := []struct {
		annotations string
		want        []string // messages
		applied     bool
	}{
		{"helm.sh/hook: 'Pre-Install , test'", nil, true},
		{"helm.sh/hook: test-success, helm.sh/hook-weight: '-5', helm.sh/hook-delete-policy: 'hook-failed,hook-succeeded'", nil, true},
		{"helm.sh/hook-weight: first", nil, true}, // no hook
		{"helm.sh/hook: crd-install", []string{`helm.sh/hook: there is no event "crd-install": the object is never applied`}, false},
		{"helm.sh/hook: ''", []string{`helm.sh/hook: there is no event "": the object is never applied`}, false},
		{"helm.sh/hook: 'pre-install,'", []string{`helm.sh/hook: there is no event "": the object is never applied`}, false},
		{"helm.sh/hook: post-install, helm.sh/hook-delete-policy: 'hook-succeeded, always'", []string{`helm.sh/hook-delete-policy: there is no policy "always": it deletes nothing`}, true},
		{"helm.sh/hook: post-install, helm.sh/hook-weight: '1.5'", []string{`helm.sh/hook-weight: "1.5" is not a number: the weight is 0`}, true},
	}
	for _, test := range tests {
		t.Run(test.annotations, func(t *testing.T) {
			files := web()
			files["web/templates/hook.yaml"] = fmt.Sprintf("# first\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: odd, annotations: {%s}}\n", test.annotations)
			r := render(t, files, chart.Options{})
			var got []string
			for _, m := range r.Misread {
				got = append(got, m.Message)
				if m.Template != "web/templates/hook.yaml" || m.Line != 3 || m.Object != "Secret/odd" || m.Hint == "" {
					t.Errorf("place and hint: %+v", m)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if applied := slices.ContainsFunc(r.Manifests, func(m chart.Manifest) bool { return m.Object["kind"] == "Secret" }); applied != test.applied {
				t.Errorf("applied: %t, want %t", applied, test.applied)
			}
		})
	}
}

// TestHeads: the fields of an object that Helm reads, and those that it refuses.
func TestHeads(t *testing.T) {
	for _, test := range []struct {
		head, hook string // the hook's event
		refused    bool
	}{
		{head: "apiVersion: v1\nkind: Secret\nmetadata: {annotations: {helm.sh/hook: test}}", hook: "test"},
		{head: "apiVersion: v1\nkind: Secret\nMetadata: {Annotations: {helm.sh/hook: test}}", hook: "test"},
		{head: "apiVersion: v1\nkind: Secret\nmetadata: {ANNOTATIONS: {helm.sh/hook: test}}", hook: "test"},
		{head: "apiVersion: v1\nkind: Secret\nmetadata: {annotations: {a: 1, helm.sh/hook: test}}", hook: "test"},
		{head: "apiVersion: v1\nkind: Secret\nmetadata: {annotations: }"},
		{head: "apiVersion: v1\nkind: Secret\nmetadata:"},
		{head: "apiVersion: v1\nkind: Secret"},
		{head: "apiVersion: v1\nkind: Secret\nmetadata: {annotations: {a: {b: c}}}", refused: true},
		{head: "apiVersion: v1\nkind: Secret\nmetadata: {annotations: [a]}", refused: true},
		{head: "apiVersion: [v1]\nkind: Secret\nmetadata: {annotations: {a: b}}", refused: true},
		{head: "apiVersion: v1\nkind: Secret\nmetadata: text", refused: true},
	} {
		files := web()
		files["web/templates/head.yaml"] = test.head
		c, err := chart.Load(bytes.NewReader(pack(files)))
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.Render(t.Context(), chart.Options{StandIns: true})
		if (err != nil) != test.refused {
			t.Errorf("%q: err = %v, refused: %t", test.head, err, test.refused)
		}
		if err != nil {
			continue
		}
		i := slices.IndexFunc(r.Manifests, func(m chart.Manifest) bool { return m.Template == "web/templates/head.yaml" })
		if h := r.Manifests[i].Hook; (h != nil) != (test.hook != "") || h != nil && !slices.Contains(h.Events, test.hook) {
			t.Errorf("%q: hook = %+v", test.head, h)
		}
	}
}
