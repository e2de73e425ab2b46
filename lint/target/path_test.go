package target_test

import (
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/lint/target"
)

// FuzzSplitPath takes any path apart.
func FuzzSplitPath(f *testing.F) {
	for _, path := range []string{"spec.containers[0].image", "metadata.labels[app.kubernetes.io/name]", "data[a.yaml]: spec.image", "a[", "]", ".."} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		for _, step := range target.SplitPath(path) {
			if len(step) > len(path) {
				t.Errorf("%q is longer than %q", step, path)
			}
		}
	})
}

func TestSplitPath(t *testing.T) {
	for path, want := range map[string]string{
		"spec.containers[0].image":                              "spec|containers|0|image",
		"metadata.labels[app.kubernetes.io/name]":               "metadata|labels|app.kubernetes.io/name",
		"data[a.yaml]: spec.image":                              "data|a.yaml",
		"spec.versions[0].schema.openAPIV3Schema.properties[x]": "spec|versions|0|schema|openAPIV3Schema|properties|x",
		"": "",
	} {
		if got := strings.Join(target.SplitPath(path), "|"); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
