package controller

import (
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/example-solution/api"
)

func TestCollector(t *testing.T) {
	tea := website(func(w *api.Website) { w.Status.ReadyReplicas = 1 })
	cake := &api.Website{ObjectMeta: metav1.ObjectMeta{Name: "cake", Namespace: "shop"}}
	w := newWorld(t, tea, cake)
	const head = "# HELP website_replicas Servers of a website: wanted by its spec, or ready.\n# TYPE website_replicas gauge\n"
	if declared, err := os.ReadFile("../../archive/monitoring/metrics.prom"); err != nil || !strings.Contains(string(declared), head) {
		t.Errorf("metrics.prom does not declare it: %v", err)
	}
	want := head + `
website_replicas{state="ready",website="cake"} 0
website_replicas{state="ready",website="tea"} 1
website_replicas{state="wanted",website="cake"} 1
website_replicas{state="wanted",website="tea"} 2
`
	if err := testutil.CollectAndCompare(Collector{w.client}, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if err := w.client.Delete(t.Context(), tea); err != nil {
		t.Fatal(err)
	}
	if got := testutil.CollectAndCount(Collector{w.client}); got != 2 {
		t.Errorf("after a website was deleted: got %d metrics, want 2", got)
	}
}
