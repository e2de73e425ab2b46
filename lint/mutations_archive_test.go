package lint_test

import (
	"maps"
	"slices"
	"strings"
	"testing/fstest"
)

// isoMutations damage the image of the example.
func isoMutations() map[string]mutation {
	all := map[string]mutation{
		"SOL153": {iso: true, files: put("docs/odd.", "A name with a dot at its end.\n")},
	}
	for rule, fault := range map[string]string{
		"SOL120": "shorter-than-its-descriptors", "SOL121": "huge-directory", "SOL122": "no-terminator", "SOL123": "partition",
		"SOL124": "boot-record", "SOL125": "truncated", "SOL126": "data-after-the-volume", "SOL127": "no-rock-ridge",
		"SOL128": "no-joliet", "SOL129": "halves-differ", "SOL130": "path-table", "SOL131": "record-too-long",
		"SOL132": "hidden-file", "SOL133": "dot-differs", "SOL134": "own-parent", "SOL135": "odd-directory-size",
		"SOL136": "directory-loop", "SOL137": "unsorted", "SOL138": "extent-outside", "SOL139": "extents-overlap",
		"SOL140": "section-missing", "SOL141": "system-use-too-long", "SOL142": "unknown-system-use", "SOL143": "relocated",
		"SOL144": "symbolic-link", "SOL145": "set-user-id", "SOL146": "owner", "SOL147": "backslash", "SOL148": "lower-case",
		"SOL149": "same-but-for-case", "SOL150": "second-manifest", "SOL151": "hidden-data", "SOL152": "path-table-elsewhere",
		"SOL154": "partition-table",
	} {
		all[rule] = mutation{fault: fault}
	}
	return all
}

func archiveMutations() map[string]mutation {
	return map[string]mutation{
		"SOL101": {iso: true, files: func(files fstest.MapFS) { delete(files, "registry-config.inc.j2") }},
		"SOL102": {files: put("images/example-solution-ui/1.0.0/notes.txt", "A note.\n")},
		"SOL103": {files: func(files fstest.MapFS) { delete(files, largestBlob(files)) }},
		"SOL104": {deep: true, files: func(files fstest.MapFS) {
			name := largestBlob(files)
			data := slices.Clone(files[name].Data)
			data[0] ^= 1
			files[name] = &fstest.MapFile{Data: data}
		}},
		"SOL105": {files: edit("registry-config.inc.j2", "/manifests/1.0.0", "/manifests/1.0.1")},
		"SOL106": {iso: true, files: func(files fstest.MapFS) {
			for range 2 { // both places of the annotation
				edit("manifest.yaml", "display-name: Example Solution", "display-name: Sample")(files)
			}
		}},
		"SOL107": {fault: "changed-after-implanting", deep: true},
		"SOL108": {files: edit("images/example-solution-ui/1.0.0/version", "1.1", "1.2")},
		"SOL109": {files: edit("manifest.yaml", "- example-solution-ui:1.0.0", "- example-solution-gui:1.0.0")},
		"SOL110": {files: func(fstest.MapFS) {}, images: []testImage{
			exampleImages[0], exampleImages[1],
			{ref: "example-solution-ui:1.0.0", platforms: []string{"linux/amd64", "linux/arm64"}, entrypoint: "/ui", diffIDs: "none"},
		}},
	}
}

// largestBlob is the name of a layer or a configuration, not of a manifest.
func largestBlob(files fstest.MapFS) string {
	for name, file := range files {
		if strings.HasPrefix(name, "blobs/") && strings.HasPrefix(string(file.Data), "layer of") {
			return name
		}
	}
	panic("the example has no layer")
}

// all makes several changes.
func all(changes ...func(fstest.MapFS)) func(fstest.MapFS) {
	return func(files fstest.MapFS) {
		for _, change := range changes {
			change(files)
		}
	}
}

// without takes the files of a directory away.
func without(dir string) func(fstest.MapFS) {
	return func(files fstest.MapFS) {
		maps.DeleteFunc(files, func(name string, _ *fstest.MapFile) bool { return strings.HasPrefix(name, dir) })
	}
}

func documentMutations() map[string]mutation {
	project := func(name, old, text string) func(map[string]string) {
		return func(files map[string]string) {
			if !strings.Contains(files[name], old) {
				panic(name + " has no " + old)
			}
			files[name] = strings.Replace(files[name], old, text, 1)
		}
	}
	const role = "operator/deploy/role.yaml"
	return map[string]mutation{
		"SOL201": {files: edit("manifest.yaml", "version: 1.0.0", "version: v1.0.0")},
		"SOL202": {project: project("solution.yaml", "displayName:", "dispayName:")},
		"SOL203": {files: edit("manifest.yaml", "display-name: Example Solution", "display-name: Example")},
		"SOL204": {files: put("operator/role.yaml", "kind: Role\n")},
		"SOL205": {files: edit(role, "rules:", "rules: []\nrules:")},
		"SOL206": {project: func(files map[string]string) {
			files["archive/ui/ui.yaml"] = strings.ReplaceAll(files["archive/ui/ui.yaml"], "\n", "\r\n")
		}},
		"SOL207": {project: func(files map[string]string) {
			files["archive/ui/ui.yml"] = files["archive/ui/ui.yaml"]
			delete(files, "archive/ui/ui.yaml")
		}},
		"SOL208": {files: put("operator/deploy/service_account.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: x}\n")},
		"SOL209": {files: edit("monitoring/servicemonitor.yaml", "kind: ServiceMonitor", "type: ServiceMonitor")},
		"SOL210": {files: edit(role, "rules:", "# solutionctl:ignore SOL401\nrules:")},
		"SOL211": {files: edit(role, "rules:", "# solutionctl:ignore SOL301 for no reason\nrules:")},
		"SOL212": {project: func(files map[string]string) { files["solution.yaml"] += "lint:\n  enable: [everything]\n" }},
		"SOL213": {project: project("solution.yaml", "  operator: {", "  components:\n    - {name: db, chart: charts/db.tgz}\n  operator: {")},
		"SOL214": {files: all(without("ui/"), edit("manifest.yaml", "  operator:\n", "  components: [{name: a, manifests: monitoring, dependsOn: [{component: ui}]}]\n  operator:\n"))},
		"SOL216": {project: func(files map[string]string) { files["archive/ui/UI.yaml"] = files["archive/ui/ui.yaml"] }},
		"SOL215": {files: put("operators/other/role.yaml", "")},
	}
}
