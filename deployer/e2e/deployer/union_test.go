package deployer_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
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

// TestAddNeedsAnActivationThatIsRefused checks that a hint names only a command that is possible.
func TestAddNeedsAnActivationThatIsRefused(t *testing.T) {
	t.Parallel()
	b := newJudgment(t)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	b.imported("2.0.0", content{Versions: "v2", Fields: "colour: {type: string}"})
	more := b.Env + "-more"
	b.environment(more, more)
	_, err := b.Add(t.Context(), deployer.AddOptions{Options: plan.Options{NoWait: true}, Environment: more, Solution: b.Solution, Version: "2.0.0"})
	b.refused(err, report.Refused, "version 1.0.0", "version 2.0.0 cannot become active", "environment "+b.Env+" has version 1.0.0", "deploy remove "+b.Env)
	if text := strings.Join(report.Hints(err), " "); strings.Contains(text, "activate") {
		t.Error(text)
	}
}

// TestVersionsThatDoNotGoTogether: nothing converts between them, so the way is one over a version that serves both.
func TestVersionsThatDoNotGoTogether(t *testing.T) {
	t.Parallel()
	b := newJudgment(t)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	b.imported("2.0.0", content{Versions: "v2", Fields: "colour: {type: string}"})
	_, err := b.activate("2.0.0")
	b.refused(err, report.InUse, "environment "+b.Env+" has version 1.0.0", b.crdName()+" (v1)", "spec.colour",
		"deploy remove "+b.Env+" "+b.Solution)
	b.served("v1")

	c, err := b.Definitions.Compatibility(t.Context(), definitions.CompatibilityOptions{Solution: b.Solution})
	b.compatible(c, err, "1.0.0 active: 1.0.0 yes; 2.0.0 no (no)")

	converting := func(version, crds string) {
		c := withWebhook(b)
		c.Versions, c.Manifest = crds, "operator: {requiresCRDs: [{name: "+b.crdName()+", versions: [v2]}]}"
		c.Files = map[string]string{"operator/cluster/webhook.yaml": strings.ReplaceAll(c.Files["operator/cluster/webhook.yaml"], ":1.0.0", ":"+version)}
		b.imported(version, c)
	}
	converting("1.1.0", "v1 v2")
	// The hint shows the way over the version between, without a removal.
	_, err = b.activate("2.0.0")
	b.refused(err, report.InUse, "first: solutionctl deploy activate "+b.Solution+" 1.1.0")
	if text := strings.Join(report.Hints(err), " "); strings.Contains(text, "remove") {
		t.Error(text)
	}
	if _, err = b.activate("1.1.0"); err != nil {
		t.Fatal(err)
	}
	c, err = b.Definitions.Compatibility(t.Context(), definitions.CompatibilityOptions{Solution: b.Solution})
	b.compatible(c, err, "1.1.0 active: 1.0.0 yes; 1.1.0 yes; 2.0.0 no (no)")
	_, err = b.activate("2.0.0")
	b.refused(err, report.InUse, "deploy compatibility "+b.Solution, "deploy upgrade "+b.Env+" "+b.Solution+" 1.1.0")

	// A webhook converts what its definition lists, and nothing else.
	converting("1.2.0", "v2")
	_, err = b.activate("1.2.0")
	b.refused(err, report.InUse, "its webhook", "v1")
	converting("1.3.0", "v1- v2")
	done, err := b.activate("1.3.0")
	b.noticed(done, err, "stays served for version 1.0.0", b.crdName()+" (v1)")
	b.served("v1", "v2")
}
