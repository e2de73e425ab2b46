package health_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/health"
)

// single is the object in a document.
func single(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	return parse(t, []byte(text))[0]
}

func TestUnsteady(t *testing.T) {
	const (
		web  = "{name: web, uid: w, namespace: demo}"
		head = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: " + web + "\nspec: {selector: {matchLabels: {app: web}}}"
		pod  = `apiVersion: v1
kind: Pod
metadata: {name: web-0, uid: p, namespace: demo, labels: {app: web}, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, uid: w, controller: true}]}
spec: {containers: [{name: c}, {name: asked, readinessProbe: {tcpSocket: {port: 80}}}, {name: begun, startupProbe: {tcpSocket: {port: 80}}}, {name: lives, livenessProbe: {tcpSocket: {port: 80}}}], initContainers: [{name: side, restartPolicy: Always}, {name: first}]}
status: `
		ended = "restartCount: 2, lastState: {terminated: {exitCode: 1}}"
	)
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	started := func(ago string) string {
		d, err := time.ParseDuration(ago)
		if err != nil {
			t.Fatal(err)
		}
		return "state: {running: {startedAt: " + `"` + now.Add(-d).Format(time.RFC3339) + `"}}`
	}
	for _, test := range []struct {
		name, status string
		wait         time.Duration
		problem      string
	}{
		{"runs for long", "{containerStatuses: [{name: c, " + started("1h") + "}]}", 0, ""},
		{"has just started", "{containerStatuses: [{name: c, " + started("3s") + "}]}", 7 * time.Second, ""},
		{"has answered its probe", "{containerStatuses: [{name: asked, ready: true, " + started("3s") + "}]}", 0, ""},
		{"has not answered its probe", "{containerStatuses: [{name: asked, " + started("3s") + "}]}", 7 * time.Second, ""},
		{"has answered the probe of its start", "{containerStatuses: [{name: begun, ready: true, " + started("3s") + "}]}", 0, ""},
		{"has a probe of its life only", "{containerStatuses: [{name: lives, ready: true, " + started("3s") + "}]}", 7 * time.Second, ""},
		{"has answered its probe before it ended, too", "{containerStatuses: [{name: asked, ready: true, " + started("3s") + ", " + ended + "}]}", 27 * time.Second, "runs again"},
		{"started in the future", "{containerStatuses: [{name: c, " + started("-1m") + "}]}", 70 * time.Second, ""},
		{"runs again", "{containerStatuses: [{name: c, " + started("3s") + ", " + ended + "}]}", 27 * time.Second, "runs again; it has ended (2 times so far): exit code 1"},
		{"runs again, and its clock was set back by hours", "{containerStatuses: [{name: c, " + started("-6h") + ", " + ended + "}]}", 0, ""},
		{"its clock was set back by hours", "{containerStatuses: [{name: c, " + started("-6h") + "}]}", 0, ""},
		{"ends well again and again", "{containerStatuses: [{name: c, " + started("3s") + ", restartCount: 1, lastState: {terminated: {exitCode: 0}}}]}", 27 * time.Second, "runs again"},
		{"has run again for long", "{containerStatuses: [{name: c, " + started("1h") + ", " + ended + "}]}", 0, ""},
		{"waits to be started again", "{containerStatuses: [{name: c, state: {waiting: {reason: CrashLoopBackOff}}, " + ended + "}]}", 10 * time.Second, "ends again and again (2 times so far)"},
		{"has ended", "{containerStatuses: [{name: c, state: {terminated: {exitCode: 2}}}]}", 10 * time.Second, "has ended: exit code 2"},
		{"waits for its image", "{containerStatuses: [{name: c, state: {waiting: {reason: ImagePullBackOff}}}]}", 0, ""},
		{"sidecar", "{initContainerStatuses: [{name: side, " + started("3s") + ", " + ended + "}], containerStatuses: [{name: c, " + started("1h") + "}]}", 27 * time.Second, "container side: runs again"},
		{"initialization", "{initContainerStatuses: [{name: first, state: {terminated: {exitCode: 0}}, " + ended + "}], containerStatuses: [{name: c, " + started("1h") + "}]}", 0, ""},
		{"succeeded", "{phase: Succeeded, containerStatuses: [{name: c, state: {terminated: {exitCode: 0}}}]}", 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			age := func(at time.Time) time.Duration { return now.Sub(at) }
			one := single(t, pod+test.status)
			found := health.LooksUnsteady(t.Context(), objects{list: []*unstructured.Unstructured{one}}, single(t, head), age)
			if reasons := strings.Join(found.Reasons, "; "); found.Wait != test.wait || !strings.Contains(reasons, test.problem) || (reasons == "") != (test.problem == "") {
				t.Errorf("%+v", found)
			}
			if (found.Which == "") != (test.wait == 0) {
				t.Errorf("it is about %q", found.Which)
			}
			if problem, crashes := health.Crashes(one, age); !strings.Contains(problem.Text, test.problem) || crashes != (test.problem != "") {
				t.Errorf("it crashes: %q", problem)
			}
		})
	}
}

func TestWorkloadOf(t *testing.T) {
	for owner, want := range map[string]string{
		"{kind: ReplicaSet, name: web-5d9, controller: true}": "Deployment web", "{kind: ReplicaSet, name: alone, controller: true}": "ReplicaSet alone",
		"{kind: DaemonSet, name: web, controller: true}": "DaemonSet web", "{kind: Node, name: n}": " ",
	} {
		kind, name := health.WorkloadOf(single(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {pod-template-hash: 5d9}, ownerReferences: ["+owner+"]}"))
		if got := kind + " " + name; got != want {
			t.Errorf("%s: %q, want %q", owner, got, want)
		}
	}
}

// TestOnDelete: workloads whose pods are replaced only after a manual deletion still need running pods.
func TestOnDelete(t *testing.T) {
	const head = "apiVersion: apps/v1\nmetadata: {name: web, generation: 1}\n"
	for text, ready := range map[string]bool{
		"kind: StatefulSet\nspec: {replicas: 2, updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 1, replicas: 2, readyReplicas: 1}":                                                                        false,
		"kind: StatefulSet\nspec: {replicas: 2, updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 1, replicas: 2, readyReplicas: 2}":                                                                        true,
		"kind: StatefulSet\nspec: {replicas: 0, updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 1, replicas: 0}":                                                                                          true,
		"kind: DaemonSet\nspec: {updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2, numberReady: 1}": false,
	} {
		if got := health.Of(single(t, head+text)); got.Ready != ready {
			t.Errorf("%s\n%+v", text, got)
		}
	}
}
