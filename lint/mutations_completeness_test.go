package lint_test

import "testing/fstest"

func completenessMutations() map[string]mutation {
	return map[string]mutation{
		"SOL601": {files: edit(exampleUI, "example-solution-ui:1.0.0", "example-solution-ui:1.0.1")},
		"SOL602": {files: add("operator/deploy/crds/websites_cr.yaml", "  image: docker.io/library/nginx:1.27\n")},
		"SOL603": {files: func(fstest.MapFS) {}, images: []testImage{
			exampleImages[0], exampleImages[1],
			{ref: "example-solution-ui:1.0.0", platforms: []string{"linux/amd64"}, entrypoint: "/ui"},
		}},
		"SOL604": {files: func(files fstest.MapFS) {
			for range 2 { // Deployments and Services
				edit(exampleRole, "verbs: [get, list, watch, create, patch]", "verbs: [get, list, watch]")(files)
			}
		}},
		"SOL606": {files: func(fstest.MapFS) {}, images: []testImage{
			exampleImages[0], exampleImages[1],
			{ref: "example-solution-ui:1.0.0", platforms: []string{"linux/amd64", "linux/arm64"}, entrypoint: "/ui", url: "https://vendor.example/layer"},
		}},
		"SOL605": {files: edit(exampleUI, "{{ repository }}", "${REPOSITORY}")},
	}
}
