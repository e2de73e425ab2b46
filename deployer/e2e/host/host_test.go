// Package host_test imports archives as an administrator does: with the program, on a host with a store, into a real API
// server.
package host_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{}) }

// program returns solutionctl, which is beside what the cluster has on disk.
func program(t *testing.T) string {
	t.Helper()
	name := filepath.Join(testcluster.Shared(t).Dir, "solutionctl")
	if _, err := os.Stat(name); err == nil {
		return name
	}
	return testcluster.Program(t, testcluster.Shared(t).Dir)
}

// host is a host with a store, an administrator's trust store, and archives of a Solution of its own.
type host struct {
	*testing.T
	dir, program, kubeconfig, solution string
}

var hosts atomic.Int64

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{
		T: t, dir: t.TempDir(), program: program(t), kubeconfig: testcluster.Shared(t).Kubeconfig,
		solution: fmt.Sprintf("demo%d", hosts.Add(1)),
	}
	h.ok("keygen", "acme")
	h.ok("trust", "add", "acme", "acme.pub")
	h.ok("init", h.solution)
	for _, version := range []string{"1.0.0", "1.1.0"} {
		h.archive(version)
	}
	return h
}

// archive builds and signs a version.
func (h *host) archive(version string, flags ...string) {
	h.Helper()
	h.ok(append([]string{"build", h.solution, "--version", version}, flags...)...)
	h.ok("sign", "--key", "acme.key", h.file(version))
}

var bundleDigests = regexp.MustCompile(`\.[0-9a-f]{16}-[0-9a-f]{16}\.sigstore\.json$`)

func (h *host) file(version string) string { return h.solution + "-" + version + ".iso" }

// result is how a command ended.
type result struct {
	stdout, stderr string
	state          *os.ProcessState
}

func (h *host) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(h.Context(), h.program, args...)
	cmd.Dir = h.dir
	path := func(name string) string { return filepath.Join(h.dir, name) }
	cmd.Env = append(os.Environ(),
		"SOLUTIONCTL_PASSWORD=secret", "SOLUTIONCTL_CONFIG="+os.DevNull, "SOLUTIONCTL_NO_LINT=true", "SOLUTIONCTL_TRUST_DIR="+path("trust"), "SOLUTIONCTL_STORE="+path("store"),
		"SOLUTIONCTL_STATE="+path("store/state.json"), "SOLUTIONCTL_SOLUTIONS_FILE="+path("metalk8s/solutions.yaml"),
		"SOLUTIONCTL_NGINX_DIR="+path("conf.d"), "SOLUTIONCTL_MOUNT=never", "SOLUTIONCTL_VERBOSE=true", "KUBECONFIG="+h.kubeconfig)
	return cmd
}

func (h *host) run(args ...string) result {
	h.Helper()
	cmd := h.command(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		h.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState}
}

func (h *host) ok(args ...string) string {
	h.Helper()
	r := h.run(args...)
	if !r.state.Success() {
		h.Fatalf("solutionctl %s: %v\n%s", strings.Join(args, " "), r.state, r.stderr)
	}
	return r.stdout
}

// fails runs a command that must end with this code, and say this.
func (h *host) fails(code report.Code, says string, args ...string) {
	h.Helper()
	r := h.run(args...)
	if r.state.ExitCode() != code.ExitStatus() || !strings.Contains(r.stderr, "code: "+string(code)+" ") || !strings.Contains(r.stderr, says) {
		h.Errorf("solutionctl %s: %v, want %s and %q in\n%s", strings.Join(args, " "), r.state, code, says, r.stderr)
	}
}

// listed returns the versions of the Solution in MetalK8s' document.
func (h *host) listed() []schema.ImportedSolution {
	h.Helper()
	document, err := testcluster.Shared(h).Client().CoreV1().ConfigMaps("metalk8s-solutions").Get(h.Context(), "metalk8s-solutions", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		h.Fatal(err)
	}
	var list []schema.ImportedSolution
	if text := document.Data[h.solution]; text != "" {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			h.Fatal(err)
		}
	}
	return list
}

// catalogue returns the imports of the Solution on the cluster's record, by id.
func (h *host) catalogue() map[string]schema.Import {
	h.Helper()
	secret, err := testcluster.Shared(h).Client().CoreV1().Secrets("solutionctl-system").Get(h.Context(), "imports", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		h.Fatal(err)
	}
	imports, err := schema.ParseStored[schema.Imports]("imports", "Secret", secret.Data["imports.json"])
	if err != nil {
		h.Fatal(err)
	}
	own := map[string]schema.Import{}
	for id, i := range imports.Imports {
		if i.Name == h.solution {
			own[id] = i
		}
	}
	return own
}

// stored returns the names of the files in the store, those of bundles without their digests.
func (h *host) stored() []string {
	h.Helper()
	names, err := filepath.Glob(filepath.Join(h.dir, "store/archives/*"))
	if err != nil {
		h.Fatal(err)
	}
	for i := range names {
		names[i] = bundleDigests.ReplaceAllString(filepath.Base(names[i]), ".sigstore.json")
	}
	return names
}

func TestImport(t *testing.T) {
	h := newHost(t)
	data := h.ok("deploy", "import", "--output", "json", h.file("1.0.0"), h.file("1.1.0"))
	if err := schema.ValidateOutput("import", []byte(data)); err != nil {
		t.Error(err)
	}
	var done schema.ImportReport
	if err := json.Unmarshal([]byte(data), &done); err != nil {
		t.Fatal(err)
	}
	if !done.Recorded || len(done.Archives) != 2 || done.RegistryMode != schema.RegistryOwn {
		t.Errorf("report: %+v", done)
	}
	for i, version := range []string{"1.0.0", "1.1.0"} {
		id := h.solution + "-" + version
		path := filepath.Join(h.dir, "store/archives", id+".iso")
		known := h.catalogue()[id]
		if known.Archive.Path != path || known.Archive.SHA256 != done.Archives[i].SHA256 || known.ImportedBy == "" || known.Payload == "" {
			t.Errorf("catalogue: %+v", known)
		}
		if known.Images[h.solution+"-operator:"+version] == "" {
			t.Errorf("images: %v", known.Images)
		}
		listed := h.listed()
		if len(listed) != 2 || listed[i].ID != id || listed[i].Archive != path || listed[i].Active || listed[i].Mountpoint != "/srv/scality/"+id {
			t.Errorf("metalk8s-solutions: %+v", listed)
		}
	}
	registry, err := testcluster.Shared(t).Client().CoreV1().ConfigMaps("solutionctl-system").Get(t.Context(), "registry", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if text := registry.Data["registry.json"]; !strings.Contains(text, `"mode": "own"`) || !strings.Contains(text, schema.RegistryHostOwn) {
		t.Errorf("registry: %s", text)
	}

	before := h.catalogue()
	h.ok("deploy", "import", h.file("1.0.0"))
	if diff := cmp.Diff(before, h.catalogue()); diff != "" {
		t.Errorf("importing again changes the catalogue:\n%s", diff)
	}
	h.fails(report.Refused, "registry mode own", "deploy", "import", "--registry-mode", "metalk8s", "--store", "fresh", "--allow-downgrade", h.file("1.0.0"))
	if _, err := os.Stat(filepath.Join(h.dir, "fresh")); err == nil {
		t.Error("what was refused has made a store")
	}
}

func TestOtherContentOfAVersionThatTheClusterKnows(t *testing.T) {
	h := newHost(t)
	h.ok("deploy", "import", h.file("1.0.0"))
	h.archive("1.0.0", "--set", "spec.displayName=Other")
	h.fails(report.Replaced, "with other content", "deploy", "import", "--store", "fresh", "--state", "fresh/state.json", h.file("1.0.0"))
	if _, err := os.Stat(filepath.Join(h.dir, "fresh")); err == nil {
		t.Error("what was refused has made a store")
	}
}

func TestUnimport(t *testing.T) {
	h := newHost(t)
	h.ok("deploy", "import", h.file("1.0.0"), h.file("1.1.0"))
	client := testcluster.Shared(t).Client().CoreV1()
	namespace := h.solution + "-env"
	_, err := client.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"solutions.metalk8s.scality.com/environment": "production"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// A requested version holds up nothing, an existing one does.
	_, err = client.ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "metalk8s-environment"}, Data: map[string]string{h.solution: "9.9.9"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "data"}
	sets := testcluster.Shared(t).Client().AppsV1().StatefulSets(namespace)
	_, err = sets.Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{
					{Name: "data", Image: "registry.solutionctl.invalid/" + h.solution + "-1.0.0/server:1.0.0"},
				}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h.fails(report.InUse, "StatefulSet "+namespace+"/data", "deploy", "unimport", h.solution, "1.0.0")
	if err := sets.Delete(t.Context(), "data", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := len(h.stored()); got != 6 {
		t.Errorf("files in the store: %q", h.stored())
	}
	if err := client.Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.ConfigMaps(namespace).Delete(t.Context(), "metalk8s-environment", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}

	h.ok("deploy", "activate", h.solution, "1.1.0")
	h.fails(report.InUse, "active", "deploy", "unimport", h.file("1.1.0"))
	h.fails(report.NotFound, "was imported on another host by", "deploy", "unimport", "--store", "elsewhere", h.solution, "1.0.0")

	data := h.ok("deploy", "unimport", "--output", "json", h.solution, "1.0.0")
	if err := schema.ValidateOutput("unimport", []byte(data)); err != nil {
		t.Error(err)
	}
	if listed := h.listed(); len(listed) != 1 || listed[0].Version != "1.1.0" || !listed[0].Active {
		t.Errorf("metalk8s-solutions: %+v", listed)
	}
	if known := h.catalogue(); len(known) != 1 {
		t.Errorf("catalogue: %v", known)
	}
	if diff := cmp.Diff([]string{h.solution + "-1.1.0.iso", h.solution + "-1.1.0.iso.sigstore.json", h.solution + "-1.1.0.json"}, h.stored()); diff != "" {
		t.Error(diff)
	}
}

func TestUserWithoutRights(t *testing.T) {
	h := newHost(t)
	var err error
	if h.kubeconfig, err = testcluster.Shared(t).KubeconfigFor(h.solution + "-user"); err != nil {
		t.Fatal(err)
	}
	h.fails(report.Forbidden, "resources:", "deploy", "import", h.file("1.0.0"))
	if got := h.stored(); got != nil {
		t.Errorf("stored %q", got)
	}
}

func TestAPIServerIsAway(t *testing.T) {
	h := newHost(t)
	c := testcluster.Shared(t)
	c.StopAPIServer()
	h.fails(report.Unavailable, "run the same command again", "deploy", "import", h.file("1.0.0"), h.file("1.1.0"))
	if got := len(h.stored()); got != 6 {
		t.Errorf("files in the store: %q", h.stored())
	}
	h.fails(report.Unavailable, "", "deploy", "unimport", h.solution, "1.0.0")
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.ok("deploy", "import", h.file("1.0.0"), h.file("1.1.0"))
	if got := len(h.listed()); got != 2 {
		t.Errorf("metalk8s-solutions: %+v", h.listed())
	}
}

// proxy stands between the program and the API server and kills the program before or after one of its changes.
type proxy struct {
	*httputil.ReverseProxy
	process func() *os.Process
	at      int64 // number of the change; 0: never
	after   bool
	changes atomic.Int64
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int64(0)
	if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/apis/authorization.k8s.io/") && !strings.Contains(r.URL.Path, "/apis/authentication.k8s.io/") {
		n = p.changes.Add(1)
	}
	if n > 0 && n == p.at {
		if p.after {
			p.ReverseProxy.ServeHTTP(&swallow{header: http.Header{}}, r)
		}
		_ = p.process().Signal(syscall.SIGKILL)
		panic(http.ErrAbortHandler)
	}
	p.ReverseProxy.ServeHTTP(w, r)
}

// swallow is an answer that is lost.
type swallow struct{ header http.Header }

func (s *swallow) Header() http.Header         { return s.header }
func (s *swallow) Write(p []byte) (int, error) { return len(p), nil }
func (s *swallow) WriteHeader(int)             {}

func newProxy(t *testing.T) (p *proxy, kubeconfig string) {
	t.Helper()
	c := testcluster.Shared(t)
	config, err := c.Config()
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(c.Host)
	if err != nil {
		t.Fatal(err)
	}
	p = &proxy{ReverseProxy: &httputil.ReverseProxy{
		Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "proxy", "clusters": [{"name": "proxy", "cluster": {"server": %q}}],
"contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": ""}}]}`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p, kubeconfig
}

// TestKill kills an import and an unimport before and after each change of the cluster. The same command finishes the
// work, as if nothing had happened.
func TestKill(t *testing.T) {
	h := newHost(t)
	imported, unimported := []string{"deploy", "import", "--allow-downgrade", h.file("1.0.0")}, []string{"deploy", "unimport", h.solution, "1.0.0"}
	p, through := newProxy(t)
	changes := func(args []string) int64 {
		t.Helper()
		direct := h.kubeconfig
		h.kubeconfig = through
		defer func() { h.kubeconfig = direct }()
		p.changes.Store(0)
		p.at = 0
		h.ok(args...)
		return p.changes.Load()
	}
	state := func() string {
		known := h.catalogue()
		for id, i := range known {
			i.ImportedAt = time.Time{} // when it was does not matter
			known[id] = i
		}
		secrets, err := testcluster.Shared(t).Client().CoreV1().Secrets("solutionctl-system").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for _, s := range secrets.Items {
			names = append(names, s.Name)
		}
		data, err := json.MarshalIndent(map[string]any{"listed": h.listed(), "known": known, "stored": h.stored(), "secrets": names}, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	leases := testcluster.Shared(t).Client().CoordinationV1().Leases("solutionctl-system")
	h.ok(imported...)
	h.ok(unimported...)
	clean := state()
	importing := changes(imported)
	full := state()
	unimporting := changes(unimported)
	if importing < 4 || unimporting < 3 {
		t.Fatalf("%d changes of an import, %d of an unimport", importing, unimporting)
	}
	for _, verb := range []struct {
		name    string
		args    []string
		changes int64
		want    string
	}{{"import", imported, importing, full}, {"unimport", unimported, unimporting, clean}} {
		for at := int64(1); at <= verb.changes; at++ {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s change %d after %v", verb.name, at, after), func(t *testing.T) {
					if verb.name == "unimport" {
						h.ok(imported...)
					}
					killed := *h
					killed.kubeconfig = through
					cmd := killed.command(verb.args...)
					cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
					p.process, p.at, p.after = func() *os.Process { return cmd.Process }, at, after
					p.changes.Store(0)
					if err := cmd.Run(); err == nil {
						t.Fatal("it was not killed")
					}
					// Its lock would be free after a while, which other tests wait for.
					if err := leases.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
						t.Fatal(err)
					}
					if r := h.run(verb.args...); !r.state.Success() && !strings.Contains(r.stderr, "code: not-found ") {
						t.Fatalf("%v\n%s", r.state, r.stderr)
					}
					if diff := cmp.Diff(verb.want, state()); diff != "" {
						t.Error(diff)
					}
					if verb.name == "import" {
						h.ok(unimported...)
					}
				})
			}
		}
	}
}
