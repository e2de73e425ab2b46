package deployer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestHistoryReasons checks that a failed operation keeps its reason in the history until it is finished or replaced by another.
func TestHistoryReasons(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", plain)
	b.Server.Stall("Deployment")
	_, err := add("1.0.0")(t.Context(), b.Deployer, plan.Options{Timeout: time.Second})
	if report.CodeOf(err) != report.Timeout {
		t.Fatal(err)
	}
	last := func() schema.HistoryEntry {
		t.Helper()
		history, err := b.Records.History(t.Context(), records.HistoryOptions{Environment: site, Solution: shop})
		if err != nil || len(history.Operations) == 0 {
			t.Fatal(history, err)
		}
		return history.Operations[0]
	}
	failed := last()
	if failed.Outcome != schema.DeploymentPending || failed.Failure == nil || failed.Failure.Code != report.Timeout ||
		!strings.Contains(failed.Failure.Message, "Deployment site/shop-operator") || strings.ContainsAny(failed.Failure.Message, "\n\t") {
		t.Errorf("%+v: %+v", failed, failed.Failure)
	}
	b.Server.Stall()
	if finished := must(b, add("1.0.0")); !finished.Parts[0].Resumes {
		t.Errorf("it does not know of the first run: %+v", finished)
	}
	if done := last(); done.Outcome != schema.DeploymentDone || done.Failure != nil || done.Revision != failed.Revision {
		t.Errorf("%+v: %+v", done, done.Failure)
	}
}
