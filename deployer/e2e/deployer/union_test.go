package deployer_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
)

// served expects the versions in which custom resources can be read.
func (b *bed) served(want ...string) {
	b.Helper()
	versions, _, _ := unstructured.NestedSlice(b.get(crds, "", b.crdName()).Object, "spec", "versions")
	var got []string
	for _, v := range versions {
		if version := v.(map[string]any); version["served"] == true {
			got = append(got, version["name"].(string))
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		b.Errorf("served are %q, want %q", got, want)
	}
}

// activate makes an imported version the active one.
func (b *bed) activate(version string) (*schema.Operation, error) {
	b.Helper()
	return b.Activate(b.Context(), deployer.ActivateOptions{Options: plan.Options{NoWait: true, Allow: webhookOfTests}, Solution: b.Solution, Version: version})
}

// noticed expects that one of the notices of an operation has all of these words.
func (b *bed) noticed(done *schema.Operation, err error, words ...string) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	if !slices.ContainsFunc(done.Notices, func(notice string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(notice, word) })
	}) {
		b.Errorf("no notice with %q: %q", words, done.Notices)
	}
}

// compatible expects a matrix: for each version what becomes of the first operator, and in parentheses what the last
// version means for all of it.
func (b *bed) compatible(c *schema.Compatibility, err error, want string) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	data, err := json.Marshal(c)
	if err == nil {
		err = schema.ValidateOutput("compatibility", data)
	}
	if err != nil {
		b.Error(err)
	}
	var cells []string
	for _, v := range c.Versions {
		cells = append(cells, fmt.Sprintf("%s %s", v.Version, v.Operators[0].Verdict))
	}
	if got := fmt.Sprintf("%s active: %s (%s)", c.Active, strings.Join(cells, "; "), c.Versions[len(c.Versions)-1].Verdict); got != want {
		b.Errorf("got  %s\nwant %s\n%s", got, want, data)
	}
}
