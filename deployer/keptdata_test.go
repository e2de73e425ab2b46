package deployer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestKeptData: what a removal has kept is listed, and a second removal names it and what deletes it.
func TestKeptData(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", plain)
	b.Clock(shop, site, "red", "hands: 2")
	listed := func() string {
		t.Helper()
		list, err := b.Apps.List(t.Context(), apps.Options{Environment: site})
		if err != nil {
			t.Fatal(err)
		}
		deployertest.Valid(t, "apps", list)
		return strings.Join(list.Notices, "\n")
	}
	if text := listed(); text != "" {
		t.Errorf("what is served is said to be kept: %s", text)
	}
	remove := func(data plan.DataPolicy) error {
		_, err := b.Remove(t.Context(), deployer.RemoveOptions{Environment: site, Solution: shop, Data: data})
		return err
	}
	if err := remove(plan.KeepData); err != nil {
		t.Fatal(err)
	}
	const kept = "1 of kind Clock"
	if text := listed(); !strings.Contains(text, kept) || !strings.Contains(text, "solutionctl deploy add site shop") {
		t.Errorf("the list does not show what was kept: %q", text)
	}
	deployertest.Refused(t, remove(plan.RefuseData), report.DataLoss, "was removed before, and nothing but its data is left", kept, "--delete-data", "solutionctl deploy add site shop")
	if err := remove(plan.KeepData); err != nil {
		t.Error(err)
	}
	if !slices.Contains(b.Server.Names("Clock"), site+"/red") {
		t.Error("data that was kept is gone")
	}
	var out export
	if _, err := b.Remove(t.Context(), deployer.RemoveOptions{Environment: site, Solution: shop, Data: plan.DeleteData, Export: out.open}); err != nil {
		t.Error(err)
	}
	if text := listed(); text != "" || slices.Contains(b.Server.Names("Clock"), site+"/red") {
		t.Errorf("the data is there still: %s", text)
	}
}
