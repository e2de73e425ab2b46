package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestCrashAfterTheStart lets a container end right after it has started, in workloads without a probe, which are ready by
// then. They do not count as ready until it has run for a while.
func TestCrashAfterTheStart(t *testing.T) {
	in := testcluster.StartFor(t, testcluster.Options{FakeNodes: 1})
	for _, test := range []struct{ name, text string }{
		{"Deployment", workloadOf("Deployment", "")},
		{"StatefulSet", workloadOf("StatefulSet", "")},
		{"StatefulSet on deletion", workloadOf("StatefulSet", "updateStrategy: {type: OnDelete}")},
		{"DaemonSet", workloadOf("DaemonSet", "")},
	} {
		for _, heals := range []bool{true, false} {
			t.Run(fmt.Sprint(test.name, " heals ", heals), func(t *testing.T) {
				t.Parallel()
				b := newBedOn(t, in)
				plan := b.plan(b.release("1", test.text))
				applied := make(chan error)
				go func() { applied <- b.Apply(t.Context(), plan, engine.ApplyOptions{Timeout: 40 * time.Second}) }()
				b.until("it is ready", func() bool {
					for _, event := range b.Sink.Events() {
						if event.Step == "wait" && strings.Contains(event.Note, "has to stay so") {
							return true
						}
					}
					select {
					case err := <-applied:
						t.Fatalf("it counts as one that works: %v", err)
					default:
					}
					return false
				})
				ended := `"restartCount": 3, "lastState": {"terminated": {"exitCode": 7, "reason": "Error", "finishedAt": "2026-01-01T00:00:00Z", "startedAt": "2026-01-01T00:00:00Z"}}`
				b.container("False", `"ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}, `+ended)
				if heals {
					b.until("it is not ready", func() bool {
						for _, event := range b.Sink.Events() {
							if event.Step == "wait" && (strings.Contains(event.Note, "ready") || strings.Contains(event.Note, "available")) && !strings.Contains(event.Note, "has to stay so") {
								return true
							}
						}
						return false
					})
					start := time.Now().Add(-25 * time.Second).UTC().Format(time.RFC3339) // of the thirty seconds for one that has failed
					b.container("True", `"ready": true, "state": {"running": {"startedAt": "`+start+`"}}, `+ended)
					if err := <-applied; err != nil {
						t.Fatal(err)
					}
					return
				}
				b.failed(<-applied, report.Timeout, "ends again and again (3 times so far): exit code 7")
			})
		}
	}
}

// container writes the status of the only pod's container, as its node would.
func (b *bed) container(ready, status string) {
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
