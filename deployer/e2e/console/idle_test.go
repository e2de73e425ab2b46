package console_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
)

// haste is how much faster the clock of the console goes than that of its API server.
const haste = 20

// TestIdle counts the requests of open pages to a real API server while nothing happens: an administrator, and a user whose permissions
// the API server lists by namespace.
func TestIdle(t *testing.T) {
	testcluster.Long(t, "TestQuiet of deployer/console")
	c := testcluster.StartFor(t, testcluster.Options{FakeNodes: 1, ReadyAtOnce: true})
	deployShop(t, c)
	roles := c.Client().RbacV1()
	role := &rbac.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "operator"}, Rules: []rbac.PolicyRule{{
		APIGroups: []string{"", "apps", "batch", "coordination.k8s.io", "apiextensions.k8s.io", rbac.GroupName}, Resources: []string{"*"}, Verbs: []string{"*"},
	}}}
	if _, err := roles.ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbac.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "operator"}, RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: "operator"},
		Subjects: []rbac.Subject{{APIGroup: rbac.GroupName, Kind: "User", Name: "operator"}},
	}
	if _, err := roles.ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"", "operator"} {
		t.Run("user "+user, func(t *testing.T) {
			kubeconfig, take := counted(t, c.Kubeconfig, user)
			openTabs(t, kubeconfig, 3)
			settled := func() bool {
				take()
				time.Sleep(90 * time.Second / haste)
				return !slices.ContainsFunc(take(), func(r string) bool { return strings.Contains(r, "/deployments") })
			}
			for tries := 0; !settled(); tries++ {
				if tries == 10 {
					t.Fatal("the console reads the cluster all the time")
				}
			}
			const minutes = 4
			var requests []string
			for tries := 0; tries == 0 || tries < 5 && len(requests) > 8*minutes; tries++ { // a busy machine makes the API server look absent
				time.Sleep(minutes * time.Minute / haste)
				requests = take()
			}
			t.Logf("%.1f requests a minute", float64(len(requests))/minutes)
			if len(requests) > 8*minutes { // those of the next read, and of watches that are opened again, come to 2 more
				t.Errorf("%d requests in %d minutes:\n%s", len(requests), minutes, strings.Join(requests, "\n"))
			}
		})
	}
}

// TestIdleCrashLoop counts the requests of open pages to a real API server while a container ends again and again. Its status is written as the
// kubelet does; the controllers of the cluster do the rest.
func TestIdleCrashLoop(t *testing.T) {
	testcluster.Long(t, "TestQuietCrashLoop of deployer/console")
	c := testcluster.StartFor(t, testcluster.Options{FakeNodes: 1, ReadyAtOnce: true})
	deployShop(t, c)
	crashes(t, c)
	kubeconfig, take := counted(t, c.Kubeconfig, "")
	openTabs(t, kubeconfig, 3)
	isRead := func(r string) bool {
		return strings.Contains(r, "/api/v1/namespaces?") && !strings.Contains(r, "watch=")
	}
	for tries := 0; ; tries++ { // the pauses between restarts, and those between reads, become long
		take()
		time.Sleep(5 * time.Minute / haste)
		if !slices.ContainsFunc(take(), isRead) {
			break
		} else if tries == 15 {
			t.Fatal("the console reads the cluster all the time")
		}
	}
	const minutes = 20
	time.Sleep(minutes * time.Minute / haste)
	requests := take()
	reads := len(slices.DeleteFunc(slices.Clone(requests), func(r string) bool { return !isRead(r) }))
	t.Logf("%.1f requests a minute, with %d reads", float64(len(requests))/minutes, reads)
	if len(requests) > 10*minutes {
		t.Errorf("%d requests in %d minutes:\n%s", len(requests), minutes, strings.Join(requests, "\n"))
	}
}

// crashes lets the container of the pods of a Solution end as soon as it runs, until the test ends. It is started again after 10 s, 20 s, and so on up to
// five minutes of the fast clock.
func crashes(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	pods := c.Client().CoreV1().Pods("site")
	show := func(ctx context.Context, restarts int32, state corev1.ContainerState) error {
		list, err := pods.List(ctx, metav1.ListOptions{})
		for i := range list.Items {
			pod := &list.Items[i]
			one := corev1.ContainerStatus{Name: pod.Spec.Containers[0].Name, Image: "x", RestartCount: restarts, State: state, Ready: state.Running != nil}
			if restarts > 0 {
				one.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", FinishedAt: metav1.Now()}
			}
			ready := corev1.ConditionFalse
			if one.Ready {
				ready = corev1.ConditionTrue
			}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{one}
			for j := range pod.Status.Conditions {
				if at := &pod.Status.Conditions[j]; at.Type == corev1.PodReady || at.Type == corev1.ContainersReady {
					at.Status, at.LastTransitionTime = ready, metav1.Now()
				}
			}
			_, failure := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
			err = errors.Join(err, failure)
		}
		return err
	}
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for i := int32(1); ; i++ {
			for _, step := range []struct {
				pause time.Duration
				state corev1.ContainerState
			}{
				{time.Second, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", FinishedAt: metav1.Now()}}},
				{time.Second, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}}},
				{min(10*time.Second<<min(i, 10), 5*time.Minute), corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}},
			} {
				select {
				case <-ctx.Done():
					return
				case <-time.After(step.pause / haste):
				}
				if err := show(ctx, i, step.state); err != nil && ctx.Err() == nil {
					t.Logf("it does not crash: %v", err)
				}
			}
		}
	})
	t.Cleanup(func() { end(); running.Wait() })
}

// deployShop deploys a Solution to a cluster.
func deployShop(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	connected, err := cluster.Connect(cluster.Options{Kubeconfig: c.Kubeconfig, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	d := deployer.New(deployer.Config{Cluster: connected, Now: time.Now, Version: "1.0.0", Identity: "admin@here"})
	_, imported := d.RecordImport(t.Context(), records.ImportRecord{
		Payload: deployertest.Payload(t, "shop", "1.0.0", deployertest.Content{}), Path: "/srv/shop.iso", SHA256: strings.Repeat("a", 64), Size: 4096,
		Registry: &schema.ClusterRegistry{Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn, Endpoints: []string{nowhere}},
	})
	if imported != nil {
		t.Fatal(imported)
	}
	if _, err := d.Activate(t.Context(), deployer.ActivateOptions{Solution: "shop", Version: "1.0.0"}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.CreateEnvironment(t.Context(), metalk8s.CreateOptions{Name: "site"}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Add(t.Context(), deployer.AddOptions{Environment: "site", Solution: "shop", Version: "1.0.0"}); err != nil {
		t.Fatal(err)
	}
}

// counted returns a kubeconfig of a user, or of the administrator, and a function that returns the requests since its last call.
func counted(t *testing.T, kubeconfig, user string) (through string, take func() []string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	if proxy.Transport, err = rest.TransportFor(config); err != nil {
		t.Fatal(err)
	}
	proxy.FlushInterval = -1
	var mu sync.Mutex
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		requests = append(requests, r.Method+" "+r.URL.String())
		mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	through = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"current-context": "c", "clusters": [{"name": "c", "cluster": {"server": %q}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}]}`, server.URL)
	if err := os.WriteFile(through, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return through, func() []string {
		mu.Lock()
		defer mu.Unlock()
		defer func() { requests = nil }()
		return requests
	}
}

// openTabs opens the overview in several tabs of a browser, at a console with a fast clock.
func openTabs(t *testing.T, kubeconfig string, number int) {
	t.Helper()
	var c *console.Console
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	began := time.Now()
	c, err := console.New(t.Context(), console.Options{
		Connect: func(session.Token) (*cluster.Cluster, error) {
			return cluster.Connect(cluster.Options{Kubeconfig: kubeconfig, Now: time.Now})
		},
		Origin: server.URL, Links: true, Exports: t.TempDir(), Version: "1.0.0-test", Host: "here",
		Now:   func() time.Time { return began.Add(haste * time.Since(began)) },
		After: func(d time.Duration) <-chan time.Time { return time.After(d / haste) },
	})
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	if _, err := read(client.Get(c.NewLink())); err != nil {
		t.Fatal(err)
	}
	for range number {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		stream, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stream.Body.Close() })
		lines := bufio.NewScanner(stream.Body)
		for lines.Scan() && lines.Text() != "event: changed" {
		}
		if lines.Err() != nil {
			t.Fatal(lines.Err())
		}
	}
}
