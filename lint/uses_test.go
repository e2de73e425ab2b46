package lint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/lint"
)

const originsManifest = `apiVersion: solutions.metalk8s.scality.com/v1alpha1
kind: Solution
metadata: {name: demo}
spec:
  version: 1.0.0
  imageOrigins: {"web:1.0.0": ghcr.io/acme/web:1.0.0, "nginx:1.27": "nginx:1.27"}
  dependsOn: [{solution: storage, version: ">=1"}]
`

// TestResolve asks for images by every kind of name.
func TestResolve(t *testing.T) {
	images := []testImage{
		{ref: "demo-operator:1.0.0", platforms: []string{"linux/amd64"}, entrypoint: "/" + operatorPath},
		{ref: "web:1.0.0", platforms: []string{"linux/amd64", "linux/arm64"}},
		{ref: "nginx:1.27", platforms: []string{"linux/amd64"}},
	}
	layout := layoutOf(t, images)
	digest := digestOf(t, layout, "web:1.0.0")
	other := "sha256:" + strings.Repeat("0", 64)
	tests := map[string]string{
		"{{ repository }}/web:1.0.0":                                 "web:1.0.0",
		"{{repository}}/web:1.0.0@" + digest:                         "web:1.0.0",
		"{{ repository }}/web:2.0.0":                                 "",
		"registry.solutionctl.invalid/demo-1.0.0/web:1.0.0":          "web:1.0.0",
		"metalk8s-registry-from-config.invalid/demo-1.0.0/web:1.0.0": "web:1.0.0",
		"registry.solutionctl.invalid/demo-0.9.0/web:1.0.0":          "",
		"registry.solutionctl.invalid/storage-1.2.0/minio:1":         "elsewhere",
		"registry.solutionctl.invalid/storage2-1.2.0/minio:1":        "",
		"ghcr.io/acme/web:1.0.0":                                     "web:1.0.0",
		"ghcr.io/acme/web:1.0.0@" + digest:                           "web:1.0.0",
		"ghcr.io/acme/web@" + digest:                                 "web:1.0.0",
		"ghcr.io/acme/web:1.0.0@" + other:                            "",
		"ghcr.io/acme/web":                                           "",
		"quay.io/acme/web:1.0.0":                                     "",
		"web:1.0.0":                                                  "",
		"nginx:1.27":                                                 "nginx:1.27",
		"docker.io/library/nginx:1.27":                               "nginx:1.27",
		"index.docker.io/library/nginx:1.27":                         "nginx:1.27",
		"docker.io/acme/nginx:1.27":                                  "",
	}
	for image, want := range tests {
		t.Run(image, func(t *testing.T) {
			files := fstest.MapFS{
				"manifest.yaml":      {Data: []byte(originsManifest)},
				"components/db.yaml": {Data: []byte(deployment(image))},
			}
			addImages(t, files, images)
			opened := openDirectory(t, files)
			uses := lint.Uses(t.Context(), opened.Target, image)
			if len(uses) != 1 {
				t.Fatalf("got %d uses", len(uses))
			}
			got := ""
			switch {
			case uses[0].Found():
				got = uses[0].Ref.String()
			case uses[0].Elsewhere:
				got = "elsewhere"
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if findings := of("SOL601", run(t, opened)); (len(findings) > 0) != (want == "") {
				t.Errorf("got findings %s", text(findings))
			}
		})
	}
}

// digestOf returns the digest of an image in a layout.
func digestOf(tb testing.TB, layout fstest.MapFS, ref string) string {
	tb.Helper()
	index := string(layout["index.json"].Data)
	for entry := range strings.SplitSeq(index, `"annotations"`) {
		if _, rest, ok := strings.Cut(entry, `"`+ref+`"},"digest":"`); ok {
			digest, _, _ := strings.Cut(rest, `"`)
			return digest
		}
	}
	tb.Fatalf("no %s in %s", ref, index)
	return ""
}

// TestWhy lists the uses of an image, under each of its names.
func TestWhy(t *testing.T) {
	files := readExample(t, "base.txtar").files
	put("components/web.yaml", strings.ReplaceAll(deployment("ghcr.io/acme/web:1.0.0"), "name: db", "name: web"))(files)
	put("components/job.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {image: \"ghcr.io/acme/web:1.0.0\"}\n")(files)
	put("operator/deploy/operator.yaml", deployment("ghcr.io/acme/web:1.0.0"))(files) // it is not applied
	edit("manifest.yaml", "spec:\n", "spec:\n  imageOrigins: {\"web:1.0.0\": ghcr.io/acme/web:1.0.0}\n")(files)
	addImages(t, files, []testImage{{ref: "demo-operator:1.0.0", platforms: []string{"linux/amd64"}}, {ref: "web:1.0.0", platforms: []string{"linux/amd64"}}})
	opened := openDirectory(t, files)
	tests := map[string][]string{
		"web:1.0.0":              {"ConfigMap/web data.image false", "Deployment/web spec.template.spec.containers[0].image true"},
		"ghcr.io/acme/web:1.0.0": {"ConfigMap/web data.image false", "Deployment/web spec.template.spec.containers[0].image true"},
		"demo-operator:1.0.0":    {"Deployment/demo-operator  true"},
		"nginx:1.27":             nil,
	}
	for image, want := range tests {
		var got []string
		for _, use := range lint.Uses(t.Context(), opened.Target, image) {
			got = append(got, fmt.Sprintf("%s %s %t", use.Object, use.Path, use.Certain))
		}
		slices.Sort(got)
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%s: (-got +want)\n%s", image, diff)
		}
	}
}
