package dependencies_test

import (
	"fmt"

	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func Example() {
	catalog := &records.Catalog{}
	catalog.Put(schema.Import{Name: "db", Version: "1.4.0"})
	catalog.Put(schema.Import{Name: "shop", Version: "2.0.0", DependsOn: []schema.Dependency{{Solution: "db", Version: ">=1.2"}}})

	namespace := metalk8s.Namespace{Name: "prod", Environment: "prod"}
	err := dependencies.Check(catalog, dependencies.Holdings{}, dependencies.Put("shop", "2.0.0", namespace))
	fmt.Println(err)
	fmt.Println(report.Hints(err))
	// Output:
	// shop 2.0.0 in environment prod needs db >=1.2: it is not there
	// [solutionctl deploy add prod db 1.4.0]
}
