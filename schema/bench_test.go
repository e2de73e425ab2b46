package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
)

func BenchmarkParseSolution(b *testing.B) {
	const path = manifests + "valid/solution-full.yaml"
	data := read(b, path)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, _, err := schema.ParseSolution(path, data); err != nil {
			b.Fatal(err)
		}
	}
}

// graph is a manifest with components that wait for up to five earlier ones each.
func graph(components int) []byte {
	var b strings.Builder
	b.WriteString("apiVersion: solutions.metalk8s.scality.com/v1alpha1\nkind: Solution\nmetadata: {name: cloud}\nspec:\n  version: 1.0.0\n  components:\n")
	for i := range components {
		fmt.Fprintf(&b, "    - name: c%d\n      chart: charts/c%d-1.0.0.tgz\n      profiles: [all]\n      timeout: 10m\n      dependsOn:\n        - {component: operator}\n", i, i)
		for _, step := range []int{1, 2, 3, 5} {
			if i >= step {
				fmt.Fprintf(&b, "        - {component: c%d, until: Ready}\n", i-step)
			}
		}
	}
	return []byte(b.String())
}

func BenchmarkComponents(b *testing.B) {
	data := graph(200)
	for b.Loop() {
		if _, _, err := schema.ParseSolution("manifest.yaml", data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, data := range hostile() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = schema.ParseKubernetes("x.yaml", data) // refused or not: what counts is the time
			}
		})
	}
}
