package resilience_test

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/e2e/proxy"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

// TestRestarts kills the API server in the middle of every verb, before one of its changes, and starts it again.
func TestRestarts(t *testing.T) {
	t.Parallel()
	testcluster.Long(t, "TestAPIServerGoneInTheMiddle in deployer/e2e/deployer")
	clean := cleanLife(t)
	server := testcluster.StartFor(t, options)
	b := newBedOn(t, server)
	p := proxy.New(t, server)
	b.Kubeconfig = p.Kubeconfig
	for i, v := range life {
		change := int64(1 + i%3*2) // near the beginning of one, later in others
		var restart sync.WaitGroup
		p.Set(proxy.When(proxy.IsWrite, proxy.At(change, proxy.Do(func() {
			server.StopAPIServer()
			restart.Go(func() {
				if err := server.StartAPIServer(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}))))
		o := b.run(v)
		restart.Wait()
		p.Set()
		if o.Status != 0 {
			if !mayFail[o.Code] {
				t.Fatalf("%s: exit status %d\n%s", v, o.Status, o.Text)
			}
			t.Logf("%s: %s", v, o.Text)
			b.must(v)
		}
		if diff := cmp.Diff(clean[i], b.dump()); diff != "" {
			t.Errorf("after %s: -clean +this\n%s", v, diff)
		}
	}
}
