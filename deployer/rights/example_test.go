package rights_test

import (
	"fmt"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/rights"
)

// An administrator grants rules to a user who is to create an environment.
func Example() {
	fmt.Println(cluster.RulesByPlace(rights.CreateNamespace("shop", false)...))
	// Output:
	// in every namespace:
	// - apiGroups: [""]
	//   resources: ["namespaces"]
	//   verbs: ["get", "list", "create", "patch"]
	// in namespace shop:
	// - apiGroups: [""]
	//   resources: ["configmaps"]
	//   resourceNames: ["metalk8s-environment"]
	//   verbs: ["get", "create", "patch"]
}
