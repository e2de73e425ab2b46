package health_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/health"
)

func read(t *testing.T, text string, values ...any) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(fmt.Appendf(nil, text, values...), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// TestBackingOff finds the pods that only wait for their next pull, and no others.
func TestBackingOff(t *testing.T) {
	const (
		set = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: %s, namespace: demo, uid: %[1]s, labels: {app: web},
  annotations: {deployment.kubernetes.io/revision: "%s"}, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: %s, controller: true}]},
  spec: {selector: {matchLabels: {app: web}}}}`
		pod = `{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: demo, uid: %[1]s, labels: {app: web},
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: %s, controller: true}]}, status: {%s}}`
		backOff = "{name: app, state: {waiting: {reason: ImagePullBackOff}}}"
		running = "{name: app, state: {running: {}}}"
	)
	selector := "{apiVersion: apps/v1, kind: %s, metadata: {name: web, namespace: demo, uid: web}, spec: {selector: {matchLabels: {app: web}}}}"
	list := objects{list: []*unstructured.Unstructured{
		read(t, set, "old", "1", "web"), read(t, set, "new", "2", "web"), read(t, set, "strange", "9", "other"),
		read(t, pod, "stuck", "new", "containerStatuses: ["+backOff+"]"),
		read(t, pod, "initial", "new", "initContainerStatuses: ["+backOff+"]"),
		read(t, pod, "half", "new", "containerStatuses: ["+backOff+", "+running+"]"),
		read(t, pod, "pulling", "new", "containerStatuses: [{name: app, state: {waiting: {reason: ContainerCreating}}}]"),
		read(t, pod, "crashing", "new", "containerStatuses: [{name: app, state: {waiting: {reason: CrashLoopBackOff}}}]"),
		read(t, pod, "before", "old", "containerStatuses: ["+backOff+"]"),
		read(t, pod, "foreign", "strange", "containerStatuses: ["+backOff+"]"),
		read(t, pod, "own", "web", "containerStatuses: ["+backOff+"]"),
	}}
	for kind, want := range map[string]string{"Deployment": "stuck initial", "StatefulSet": "own", "DaemonSet": "own", "Job": ""} {
		var names []string
		for _, pod := range health.BackingOff(t.Context(), list, read(t, selector, kind)) {
			names = append(names, pod.GetName())
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}
