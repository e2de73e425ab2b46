package deployer_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestPreviewActivation checks that the plan for an archive is the same before and after its import.
func TestPreviewActivation(t *testing.T) {
	b := deployertest.New(t)
	b.Activated("shop", "1.0.0", deployertest.Content{Fields: "colour: {type: string}"})
	b.Namespace("site", "site")
	b.Clock("shop", "site", "one", `colour: "red"`)
	wider := deployertest.Content{Fields: "colour: {type: string}, size: {type: string}"}
	b.Writes()
	foreseen, err := b.PreviewActivation(t.Context(), b.Record("shop", "1.1.0", wider))
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.PreviewActivation(t.Context(), b.Record("shop", "2.0.0", deployertest.Content{}))
	deployertest.Refused(t, err, report.DataLoss, "colour")
	if wrote := b.Writes(); len(wrote) > 0 {
		t.Errorf("written: %q", wrote)
	}
	if known, failure := b.Records.Imports(t.Context()); failure != nil || len(known) != 1 {
		t.Errorf("%v, %v are imported", known, failure)
	}
	b.Imported("shop", "1.1.0", wider)
	plan, err := b.Activate(t.Context(), deployer.ActivateOptions{Options: plan.Options{DryRun: true}, Solution: "shop", Version: "1.1.0"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan, foreseen); diff != "" {
		t.Errorf("-afterwards +foreseen\n%s", diff)
	}
}
