package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestCrashAfterTheStart ends a container right after its start, in a workload without a probe, which is ready at once. The workload does
// not count as ready until the container has run for a while.
func TestCrashAfterTheStart(t *testing.T) {
	t.Parallel()
	b := newFixtureOn(t, testcluster.StartFor(t, testcluster.Options{FakeNodes: 1}))
	plan := b.plan(b.release("1", workloadOf("Deployment", "")))
	applied := make(chan error, 1)
	go func() {
		applied <- b.Apply(t.Context(), plan, engine.ApplyOptions{Timeout: testcluster.Deadline(time.Minute)})
	}()
	seen := func(since int, match func(note string) bool) func() bool {
		return func() bool {
			select {
			case err := <-applied:
				t.Fatalf("it counts as one that works: %v", err)
			default:
			}
			return slices.ContainsFunc(b.Sink.Events()[since:], func(e report.Event) bool { return e.Step == "wait" && match(e.Note) })
		}
	}
	settling := func(note string) bool { return strings.Contains(note, "has to stay so") }
	b.until("it is ready", seen(0, settling))
	before := len(b.Sink.Events())
	ended := `"restartCount": 3, "lastState": {"terminated": {"exitCode": 7, "reason": "Error", "finishedAt": "2026-01-01T00:00:00Z", "startedAt": "2026-01-01T00:00:00Z"}}`
	b.container("False", `"ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}, `+ended)
	b.until("it is not ready", seen(before, func(note string) bool { return note != "" && !settling(note) }))
	start := time.Now().Add(-25 * time.Second).UTC().Format(time.RFC3339) // of the thirty seconds for one that has failed
	b.container("True", `"ready": true, "state": {"running": {"startedAt": "`+start+`"}}, `+ended)
	if err := <-applied; err != nil {
		t.Fatal(err)
	}
}

// container writes the status of the container of the only pod, as a kubelet does.
func (b *fixture) container(ready, status string) {
	b.Helper()
	for pod, err := range b.Cluster.List(b.Context(), kube.GroupVersionKind{Version: "v1", Kind: "Pod"}, b.Namespace, metav1.ListOptions{}) {
		if err != nil {
			b.Fatal(err)
		}
		now := time.Now().UTC().Format(time.RFC3339)
		condition := func(name string) string {
			return `{"type": "` + name + `", "status": "` + ready + `", "lastTransitionTime": "` + now + `"}`
		}
		b.patch("test", "pods", pod.GetName(), `{"status": {"conditions": [`+condition("Initialized")+`, `+condition("ContainersReady")+`, `+condition("Ready")+`],
			"containerStatuses": [{"name": "w", "image": "x", "imageID": "", `+status+`}]}}`, "status")
	}
}
