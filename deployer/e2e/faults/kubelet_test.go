//go:build linux

package faults

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/loader"
)

// TestRefusedPod checks a loader that finds an object created by another user since its plan. Its pod reports that and its own identity,
// and the Job starts no other pod, as the real controller of Jobs understands its policy.
func TestRefusedPod(t *testing.T) {
	l := SharedLane(t)
	begun := &Verb{Name: "a run that is refused", base: activeOld, prepare: [][]string{create, startPod}, files: loaderFiles}
	if err := l.setUp(t.Context(), begun); err != nil {
		t.Fatal(err)
	}
	other := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "first"}, "data": map[string]any{"part": "mine"}}}
	if _, err := l.client.Resource(configMapResource).Namespace(l.environment).Create(t.Context(), other, metav1.CreateOptions{FieldManager: "other"}); err != nil {
		t.Fatal(err)
	}
	defer l.kubelet(t.Context())()
	r, err := l.run(t.Context(), "deploy", "loader", "start", "-f", "pod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if r.code() != "conflict" || !strings.Contains(r.output, "ConfigMap "+l.environment+"/first") {
		t.Errorf("%s", r.output)
	}
	jobs, err := l.client.Resource(jobResource).Namespace(systemNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: loader.LabelRun})
	if err != nil || len(jobs.Items) != 1 {
		t.Fatalf("%d Jobs, %v", len(jobs.Items), err)
	}
	failed, _, _ := unstructured.NestedInt64(jobs.Items[0].Object, "status", "failed")
	text, err := jobs.Items[0].MarshalJSON()
	if err != nil || failed != 1 || !strings.Contains(string(text), `"reason":"PodFailurePolicy"`) {
		t.Errorf("%d pods failed: %s, %v", failed, text, err)
	}
}
