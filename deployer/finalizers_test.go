package deployer_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/plan"
)

// connected is a deployer on a server.
func connected(t *testing.T, s *clustertest.Server) *deployer.Deployer {
	t.Helper()
	c, err := cluster.Connect(cluster.Options{Kubeconfig: s.Kubeconfig(t), Now: time.Now, Retry: -1})
	if err != nil {
		t.Fatal(err)
	}
	return deployer.New(deployer.Config{Cluster: c, Now: time.Now, Version: "1.0.0", Identity: "test"})
}

// TestForcedDeletionIsRepeated runs the deletion of an environment again that was forced before.
func TestForcedDeletionIsRepeated(t *testing.T) {
	d := connected(t, clustertest.Start(t))
	o := environments.DeleteOptions{Environment: "gone"}
	var err error
	if o.Release, err = d.Held(t.Context(), environments.HeldOptions{Environment: o.Environment}); err != nil || len(o.Release) > 0 {
		t.Fatalf("%v, %v", o.Release, err)
	}
	done, err := d.DeleteEnvironment(t.Context(), o)
	if err != nil || len(done.Parts) > 0 || !strings.Contains(strings.Join(done.Notices, "\n"), `there is no environment "gone"`) {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestHeldAsksForNothingDeprecated: the API server warns of every list of Endpoints, and the warning would be about this program.
func TestHeldAsksForNothingDeprecated(t *testing.T) {
	b := deployertest.New(t)
	b.Server.Requests()
	if _, err := b.Held(t.Context(), environments.HeldOptions{Environment: site}); err != nil {
		t.Fatal(err)
	}
	for _, request := range b.Server.Requests() {
		if strings.Contains(request, "/endpoints") && !strings.Contains(request, "/endpointslices") {
			t.Errorf("asked was %s", request)
		}
	}
}

// TestHeldWithoutKind: a CustomResourceDefinition is deleted after the kinds were read and before its objects are listed.
func TestHeldWithoutKind(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", plain)
	deleted := false
	b.Server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/clocks") && !deleted {
			deleted = true
			b.Deleted("CustomResourceDefinition", "", "clocks."+deployertest.Group(shop))
		}
		return false
	}
	if held, err := b.Held(t.Context(), environments.HeldOptions{Environment: site}); err != nil || len(held) > 0 || !deleted {
		t.Errorf("%v, %v, CustomResourceDefinition deleted: %t", held, err, deleted)
	}
}

// TestEndpointsAreNotListed: a deletion lists what is in its namespaces, but no Endpoints, about which the API server warns.
func TestEndpointsAreNotListed(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", deployertest.Content{})
	b.Server.Requests()
	if _, err := b.Held(t.Context(), environments.HeldOptions{Environment: site}); err != nil {
		t.Fatal(err)
	}
	must(b, deleteSite(plan.DeleteData))
	requests := b.Server.Requests()
	if !strings.Contains(strings.Join(requests, " "), "/services") {
		t.Errorf("nothing is listed: %q", requests)
	}
	for _, r := range requests {
		if strings.Contains(r, "/endpoints") && !strings.Contains(r, "/endpointslices") {
			t.Errorf("listed are Endpoints: %s", r)
		}
	}
}
