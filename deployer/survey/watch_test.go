package survey_test

import (
	"context"
	"errors"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestWatchStatus deletes what is deployed while its status is watched: the next status reports it. The watch ends with its context,
// without an error, and with the error of the function that it calls.
func TestWatchStatus(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", deployertest.Content{})
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	var seen []schema.DeploymentHealth
	watched := b.Connect().Survey
	err := watched.WatchStatus(ctx, survey.StatusOptions{}, func(s *schema.Status, err error) error {
		if err != nil {
			return err
		}
		seen = append(seen, s.Environments[0].Namespaces[0].Deployments[0].Health)
		if len(seen) == 1 {
			b.Deleted("Deployment", site, shop+"-operator")
		} else {
			stop()
		}
		return nil
	})
	if err != nil || len(seen) != 2 || seen[0] != schema.HealthReady || seen[1] == schema.HealthReady {
		t.Errorf("the watch ends with %v after %v", err, seen)
	}

	full := errors.New("no space")
	if err = watched.WatchStatus(b.Context(), survey.StatusOptions{}, func(*schema.Status, error) error { return full }); !errors.Is(err, full) {
		t.Errorf("the watch ends with %v, want the error of show", err)
	}
	b.Only(site, nil)
	if err = b.Connect().Survey.WatchStatus(b.Context(), survey.StatusOptions{}, func(*schema.Status, error) error { return nil }); report.CodeOf(err) != report.Forbidden {
		t.Errorf("a user who is not allowed to see the status: %v", err)
	}
}
