package lint_test

import (
	"context"
	"fmt"

	"github.com/solutionctl/solutionctl/lint"
)

// Judge an archive, and the changes since the version before.
func Example() {
	all, err := lint.Judge(context.Background(), []string{"db-1.4.0.iso"}, lint.Request{Against: "db-1.3.0.iso", Deep: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, target := range all.Targets {
		for _, finding := range target.Findings {
			fmt.Println(finding)
		}
	}
	fmt.Println(all.Errors, "errors")
}
