package resilience_test

import (
	"fmt"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/e2e/proxy"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

// mostWatches is how many watches of one kind a verb may have open, however many namespaces it is for.
const mostWatches = 2

// TestFleet deploys two Solutions to an environment of five namespaces, and counts watches.
func TestFleet(t *testing.T) {
	t.Parallel()
	testcluster.Long(t, "TestRequests, which counts no watches")
	one, other := newBed(t), newBed(t)
	other.Env = one.Env
	var watches proxy.Watches
	p := proxy.New(t, one.Server, watches.Count)
	for i := range 5 {
		one.must("env create ENV --namespace " + verb(fmt.Sprintf("%s-%d", one.Env, i)))
	}
	for _, b := range []*bed{one, other} {
		b.Kubeconfig = p.Kubeconfig
		b.must("activate NAME 1.1.0")
	}
	for _, v := range []verb{"add ENV NAME 1.0.0", "upgrade ENV NAME 1.1.0", "rollback ENV NAME", "remove ENV NAME"} {
		for _, b := range []*bed{one, other} {
			b.must(v)
		}
	}
	one.must("env delete ENV --yes")
	most := watches.Most()
	for resource, n := range most {
		if n > mostWatches {
			t.Errorf("%d watches of %s at once", n, resource)
		}
	}
	if most["deployments"] == 0 {
		t.Errorf("nothing was waited for: %v", most)
	}
	t.Log(most)
}
