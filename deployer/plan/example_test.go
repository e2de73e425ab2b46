package plan_test

import (
	"context"
	"fmt"

	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
)

// Plan that an environment has a version, without a change.
func Example() {
	var planner *plan.Planner // with the connections of a cluster
	add := func(ctx context.Context) (*schema.Operation, error) {
		run := planner.Begin(schema.Operation{Operation: schema.VerbAdd, Environment: "shop"}, plan.Options{DryRun: true})
		return run.InNamespaces(ctx, "", func(ctx context.Context) error {
			if err := run.ReadCatalog(ctx); err != nil {
				return err
			}
			found, err := run.Choose(ctx, "db", "latest")
			if err != nil {
				return err
			}
			return run.Place(ctx, []*plan.Placement{{Import: found, Verb: schema.VerbAdd, Namespaces: run.Namespaces}})
		})
	}
	_ = add
}

// Powers are allowed by name, or those of one object.
func ExampleAllowance() {
	power := schema.Power{Name: schema.PowerReadSecrets, Object: schema.ObjectRef{Kind: "Role", Namespace: "shop", Name: "operator"}}
	fmt.Println(plan.Allowance(power))
	fmt.Println(plan.Options{Allow: []string{string(schema.PowerReadSecrets)}}.Unallowed([]schema.Power{power}))
	// Output:
	// read-secrets:Role/shop/operator
	// []
}
