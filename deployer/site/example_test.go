package site_test

import (
	"fmt"

	"github.com/solutionctl/solutionctl/deployer/site"
)

// Labels of monitors are changed one by one: KEY=VALUE sets a label, KEY- removes it.
func ExampleWithLabels() {
	labels, err := site.WithLabels(map[string]string{"release": "old"}, []string{"release=kps", "team=shop", "team-"})
	fmt.Println(labels, err)
	_, err = site.WithLabels(nil, []string{"app.kubernetes.io/part-of=kps"})
	fmt.Println(err)
	// Output:
	// map[release:kps] <nil>
	// label app.kubernetes.io/part-of identifies the owner of an object: it cannot have another value
}
