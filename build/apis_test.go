package build_test

import (
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestAPIsOfTheServer: no archive is built with a CRD or an APIService in a group that the API server itself has, wherever it is. Its twin
// in a group of its own, and a group of another project, are for an administrator to judge.
func TestAPIsOfTheServer(t *testing.T) {
	crd := func(group string) string {
		return "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: evils." + group + "}, spec: {group: " + group + "}}\n"
	}
	const rbac, nodes = "rbac.authorization.k8s.io", "node.k8s.io"
	indented := strings.ReplaceAll(crd(nodes), "\n", "")
	for file, content := range map[string]func(group string) string{
		"operator/deploy/crds/evil_crd.yaml": crd,
		"operators/more/cluster/crd.yaml":    crd,
		"components/part/crd.yml":            func(group string) string { return "a: b\n---\n" + crd(group) },
		"components/list.yaml":               func(group string) string { return "apiVersion: v1\nkind: List\nitems:\n- " + crd(group) },
		"components/crds.yaml": func(group string) string {
			return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinitionList\nitems:\n- {metadata: {name: evils}, spec: {group: " + group + "}}\n"
		},
		"operator/cluster/api.yaml": func(group string) string {
			return "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1." + group + "}, spec: {group: " + group + "}}\n"
		},
		"charts/web-1.0.0.tgz": func(group string) string { return packedChart(t, "web", "1.0.0", "crds/evil.yaml", crd(group)) },
		"charts/web-1.0.0.tgz sub": func(group string) string {
			return packedChart(t, "web", "1.0.0", "charts/db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 1.0.0\n", "charts/db/crds/evil.json", crd(group))
		},
	} {
		name, _, _ := strings.Cut(file, " ")
		for group, refused := range map[string]bool{rbac: true, nodes: true, "demo.example.com": false, "externaldns.k8s.io": false} {
			t.Run(file+" "+group, func(t *testing.T) {
				dir := newProject(t, 512)
				writeFiles(t, dir, map[string]string{name: content(group)})
				_, err := tryPlan(t, t.Context(), dir, build.Overrides{}, build.Options{})
				if !refused {
					check(t, err)
					return
				}
				want := "a group of the API server itself (" + group + "), which no approval allows"
				if err == nil || report.CodeOf(err) != report.Invalid || !strings.HasPrefix(err.Error(), name+": ") || !strings.HasSuffix(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			})
		}
	}
	dir := newProject(t, 512)
	writeFiles(t, dir, map[string]string{"docs/example.yaml": indented, "operator/deploy/broken.yaml": "kind: CustomResourceDefinition: x"})
	_, err := tryPlan(t, t.Context(), dir, build.Overrides{}, build.Options{})
	check(t, err)
}
