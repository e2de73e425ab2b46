package host

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestReplicas ends an import when enough endpoints serve the archives, and not before.
func TestReplicas(t *testing.T) {
	var asked atomic.Int32
	endpoint := func(from int32) string { // one that serves from a question on
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) < from {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	w := newWorld(t)
	w.cluster.registry = &schema.ClusterRegistry{Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn, Endpoints: []string{endpoint(0)}}
	w.options.Replicas, w.options.ReplicaTimeout = 2, time.Minute
	if _, err := w.do(w.archive("1.0.0")); report.CodeOf(err) != report.Refused || !strings.Contains(err.Error(), "the cluster records 1") || len(w.stored()) > 0 {
		t.Errorf("too few endpoints: %v", err)
	}
	w.cluster.registry.Endpoints = append(w.cluster.registry.Endpoints, endpoint(4))
	if _, err := w.do(w.archive("1.0.0")); err != nil || asked.Load() < 4 {
		t.Errorf("ended after %d questions: %v", asked.Load(), err)
	}
	w.cluster.registry.Endpoints[1] = endpoint(1 << 30)
	w.options.ReplicaTimeout = time.Millisecond
	done, err := w.do(w.archive("1.1.0"))
	if report.CodeOf(err) != report.Unavailable || !strings.Contains(err.Error(), "imported, but ") || done == nil || !done.Recorded {
		t.Errorf("an endpoint that never serves it: %+v, %v", done, err)
	}
	w.Cluster = nil
	if _, err = w.do(w.archive("1.2.0")); report.CodeOf(err) != report.Usage {
		t.Errorf("without a cluster: %v", err)
	}
}
