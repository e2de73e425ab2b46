package components_test

import (
	"fmt"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/schema"
)

// A choice, and the selected components.
func Example() {
	solution, _, err := schema.ParseSolution("manifest.yaml", []byte(`
apiVersion: solutions.metalk8s.scality.com/v1alpha1
kind: Solution
metadata: {name: cloud}
spec:
  version: 1.0.0
  components:
    - {name: web, chart: charts/web.tgz, dependsOn: [{component: database}]}
    - {name: database, chart: charts/database.tgz, select: optional}
    - {name: metrics, chart: charts/metrics.tgz, select: optional}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	graph, err := components.New(solution)
	if err != nil {
		fmt.Println(err)
		return
	}
	selection, err := graph.Select(components.Choice{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, node := range selection.Nodes() {
		fmt.Println(node.Name)
	}
	fmt.Println(strings.Join(components.Tree(selection.Document()), "\n"))
	// Output:
	// database
	// web
	// metrics  chart charts/metrics.tgz, optional
	// web  chart charts/web.tgz
	// └─ database Ready  chart charts/database.tgz, as web needs it
}
