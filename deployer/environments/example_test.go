package environments_test

import (
	"fmt"

	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/plan"
)

// An administrator who deletes an environment with data has to type its name.
func ExampleDeleteOptions_Confirmation() {
	o := environments.DeleteOptions{Environment: "shop", Data: plan.DeleteData}
	question := o.Confirmation()
	fmt.Println(question.Question + "; type " + question.Name)
	// Output:
	// Everything in environment shop will be deleted; type shop
}
