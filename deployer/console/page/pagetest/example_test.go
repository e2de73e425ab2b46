package pagetest_test

import (
	"fmt"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/console/page/pagetest"
)

func ExampleSamples() {
	loud := pagetest.Samples(strings.ToUpper)
	fmt.Println(loud["confirmation"].Title())
	// Output: UNIMPORT SHOP 0.9.0?
}
