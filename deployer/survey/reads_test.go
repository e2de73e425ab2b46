package survey_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
)

// TestStatusListsOnce: objects that were listed to find those without a record are not listed again.
func TestStatusListsOnce(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", deployertest.Content{})
	b.Server.Requests()
	if status, err := b.Survey.Status(t.Context(), survey.StatusOptions{}); err != nil || !status.Ready {
		t.Fatalf("%+v, %v", status, err)
	}
	asked := map[string]int{}
	for _, request := range b.Server.Requests() {
		asked[request]++
	}
	for list, times := range map[string]int{
		"GET /api/v1/serviceaccounts":   1,
		"GET /apis/apps/v1/deployments": 2, // the second time without the label
		"GET /api/v1/namespaces":        1,
		"GET /api/v1/namespaces/metalk8s-solutions/configmaps/metalk8s-solutions": 1,
		"GET /api/v1/namespaces/solutionctl-system/secrets":                       1,
	} {
		if asked[list] != times {
			t.Errorf("%s: %d times, want %d, in %v", list, asked[list], times, asked)
		}
	}
}

// TestStatusDuringAdd: an object that was created after its kind was listed, and before the records were read, is listed again, and not
// reported as gone.
func TestStatusDuringAdd(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", deployertest.Content{})
	var lists atomic.Int32
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/apis/apps/v1/deployments" || strings.Contains(r.URL.RawQuery, "operator") || lists.Add(1) > 1 {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion": "apps/v1", "kind": "DeploymentList", "metadata": {"resourceVersion": "1"}, "items": []}`)
		return true
	}
	status, err := b.Survey.Status(t.Context(), survey.StatusOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if d := status.Environments[0].Namespaces[0].Deployments[0]; d.Health != schema.HealthReady || lists.Load() != 2 {
		t.Errorf("%+v after %d lists", d, lists.Load())
	}
	b.Deleted("Deployment", site, shop+"-operator")
	if status, err = b.Survey.Status(t.Context(), survey.StatusOptions{}); err != nil || status.Environments[0].Namespaces[0].Deployments[0].Health != schema.HealthFailed {
		t.Errorf("%+v, %v: the Deployment is gone", status, err)
	}
}
