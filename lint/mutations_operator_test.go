package lint_test

import (
	"testing/fstest"

	"github.com/solutionctl/solutionctl/build/archive"
)

const (
	exampleUI   = "ui/ui.yaml"
	exampleCRD  = "operator/deploy/crds/websites_crd.yaml"
	exampleRole = archive.RoleFile
	// exampleOperator is the line of the manifest that names the operator's image.
	exampleOperator = "name: example-solution-operator"
)

func operatorMutations() map[string]mutation {
	return map[string]mutation{
		"SOL401": {files: add(exampleRole, "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: example-solution-operator}\n")},
		"SOL402": {files: add(exampleRole, "  - {apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings], verbs: [create]}\n")},
		"SOL403": {files: edit(exampleRole, "verbs: [patch]", `verbs: ["*"]`)},
		"SOL404": {files: add(exampleRole, "  - {apiGroups: [\"\"], resources: [nodes], verbs: [list]}\n")},
		"SOL405": {files: edit(exampleRole, "resources: [deployments]", "resources: [deployment]")},
		"SOL406": {files: edit(exampleRole, "resources: [websites]\n    verbs: [get, list, watch]", "resources: [websites]\n    verbs: [get]")},
		"SOL407": {files: edit(exampleRole, "websites/status", "websites/scale")},
		"SOL408": {files: func(fstest.MapFS) {}}, // the example does not need the rule, which is optional
		"SOL409": {files: edit(exampleRole, "verbs: [get, update]", "verbs: [get]")},
		"SOL410": {files: edit("manifest.yaml", "  operator:\n", "  operator:\n    requiresCRDs: [{name: certificates.cert-manager.io, versions: [v1]}]\n")},
		"SOL411": {files: edit("manifest.yaml", exampleOperator, "name: example-solution-manager")},
		"SOL412": {files: edit("manifest.yaml", exampleOperator, "name: example-solution-server")},
		"SOL413": {files: put("components/db.yaml", deployment("db"))},
		"SOL414": {files: edit(exampleUI, "requests: {cpu: 10m, memory: 32Mi}", "requests: {memory: 32Mi}")},
		"SOL415": {files: edit(exampleUI, "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true")},
		"SOL417": {files: second("- {apiGroups: [example.solutionctl.io], resources: [websites/status], verbs: [update]}")},
		"SOL418": {files: second("- {apiGroups: [apps], resources: [deployments], verbs: [create]}")},
		"SOL419": {files: all(
			put("components/class.yaml", "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: class}\nvalue: 1\n"),
			edit("manifest.yaml", "  operator:\n", "  components: [{name: class, manifests: components/class.yaml}]\n  operator:\n"),
		)},
		"SOL416": {files: edit(exampleUI, "example-solution-ui:1.0.0", "example-solution-ui")},
	}
}

// second adds an operator with a right.
func second(rule string) func(fstest.MapFS) {
	return all(
		put("operators/second/role.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: second}\nrules:\n  "+rule+"\n"),
		edit("manifest.yaml", "  operator:\n", "  components: [{name: second, operator: operators/second}]\n  operator:\n"),
	)
}

// add appends text to a file.
func add(name, text string) func(fstest.MapFS) {
	return func(files fstest.MapFS) { put(name, string(files[name].Data)+text)(files) }
}

// deployment is one with nothing but a container.
func deployment(image string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: db}\nspec:\n  selector: {matchLabels: {app: db}}\n" +
		"  template:\n    metadata: {labels: {app: db}}\n    spec:\n      containers: [{name: db, image: \"" + image + "\"}]\n"
}
