package records_test

import (
	"fmt"

	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
)

// Which version "latest" stands for, and how a change to another one is called.
func ExampleCatalog_Find() {
	var catalog records.Catalog
	for _, version := range []string{"1.9.0", "1.10.0", "2.0.0-rc.1"} {
		catalog.Put(schema.Import{Name: "shop", Version: version})
	}
	latest, _, _ := catalog.Find("shop", schema.ActiveLatest)
	fmt.Println(latest.ID(), records.DirectionTo("1.9.0", latest))
	_, _, err := catalog.Find("shop", "3.0.0")
	fmt.Println(err)
	// Output:
	// shop-1.10.0 upgrade
	// version 3.0.0 of Solution shop was not imported
}
