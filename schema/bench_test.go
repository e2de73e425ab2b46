package schema_test

import (
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

func BenchmarkHostile(b *testing.B) {
	for name, data := range hostile() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = schema.ParseKubernetes("x.yaml", data) // refused or not: what counts is the time
			}
		})
	}
}
