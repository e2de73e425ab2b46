package testcluster_test

import (
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{FakeNodes: 2}) }

func TestVersion(t *testing.T) {
	c := testcluster.Shared(t)
	version, err := c.Client().Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if got := version.GitVersion; got != c.KubernetesVersion() {
		t.Errorf("the API server says %s, want %s", got, c.KubernetesVersion())
	}
}

// TestUsers checks that a user has the rights of a group, and no others.
func TestUsers(t *testing.T) {
	c := testcluster.Shared(t)
	kubeconfig, err := c.KubeconfigFor("carol", "readers")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	carol, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = carol.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("without a role: %v, want forbidden", err)
	}
	_, err = c.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "readers"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The API server learns of roles by watching them.
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		_, err = carol.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsForbidden(err) || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		t.Errorf("with a role: %v", err)
	}
}

// TestRestartAPIServer checks that the server is gone after a stop, comes back where it was, and has lost nothing.
func TestRestartAPIServer(t *testing.T) {
	c := testcluster.Shared(t)
	namespaces := c.Client().CoreV1().Namespaces()
	_, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.StopAPIServer()
	if _, err := namespaces.Get(t.Context(), "kept", metav1.GetOptions{}); err == nil {
		t.Error("somebody answers after StopAPIServer")
	}
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := namespaces.Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// TestStop checks that a cluster beside the shared one works and leaves nothing behind.
func TestStop(t *testing.T) {
	other, err := testcluster.Start(t.Context(), testcluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Client().Discovery().ServerVersion(); err == nil {
		t.Error("the API server still answers")
	}
	if _, err := os.Stat(other.Dir); !os.IsNotExist(err) {
		t.Errorf("%s: %v, want that it does not exist", other.Dir, err)
	}
}
