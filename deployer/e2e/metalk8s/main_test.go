// Package metalk8s_test holds deployer/metalk8s against a real API server and against what MetalK8s' own tools do.
package metalk8s_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{}) }

// connect returns the documents of the cluster that the tests share, and a client for changes by another user.
func connect(t *testing.T) (*metalk8s.Documents, *kubernetes.Clientset) {
	t.Helper()
	shared := testcluster.Shared(t)
	return documents(t, shared.Kubeconfig), shared.Client()
}

func documents(t *testing.T, kubeconfig string) *metalk8s.Documents {
	t.Helper()
	c, err := cluster.Connect(cluster.Options{Kubeconfig: kubeconfig, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return &metalk8s.Documents{Cluster: c}
}

// reset removes the ConfigMap with what was imported, and its namespace.
func reset(t *testing.T, client *kubernetes.Clientset) {
	t.Helper()
	ctx := t.Context()
	err := client.CoreV1().Namespaces().Delete(ctx, metalk8s.SolutionsNamespace, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	awaitGone(t, client, metalk8s.SolutionsNamespace)
}

// awaitGone waits until a namespace is gone.
func awaitGone(t *testing.T, client *kubernetes.Clientset, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testcluster.Deadline(time.Minute))
	defer cancel()
	for ctx.Err() == nil {
		watch, err := client.CoreV1().Namespaces().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			watch.Stop()
			return
		}
		for event := range watch.ResultChan() {
			if event.Type == "DELETED" {
				break
			}
		}
		watch.Stop()
	}
	t.Fatalf("namespace %s is still there", name)
}

func mustData(t *testing.T, client *kubernetes.Clientset, namespace, name string) map[string]string {
	t.Helper()
	object, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object.Data
}

func newNamespace(t *testing.T, client *kubernetes.Clientset, name string, labels, annotations map[string]string) {
	t.Helper()
	_, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func newConfigMap(t *testing.T, client *kubernetes.Clientset, namespace, name string, data map[string]string) {
	t.Helper()
	_, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func entry(t *testing.T, name, version string) schema.ImportedSolution {
	t.Helper()
	manifest := &schema.Solution{APIVersion: schema.APIVersion, Kind: schema.KindSolution}
	manifest.Metadata.Name, manifest.Spec.Version = name, version
	e, err := schema.NewImportedSolution(manifest.Merged(nil), "/archives/"+name+"-"+version+".iso")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// check fails the test on an error.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError checks the code of an error and what it and its hints say.
func wantError(t *testing.T, err error, code report.Code, words ...string) {
	t.Helper()
	if report.CodeOf(err) != code {
		t.Fatalf("got %q, want code %s: %v", report.CodeOf(err), code, err)
	}
	text := err.Error() + "\n" + strings.Join(report.Hints(err), "\n")
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q is not in:\n%s", word, text)
		}
	}
}

func generic(t *testing.T, data string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(data), &value); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return value
}
