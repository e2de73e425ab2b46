package lint_test

import "testing/fstest"

func upgradeMutations() map[string]mutation {
	none := func(fstest.MapFS) {}
	newer := func(change ...func(fstest.MapFS)) func(fstest.MapFS) {
		return func(files fstest.MapFS) {
			edit("manifest.yaml", "version: 1.0.0", "version: 1.1.0")(files)
			for _, c := range change {
				c(files)
			}
		}
	}
	origin := edit("manifest.yaml", "spec:\n", "spec:\n  imageOrigins: {\"example-solution-server:1.0.0\": ghcr.io/solutionctl/server:1.0.0}\n")
	return map[string]mutation{
		"SOL701": {against: none, files: newer(edit(exampleCRD, "maximum: 100", "maximum: 10"))},
		"SOL702": {against: none, files: newer(func(files fstest.MapFS) { delete(files, exampleCRD) })},
		"SOL703": {against: none, files: newer(add(exampleRole, "  - {apiGroups: [\"\"], resources: [secrets], verbs: [get]}\n"))},
		"SOL704": {files: newer(), against: func(files fstest.MapFS) {
			origin(files)
			put("components/server.yaml", deployment("ghcr.io/solutionctl/server:1.0.0"))(files)
		}},
		"SOL705": {files: newer(origin), against: func(files fstest.MapFS) {
			edit("manifest.yaml", "spec:\n", "spec:\n  imageOrigins: {\"example-solution-ui:1.0.0\": ghcr.io/solutionctl/server:1.0.0}\n")(files)
		}},
		"SOL706": {against: none, files: none},
		"SOL707": {against: none, files: newer(edit("manifest.yaml", "spec:\n", "spec:\n  minUpgradeFrom: 1.0.1\n"))},
		"SOL708": {against: none, files: newer(edit("manifest.yaml", "name: example-solution\n", "name: another-solution\n"))},
	}
}
