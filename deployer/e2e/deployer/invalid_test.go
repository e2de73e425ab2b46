package deployer_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestActivationRefusesInvalid checks a definition under which a stored object would become invalid, so that it could not be changed any
// more. It is refused until that is accepted, and compatibility reports it beforehand.
func TestActivationRefusesInvalid(t *testing.T) {
	t.Parallel()
	for name, field := range map[string]string{
		"type":    "colour: {type: integer}",
		"enum":    "colour: {type: string, enum: [red, green]}",
		"pattern": "colour: {type: string, pattern: '^r'}",
		"length":  "colour: {type: string, maxLength: 3}",
		"rule":    "colour: {type: string, x-kubernetes-validations: [{rule: \"self != 'blue'\", message: not blue}]}",
		"format":  "colour: {type: string, format: ipv4}",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.activated("1.0.0", content{Fields: "colour: {type: string}, wheels: {type: integer}"})
			b.newClock(b.Env, "sky", "colour: blue")
			b.newClock(b.Env, "none", "wheels: 4")
			b.mustAdd("1.0.0")
			b.imported("2.0.0", content{Fields: field + ", wheels: {type: integer}"})
			o := deployer.ActivateOptions{Options: plan.Options{NoWait: true}, Solution: b.Solution, Version: "2.0.0"}
			_, err := b.Activate(t.Context(), o)
			b.refused(err, report.Refused, "Clock "+b.Env+"/sky: spec.colour", "--accept-invalid "+b.crdName())
			if strings.Contains(err.Error(), "none") {
				t.Error(err)
			}
			c, err := b.Definitions.Compatibility(t.Context(), definitions.CompatibilityOptions{Solution: b.Solution})
			b.compatible(c, err, "1.0.0 active: 1.0.0 yes; 2.0.0 yes (no)")
			if got := c.Versions[1].Refusals; len(got) != 1 || !strings.Contains(got[0], "sky: spec.colour") {
				t.Errorf("refusals: %q", got)
			}
			o.AcceptInvalid = []string{"clocks.elsewhere"}
			_, err = b.Activate(t.Context(), o)
			b.refused(err, report.Usage, "clocks.elsewhere")
			o.AcceptInvalid = []string{b.crdName()}
			done, err := b.Activate(t.Context(), o)
			b.noticed(done, err, "accepted", "sky: spec.colour")
			if got, _, _ := unstructured.NestedString(b.get(b.clock(), b.Env, "sky").Object, "spec", "colour"); got != "blue" {
				t.Errorf("it is %q now", got)
			}

			// The operator of that version does not accept it either; that is a decision of its own.
			change := deployer.ChangeOptions{
				Options: o.Options, Direction: records.Up, Environment: b.Env, Solution: b.Solution, Version: "2.0.0",
			}
			_, err = b.Change(t.Context(), change)
			b.refused(err, report.Refused, "Clock "+b.Env+"/sky", "--accept-invalid "+b.crdName())
			change.AcceptInvalid = o.AcceptInvalid
			if _, err = b.Change(t.Context(), change); err != nil {
				t.Error(err)
			}

			// What is wrong already is no matter of the next version.
			b.imported("2.1.0", content{Fields: field + ", wheels: {type: integer, maximum: 4}"})
			if _, err = b.activate("2.1.0"); err != nil {
				t.Error(err)
			}
		})
	}
}
