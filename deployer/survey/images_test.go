package survey_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
)

// TestRunningImages: pods that wait for a node, that have ended, and those of other namespaces do not count.
func TestRunningImages(t *testing.T) {
	b := deployertest.New(t)
	b.Server.Put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: elsewhere}}")
	pod := func(namespace, name, node, phase, containers string) {
		b.Server.Put(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: %s}, spec: {nodeName: %q, %s}, status: {phase: %s}}`, name, namespace, node, containers, phase))
	}
	pod(site, "a", "one", "Running", "initContainers: [{name: i, image: init}], containers: [{name: a, image: first}, {name: b, image: second}]")
	pod(site, "b", "two", "Pending", "containers: [{name: a, image: first}]")
	pod(site, "c", "", "Pending", "containers: [{name: a, image: waits}]")
	pod(site, "d", "two", "Succeeded", "containers: [{name: a, image: ended}]")
	pod(site, "e", "two", "Failed", "containers: [{name: a, image: failed}]")
	pod("elsewhere", "f", "two", "Running", "containers: [{name: a, image: other}]")
	got, err := b.Survey.RunningImages(t.Context(), site)
	if diff := cmp.Diff(map[string][]string{"one": {"init", "first", "second"}, "two": {"first"}}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
