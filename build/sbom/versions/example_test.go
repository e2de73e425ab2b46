package versions_test

import (
	"fmt"

	"github.com/solutionctl/solutionctl/build/sbom/versions"
)

// A backport of Debian is older than the version that it was made of.
func ExampleParseRange() {
	set, err := versions.ParseRange("deb", ">=3.0.0|<3.0.15")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, version := range []string{"3.0.11-1~deb12u2", "3.0.15~rc1-1", "3.0.15-1"} {
		inside, err := set.Contains(version)
		fmt.Println(version, inside, err)
	}
	// Output:
	// 3.0.11-1~deb12u2 true <nil>
	// 3.0.15~rc1-1 true <nil>
	// 3.0.15-1 false <nil>
}
