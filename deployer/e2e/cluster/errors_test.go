package cluster_test

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/schema/report"
)

// user returns a connection as a user who has the rules in a namespace, and nothing else.
func user(t *testing.T, administrator *cluster.Cluster, namespace, name, rules string) *cluster.Cluster {
	t.Helper()
	kubeconfig, err := testcluster.Borrow(t).KubeconfigFor(name)
	if err != nil {
		t.Fatal(err)
	}
	create(t, administrator, `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: `+name+`, namespace: `+namespace+`}
rules: `+rules)
	create(t, administrator, `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: `+name+`, namespace: `+namespace+`}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: `+name+`}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: `+name+`}]`)
	c := connect(t, cluster.Options{Kubeconfig: kubeconfig})
	// The API server notices new roles a little later.
	for {
		missing, err := c.Missing(t.Context(), cluster.Permission{Verb: "get", Resource: "configmaps", Namespace: namespace})
		if err != nil {
			t.Fatal(err)
		}
		if len(missing) == 0 {
			return c
		}
	}
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.invalid/web:1"}]}
`

func TestForbidden(t *testing.T) {
	t.Parallel()
	administrator := connect(t, cluster.Options{})
	ns := namespace(t, administrator)
	jane := user(t, administrator, ns, "jane", `[
		{apiGroups: [""], resources: [configmaps], verbs: [get, create]},
		{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [get, create, patch]}]`)
	ctx := t.Context()

	t.Run("create", func(t *testing.T) {
		_, err := jane.Create(ctx, object(t, strings.ReplaceAll(deployment, "NS", ns)), cluster.WriteOptions{})
		check(t, err, report.Forbidden,
			`create Deployment `+ns+`/web: user "jane" has no permission to patch deployments of apps in namespace `+ns,
			"a Role in namespace "+ns, "- apiGroups: [\"apps\"]\n  resources: [\"deployments\"]\n  verbs: [\"create\", \"patch\"]")
		if !apierrors.IsForbidden(err) {
			t.Error("the error of the API server is lost")
		}
	})
	t.Run("apply", func(t *testing.T) {
		_, err := jane.Apply(ctx, object(t, configMap(ns, "x", "v")), cluster.WriteOptions{DryRun: true})
		check(t, err, report.Forbidden, `has no permission to patch configmaps in namespace `+ns, `verbs: ["create", "patch"]`)
	})
	t.Run("list in the whole cluster", func(t *testing.T) {
		for _, err := range jane.List(ctx, configMapKind, "", metav1.ListOptions{}) {
			check(t, err, report.Forbidden, `list configmaps: user "jane" has no permission to list configmaps`, "rule of a ClusterRole:")
		}
	})
	t.Run("watch", func(t *testing.T) {
		for _, err := range jane.Watch(ctx, configMapKind, ns, metav1.ListOptions{ResourceVersion: "1"}) {
			check(t, err, report.Forbidden, `user "jane" has no permission to watch configmaps in namespace `+ns)
		}
	})
	t.Run("grant more than one has", func(t *testing.T) {
		_, err := jane.Create(ctx, object(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: more, namespace: `+ns+`}
rules:
- {apiGroups: [apps], resources: [deployments, statefulsets], verbs: [get, delete]}
- {apiGroups: [""], resources: [configmaps], verbs: [get]}
`), cluster.WriteOptions{DryRun: true})
		check(t, err, report.Forbidden, `user "jane" cannot grant permissions that they do not have`,
			"- apiGroups: [\"apps\"]\n  resources: [\"deployments\"]\n  verbs: [\"get\", \"delete\"]", `resources: ["statefulsets"]`)
	})
	t.Run("impersonate", func(t *testing.T) {
		kubeconfig, err := testcluster.Borrow(t).KubeconfigFor("jane")
		if err != nil {
			t.Fatal(err)
		}
		c := connect(t, cluster.Options{Kubeconfig: kubeconfig, As: "system:admin"})
		_, err = c.Version(ctx)
		check(t, err, report.Forbidden, `user "jane" is not allowed to impersonate other users`, `verbs: ["impersonate"]`)
	})
	t.Run("missing", func(t *testing.T) {
		wanted := []cluster.Permission{
			{Verb: "get", Resource: "configmaps", Namespace: ns},
			{Verb: "delete", Resource: "configmaps", Namespace: ns},
			{Verb: "create", Group: "apps", Resource: "deployments", Namespace: ns},
			{Verb: "patch", Group: "apps", Resource: "deployments", Namespace: ns},
			{Verb: "get", Resource: "pods", Subresource: "log", Namespace: ns, Name: "web"},
		}
		missing, err := jane.Missing(ctx, wanted...)
		if err != nil {
			t.Fatal(err)
		}
		want := "- apiGroups: [\"\"]\n  resources: [\"configmaps\"]\n  verbs: [\"delete\"]\n" +
			"- apiGroups: [\"apps\"]\n  resources: [\"deployments\"]\n  verbs: [\"create\", \"patch\"]\n" +
			"- apiGroups: [\"\"]\n  resources: [\"pods/log\"]\n  resourceNames: [\"web\"]\n  verbs: [\"get\"]"
		if got := cluster.Rules(missing...); got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	})
	t.Run("missing in many namespaces", func(t *testing.T) {
		var wanted []cluster.Permission
		for _, namespace := range []string{"a", ns, "b", "c", "d"} {
			wanted = append(wanted, cluster.Permission{Verb: "get", Resource: "configmaps", Namespace: namespace})
		}
		missing, err := jane.Missing(ctx, wanted...)
		if err != nil || !slices.Equal(missing, slices.Delete(wanted, 1, 2)) {
			t.Errorf("%v, %v", missing, err)
		}
	})
	t.Run("missing to an administrator", func(t *testing.T) {
		p := newProxy(t)
		asked := p.times(100, http.MethodPost, func(w http.ResponseWriter, r *http.Request, forward http.Handler) { forward.ServeHTTP(w, r) })
		c := p.connect(t, cluster.Options{})
		for range 2 {
			missing, err := c.Missing(ctx, cluster.Permission{Verb: "get", Resource: "secrets"}, cluster.Permission{Verb: "escalate", Group: "rbac.authorization.k8s.io", Resource: "roles"})
			if err != nil || len(missing) > 0 {
				t.Errorf("%v, %v", missing, err)
			}
		}
		if n := 100 - asked.Load(); n != 1 {
			t.Errorf("%d questions, want one", n)
		}
	})
	t.Run("who", func(t *testing.T) {
		if got := jane.User(ctx); got != "jane" {
			t.Errorf("User = %q", got)
		}
		if got := connect(t, cluster.Options{As: "joe", AsGroups: []string{"system:masters"}}).User(ctx); got != "joe" {
			t.Errorf("impersonated User = %q", got)
		}
	})
}

func TestConflict(t *testing.T) {
	t.Parallel()
	c := connect(t, cluster.Options{})
	ctx, ns := t.Context(), namespace(t, c)
	apply := func(text string, o cluster.WriteOptions) error {
		_, err := c.Apply(ctx, object(t, text), o)
		return err
	}
	web := strings.ReplaceAll(deployment, "NS", ns)
	if err := apply(web, cluster.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	// Another user scales it, as kubectl does.
	patch := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":3}}`
	_, err := testcluster.Borrow(t).Client().AppsV1().Deployments(ns).Patch(ctx, "web", "application/apply-patch+yaml", []byte(patch),
		metav1.PatchOptions{FieldManager: "scaler", Force: new(true)})
	if err != nil {
		t.Fatal(err)
	}
	err = apply(web, cluster.WriteOptions{})
	check(t, err, report.Conflict, "apply Deployment "+ns+"/web: other managers own these fields: .spec.replicas", `"scaler"`)
	if errors.Is(err, cluster.ErrChanged) {
		t.Error("a conflict of owners is no ErrChanged: reading again does not help")
	}
	if err := apply(web, cluster.WriteOptions{Force: true}); err != nil {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	c := connect(t, cluster.Options{})
	ctx, ns := t.Context(), namespace(t, c)
	web := strings.ReplaceAll(deployment, "NS", ns)
	pod := "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: " + ns + "}, spec: {hostNetwork: true, containers: [{name: c, image: i}]}}"
	write := func(text string) error {
		_, err := c.Create(ctx, object(t, text), cluster.WriteOptions{})
		return err
	}

	t.Run("not valid", func(t *testing.T) {
		err := write(strings.ReplaceAll(web, "{app: web}}\n  template", "{app: other}}\n  template"))
		check(t, err, report.Invalid, "the API server does not accept it: spec.template.metadata.labels: Invalid value")
	})
	t.Run("immutable", func(t *testing.T) {
		if err := write(web); err != nil {
			t.Fatal(err)
		}
		_, err := c.Apply(ctx, object(t, strings.ReplaceAll(web, "app: web", "app: other")), cluster.WriteOptions{Force: true})
		check(t, err, report.Invalid, "spec.selector: Invalid value", "field is immutable")
	})
	t.Run("no such field", func(t *testing.T) {
		_, err := c.Apply(ctx, object(t, strings.ReplaceAll(web, "replicas:", "replica:")), cluster.WriteOptions{})
		check(t, err, report.Invalid, ".spec.replica: field not declared in schema")
	})
	t.Run("no namespace", func(t *testing.T) {
		check(t, write(configMap("nowhere", "x", "v")), report.NotFound, "create ConfigMap nowhere/x: namespace nowhere does not exist")
	})
	t.Run("quota", func(t *testing.T) {
		create(t, c, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: small, namespace: "+ns+"}, spec: {hard: {services: 0}}}")
		service := "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: " + ns + "}, spec: {ports: [{port: 80}]}}"
		var err error
		for err == nil || strings.Contains(err.Error(), "status unknown for quota") { // until its controller has seen it
			_, err = c.Create(ctx, object(t, service), cluster.WriteOptions{DryRun: true})
		}
		check(t, err, report.Refused, "quota small of namespace "+ns+" is used up: this needs services=1, the limit is services=0 and services=0 is used")
	})
	t.Run("pod security", func(t *testing.T) {
		labelled, err := c.Get(ctx, namespaceKind, "", ns)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Patch(ctx, labelled, "application/merge-patch+json", []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"baseline"}}}`), cluster.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		awaitAccount(t, c, ns)
		check(t, write(pod), report.Refused, `it violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`, "pod-security.kubernetes.io/enforce of namespace "+ns)
	})
	t.Run("admission policy", func(t *testing.T) {
		create(t, c, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-secrets-here}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+ns+`}}
  validations: [{expression: "false", message: "no secrets in this namespace"}]`)
		create(t, c, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-secrets-here}
spec: {policyName: no-secrets-here, validationActions: [Deny]}`)
		var err error
		for err == nil { // until the API server has compiled it
			_, err = c.Create(ctx, object(t, "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: "+ns+"}}"), cluster.WriteOptions{DryRun: true})
		}
		check(t, err, report.Refused, "no-secrets-here of the cluster refuses it: no secrets in this namespace")
	})
	t.Run("webhook that is down", func(t *testing.T) {
		create(t, c, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: down}
webhooks:
- name: down.example.com
  clientConfig: {service: {namespace: `+ns+`, name: webhook, path: /}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [endpoints]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+ns+`}}
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail`)
		var err error
		for err == nil { // until the API server knows it
			_, err = c.Create(ctx, object(t, "{apiVersion: v1, kind: Endpoints, metadata: {name: s, namespace: "+ns+"}}"), cluster.WriteOptions{DryRun: true})
		}
		check(t, err, report.Unavailable, `admission webhook "down.example.com" of the cluster does not work`, `service "webhook" not found`)
	})
	t.Run("namespace that is going", func(t *testing.T) {
		create(t, c, "{apiVersion: v1, kind: ConfigMap, metadata: {name: stays, namespace: "+ns+", finalizers: [example.com/nobody]}}")
		going, err := c.Get(ctx, namespaceKind, "", ns)
		if err != nil {
			t.Fatal(err)
		}
		if err = c.Delete(ctx, going, cluster.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		check(t, write(configMap(ns, "late", "v")), report.InUse, "namespace "+ns+" is being deleted")
		stays, err := c.Get(ctx, configMapKind, ns, "stays")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Patch(ctx, stays, "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), cluster.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	})
}

// kubeconfig writes a copy of the administrator's kubeconfig with changes.
func kubeconfig(t *testing.T, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(testcluster.Borrow(t).Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	context := config.Contexts[config.CurrentContext]
	change(config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo])
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestNoAnswer(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "https://" + closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	other := httptest.NewTLSServer(http.NotFoundHandler())
	defer other.Close()

	for _, test := range []struct {
		name   string
		change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)
		code   report.Code
		words  []string
	}{
		{
			"nobody there", func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = address }, report.Unavailable,
			[]string{"API server " + address + ": it does not answer: connection refused", "has its address"},
		},
		{"no TLS", func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.Server = strings.Replace(plain.URL, "http:", "https:", 1)
		}, report.Unavailable, []string{"what answers there does not speak TLS"}},
		{
			"another authority", func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = other.URL }, report.Unavailable,
			[]string{"its certificate is not signed by the authority in"},
		},
		{
			"another name", func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.TLSServerName = "elsewhere.example.com" }, report.Unavailable,
			[]string{"its certificate is for another name", "elsewhere.example.com"},
		},
		{
			"no such host", func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = "https://api.invalid:6443" }, report.Unavailable,
			[]string{"API server https://api.invalid:6443: its name cannot be resolved"},
		},
		{"unknown token", func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			*u = clientcmdapi.AuthInfo{Token: "expired"}
		}, report.Unauthenticated, []string{"the API server does not know the user", "log in again"}},
		{"an expired certificate", func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.ClientCertificateData, u.ClientKeyData = expiredCertificate(t)
		}, report.Unauthenticated, []string{"the API server does not know the user", "expired on 20"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := connect(t, cluster.Options{Kubeconfig: kubeconfig(t, test.change)})
			_, err := c.Get(t.Context(), namespaceKind, "", "default")
			check(t, err, test.code, test.words...)
		})
	}
}

func TestConnect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	empty, broken := write("empty", ""), write("broken", "clusters: {")
	good := testcluster.Borrow(t).Kubeconfig
	for _, test := range []struct {
		name    string
		options cluster.Options
		words   []string
	}{
		{"no file", cluster.Options{Kubeconfig: filepath.Join(dir, "missing")}, []string{"kubeconfig " + dir + "/missing does not exist"}},
		{"empty file", cluster.Options{Kubeconfig: empty}, []string{"names no cluster", "--kubeconfig"}},
		{"not YAML", cluster.Options{Kubeconfig: broken}, []string{"kubeconfig " + broken}},
		{"no such context", cluster.Options{Kubeconfig: good, Context: "prod"}, []string{`has no context "prod"`, "it has: testcluster"}},
		{"groups without user", cluster.Options{Kubeconfig: good, AsGroups: []string{"g"}}, []string{"without a user", "--as USER"}},
		{"nothing in the list", cluster.Options{Environment: filepath.Join(dir, "a") + ":" + filepath.Join(dir, "b")}, []string{"names no cluster"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := cluster.Connect(test.options)
			check(t, err, report.Usage, test.words...)
		})
	}
	for _, test := range []struct {
		name    string
		options cluster.Options
	}{
		{"flag before environment", cluster.Options{Kubeconfig: good, Environment: broken}},
		{"environment, one of two", cluster.Options{Environment: filepath.Join(dir, "missing") + ":" + good}},
		{"context", cluster.Options{Kubeconfig: good, Context: "testcluster"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.options.Now = time.Now
			c, err := cluster.Connect(test.options)
			if err != nil {
				t.Fatal(err)
			}
			if version, err := c.Version(t.Context()); version != testcluster.Borrow(t).KubernetesVersion() {
				t.Errorf("Version = %q, %v", version, err)
			}
		})
	}
	if got := strings.Join(cluster.Contexts(cluster.Options{Kubeconfig: good}), " "); got != "testcluster" {
		t.Errorf("Contexts = %s", got)
	}
}

// proxy stands between a client and the API server, and sometimes in the way.
type proxy struct {
	*httptest.Server
	// intervene may answer a request instead of the API server; it returns whether it did.
	intervene atomic.Pointer[func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool]
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	config, err := testcluster.Borrow(t).Config()
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.FlushInterval = -1
	forward.Transport = &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, InsecureSkipVerify: true}} //nolint:gosec // a test
	p := &proxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := p.intervene.Load(); f == nil || !(*f)(w, r, forward) {
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(p.CloseClientConnections)
	t.Cleanup(p.Close)
	return p
}

// connect returns a connection through the proxy.
func (p *proxy) connect(t *testing.T, o cluster.Options) *cluster.Cluster {
	t.Helper()
	o.Kubeconfig = kubeconfig(t, func(c *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
		*c, *u = clientcmdapi.Cluster{Server: p.URL}, clientcmdapi.AuthInfo{}
	})
	return connect(t, o)
}

// times intervenes in the first n requests with this method.
func (p *proxy) times(n int32, method string, f func(w http.ResponseWriter, r *http.Request, forward http.Handler)) *atomic.Int32 {
	var left atomic.Int32
	left.Store(n)
	intervene := func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		if r.Method != method || left.Add(-1) < 0 {
			return false
		}
		f(w, r, forward)
		return true
	}
	p.intervene.Store(&intervene)
	return &left
}

// cutAfter lets the API server do its work and loses the answer.
func cutAfter(_ http.ResponseWriter, r *http.Request, forward http.Handler) {
	forward.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// TestRetry loses the answers to what the server has done: the caller does not see that, and nothing is done twice.
func TestRetry(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	c := p.connect(t, cluster.Options{})
	ns := namespace(t, connect(t, cluster.Options{}))
	ctx := t.Context()
	if _, err := c.Version(ctx); err != nil {
		t.Fatal(err)
	}
	p.times(2, http.MethodPatch, cutAfter)
	created, err := c.Create(ctx, object(t, configMap(ns, "a", "one")), cluster.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.times(1, http.MethodGet, cutAfter)
	if _, err := c.Get(ctx, configMapKind, ns, "a"); err != nil {
		t.Error(err)
	}
	p.times(1, http.MethodPatch, cutAfter)
	if _, err := c.Apply(ctx, object(t, configMap(ns, "a", "one")), cluster.WriteOptions{}); err != nil {
		t.Error(err)
	}
	created.SetResourceVersion("")
	p.times(2, http.MethodDelete, cutAfter)
	if err := c.Delete(ctx, created, cluster.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// TestWarnings checks that each warning of the server is reported once.
func TestWarnings(t *testing.T) {
	t.Parallel()
	var sink report.Recorder
	c := connect(t, cluster.Options{Sink: &sink})
	statusKind := endpointsKind.GroupVersion().WithKind("ComponentStatus") // deprecated in every version
	for _, name := range []string{"etcd-0", "etcd-1"} {
		if _, err := c.Get(t.Context(), statusKind, "", name); err != nil {
			t.Fatal(err)
		}
	}
	if events := sink.Events(); len(events) != 1 || events[0].State != report.Warning || !strings.Contains(events[0].Note, "deprecated") ||
		!strings.Contains(events[0].Note, `etcd-0: it remarks "`) {
		t.Errorf("events %+v, want one warning", events)
	}
}

// awaitAccount waits for the ServiceAccount without which the API server looks at no pod.
func awaitAccount(t *testing.T, c *cluster.Cluster, namespace string) {
	t.Helper()
	kind := namespaceKind
	kind.Kind = "ServiceAccount"
	for change, err := range c.Watch(t.Context(), kind, namespace, metav1.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if change.Object.GetName() == "default" {
			return
		}
	}
}
