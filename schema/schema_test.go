package schema_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/schema"
)

func ExampleParseSolution() {
	solution, warnings, err := schema.ParseSolution("manifest.yaml", []byte(`
apiVersion: solutions.metalk8s.scality.com/v1alpha1
kind: Solution
metadata:
  annotations:
    solutions.metalk8s.scality.com/display-name: My Storage
  name: my-storage
spec:
  version: 1.0.0
  imagse: [backend:1.0.0]
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(solution.ID(), solution.DisplayName(), solution.OperatorImage())
	fmt.Println(warnings[0], "-", warnings[0].Hint)
	// Output:
	// my-storage-1.0.0 My Storage my-storage-operator:1.0.0
	// manifest.yaml:10:3: spec.imagse: unknown field - did you mean images?
}

func ExampleParseSolutionBuild() {
	_, err := schema.ParseSolutionBuild("solution.yaml", []byte(`
apiVersion: solutionctl.io/v1alpha1
kind: SolutionBuild
metadata: {name: example-solution}
spec:
  version: v1.0
  images:
    - {name: example-operator, source: "oci:build/images:operator"}
    - {name: UI, tag: 1.0, source: "oci:build/images:ui"}
`))
	for _, problem := range schema.Problems(err) {
		fmt.Println(problem)
		if problem.Hint != "" {
			fmt.Println("  hint:", problem.Hint)
		}
	}
	// Output:
	// solution.yaml:6:12: spec.version: "v1.0" is not a semantic version in lower case without build metadata
	//   hint: write 1.0.0
	// solution.yaml:9:14: spec.images[1].name: "UI" is not an image name: one path component of lower-case letters and digits, separated by '.', '_', '__' or '-'
	// solution.yaml:9:23: spec.images[1].tag: want a string, got a number
	//   hint: write "1.0" in quotes
}

func TestKinds(t *testing.T) {
	for _, kind := range schema.Kinds() {
		if len(schema.JSONSchema(kind)) == 0 {
			t.Errorf("kind %s has no JSON Schema", kind)
		}
	}
}

// TestNullsInValues: a null among the values of a chart removes a default, at the top as below it.
func TestNullsInValues(t *testing.T) {
	c, err := schema.ParseEnvironmentConfiguration("site.yaml", []byte(`
apiVersion: solutionctl.io/v1alpha1
kind: EnvironmentConfiguration
spec:
  name: test
  solutions:
    - {name: shop, version: 1.0.0, values: {web: {resources: null, probe: {path: null}}, db: null}}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]any{"web": {"resources": nil, "probe": map[string]any{"path": nil}}}
	if diff := cmp.Diff(want, c.Spec.Solutions[0].Values); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
