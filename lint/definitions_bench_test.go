package lint_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/solutionctl/solutionctl/lint"
)

var writeDefinitions = flag.String("write-definitions", "", "`directory` for the archive of BenchmarkDefinitions, to measure the program with it")

// largeDefinition is a definition as operators of databases have them: pod templates within pod templates, each with all
// that a container, a volume and an affinity may be.
func largeDefinition(kind string, versions, templates int) []byte {
	var b strings.Builder
	plural := strings.ToLower(kind) + "s"
	fmt.Fprintf(&b, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: %[1]s.pg.example.com\nspec:\n  group: pg.example.com\n"+
		"  names: {kind: %[2]s, listKind: %[2]sList, plural: %[1]s, singular: %[3]s}\n  scope: Namespaced\n  versions:\n", plural, kind, strings.ToLower(kind))
	for version := range versions {
		fmt.Fprintf(&b, "  - name: v%d\n    served: true\n    storage: %t\n    subresources:\n      status: {}\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n"+
			"          status:\n            type: object\n            x-kubernetes-preserve-unknown-fields: true\n          spec:\n            type: object\n            properties:\n", version+1, version == versions-1)
		for i := range templates {
			schemaOfTemplate(&b, fmt.Sprintf("template%d", i), "              ", 5)
		}
	}
	return []byte(b.String())
}

// schemaOfTemplate writes the schema of a field with eight fields, the last of which has such a field, and so on.
func schemaOfTemplate(b *strings.Builder, name, indent string, depth int) {
	fmt.Fprintf(b, "%[1]s%[2]s:\n%[1]s  type: object\n%[1]s  properties:\n", indent, name)
	for i := range 8 {
		fmt.Fprintf(b, "%[1]s    field%[2]d:\n%[1]s      type: array\n%[1]s      items:\n%[1]s        type: object\n%[1]s        required:\n%[1]s        - key\n%[1]s        properties:\n"+
			"%[1]s          key:\n%[1]s            type: string\n%[1]s            maxLength: 253\n%[1]s          operator:\n%[1]s            type: string\n"+
			"%[1]s          values:\n%[1]s            type: array\n%[1]s            items:\n%[1]s              type: string\n%[1]s            x-kubernetes-list-type: atomic\n", indent, i)
	}
	if depth > 0 {
		schemaOfTemplate(b, "nested", indent+"    ", depth-1)
	}
}

// largeDefinitions is an archive with 2.5 MB of definitions, and a sample of each.
func largeDefinitions(tb testing.TB) fstest.MapFS {
	tb.Helper()
	files := readExample(tb, "base.txtar").files
	size := 0
	for i, kind := range []string{"Cluster", "Backup", "Restore", "Upgrade"} {
		data := largeDefinition(kind, 2-i/2, 20>>i)
		size += len(data)
		name := "operator/deploy/crds/" + strings.ToLower(kind)
		files[name+"_crd.yaml"] = &fstest.MapFile{Data: data}
		files[name+"_cr.yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil,
			"apiVersion: pg.example.com/v1\nkind: %s\nmetadata: {name: sample}\nspec:\n  template0:\n    field0: [{key: a, values: [b]}]\n", kind)}
	}
	tb.Logf("%d bytes of definitions", size)
	return files
}

// BenchmarkDefinitions judges definitions as large as the largest that are published.
func BenchmarkDefinitions(b *testing.B) {
	files := largeDefinitions(b)
	if *writeDefinitions != "" {
		check(b, os.CopyFS(*writeDefinitions, files))
	}
	b.ReportAllocs()
	for b.Loop() {
		_, err := lint.Run(b.Context(), openDirectory(b, files).Target, lint.Options{})
		check(b, err)
	}
}
