package engine_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
)

// reaper is a proxy between an engine and the API server that counts calls. From the fatal call on, no request reaches the server and none is
// answered, as if the process were killed.
type reaper struct {
	upstream http.RoundTripper
	host     string
	kill     context.CancelFunc
	fatal    int  // the call that kills, counted from 1; 0 is none
	after    bool // the server executes the fatal call
	lossy    int  // one of so many answers is lost; 0 for none

	mu    sync.Mutex
	dice  *rand.Rand
	calls int
	dead  bool
	what  string // the fatal call
}

// admit counts a call. It reports whether the call is the fatal one, whether the engine is dead already, and whether the answer is lost.
func (r *reaper) admit(request *http.Request) (fatal, dead, lost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead {
		return false, true, false
	}
	r.calls++
	if r.calls == r.fatal {
		r.dead, r.what = true, request.Method+" "+request.URL.RequestURI()
		return true, false, false
	}
	// The client does not repeat a call before its first answer.
	return false, false, r.lossy > 0 && r.calls > 1 && r.dice.IntN(r.lossy) == 0
}

func (r *reaper) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	fatal, dead, lost := r.admit(request)
	watching := request.URL.Query().Get("watch") == "true"
	if dead || fatal && (!r.after || watching) {
		r.kill()
		panic(http.ErrAbortHandler)
	}
	// The server completes a started request even if the client dies.
	ctx := context.WithoutCancel(request.Context())
	if watching {
		ctx = request.Context()
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	forwarded, err := http.NewRequestWithContext(ctx, request.Method, r.host+request.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	forwarded.Header = request.Header.Clone()
	response, err := r.upstream.RoundTrip(forwarded)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	var answer io.Reader = response.Body
	if !watching {
		data, err := io.ReadAll(response.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		answer = bytes.NewReader(data)
	}
	if fatal {
		r.kill()
		panic(http.ErrAbortHandler)
	}
	if lost {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	flush := http.NewResponseController(w)
	for buffer := make([]byte, 32<<10); ; {
		n, err := answer.Read(buffer)
		if n > 0 {
			if _, broken := w.Write(buffer[:n]); broken != nil {
				return
			}
			_ = flush.Flush() // it can
		}
		if err != nil {
			return
		}
	}
}

// mortal runs f with an engine that dies at a call. It returns the number of calls and the fatal one, "" if the engine survived.
func (b *fixture) mortal(fatal int, after bool, f func(ctx context.Context, e *engine.Engine) error) (calls int, what string) {
	b.Helper()
	return b.through(&reaper{fatal: fatal, after: after}, f)
}

func (b *fixture) through(r *reaper, f func(ctx context.Context, e *engine.Engine) error) (calls int, what string) {
	b.Helper()
	config, err := testcluster.Borrow(b.T).Config()
	if err != nil {
		b.Fatal(err)
	}
	upstream, err := rest.TransportFor(config)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	r.upstream, r.host, r.kill = upstream, config.Host, cancel
	server := httptest.NewServer(r)
	server.Config.ErrorLog = nil
	defer server.Close()
	kubeconfig := filepath.Join(b.TempDir(), "kubeconfig")
	if err = os.WriteFile(kubeconfig, fmt.Appendf(nil, `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %s}}]
users: [{name: u}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`, server.URL), 0o600); err != nil {
		b.Fatal(err)
	}
	err = f(ctx, b.connect(kubeconfig))
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.dead && err != nil {
		b.Fatalf("it failed without being killed: %v", err)
	}
	return r.calls, r.what
}

// run plans and applies a release, as a command does.
func run(r engine.Release) func(ctx context.Context, e *engine.Engine) error {
	return func(ctx context.Context, e *engine.Engine) error {
		plan, err := e.Plan(ctx, r, engine.PlanOptions{})
		if err != nil {
			return err
		}
		return e.Apply(ctx, plan, engine.ApplyOptions{Timeout: testcluster.Deadline(time.Minute)})
	}
}

// dumped are the kinds that these tests use.
var dumped = []kube.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Secret"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
}

// dump returns all objects, records and content of the release and its namespace, without values that differ each time: UIDs, times,
// versions and the name of the fixture.
func (b *fixture) dump() string {
	b.Helper()
	var text strings.Builder
	for _, kind := range append(dumped, kube.GroupVersionKind{Group: b.Namespace + ".example.com", Version: "v1", Kind: "Widget"}) {
		options, namespace := metav1.ListOptions{}, b.Namespace
		if kind.Kind == "ClusterRole" || kind.Kind == "CustomResourceDefinition" {
			options.LabelSelector, namespace = schema.LabelRelease+"="+b.Key.ID(), ""
		}
		b.Cluster.Refresh()
		for object, err := range b.Cluster.List(b.Context(), kind, namespace, options) {
			if err != nil {
				b.Fatal(err)
			}
			if object.GetName() == "kube-root-ca.crt" || object.GetName() == "default" {
				continue
			}
			text.WriteString(b.normal(object) + "\n")
		}
	}
	state := b.state()
	if state.Pending != nil {
		fmt.Fprintf(&text, "pending: %+v\n", state.Pending)
	}
	if state.Current != nil {
		fmt.Fprintf(&text, "current: %s %s %s\n", state.Current.Operation, state.Current.Version, state.Current.Outcome)
		for _, object := range state.Current.Objects {
			fmt.Fprintf(&text, "  %s phase %d kept %t known %t\n", object.ObjectRef, object.Phase, object.Kept, object.UID != "")
		}
	}
	for _, old := range state.History {
		fmt.Fprintf(&text, "history: %d %s %s %s\n", old.Number, old.Operation, old.Version, old.Outcome)
	}
	text.WriteString(b.checkContents(state))
	return strings.NewReplacer(b.Key.ID(), "$release", b.Namespace, "$ns").Replace(text.String())
}

// checkContents describes problems of stored content: content that no revision refers to, and missing content of a completed revision.
func (b *fixture) checkContents(state *record.State) string {
	b.Helper()
	var problems strings.Builder
	referred := map[string]bool{}
	revisions := slices.Clone(state.History)
	if state.Current != nil {
		revisions = append(revisions, *state.Current)
	}
	for _, revision := range revisions {
		referred[revision.Content] = true
		if _, err := b.Objects(b.Context(), b.Key, &revision); err != nil && revision.Outcome == schema.DeploymentDone {
			fmt.Fprintln(&problems, err)
		}
	}
	for _, secret := range b.secrets("content", b.Key.ID()) {
		if digest := secret.GetAnnotations()["solutionctl.io/digest"]; !referred[digest] {
			fmt.Fprintf(&problems, "nothing refers to content %s\n", digest)
		}
	}
	return problems.String()
}

func (b *fixture) normal(object *unstructured.Unstructured) string {
	b.Helper()
	managers := object.GetManagedFields()
	managers = slices.DeleteFunc(managers, func(m metav1.ManagedFieldsEntry) bool { return m.Subresource != "" || m.Manager == "kube-apiserver" })
	for i := range managers {
		managers[i].Time = nil
	}
	slices.SortFunc(managers, func(a, c metav1.ManagedFieldsEntry) int { return cmp.Compare(a.Manager, c.Manager) })
	object = object.DeepCopy()
	object.SetManagedFields(managers)
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(object.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "spec", "clusterIP")
	unstructured.RemoveNestedField(object.Object, "spec", "clusterIPs")
	data, err := json.MarshalIndent(object.Object, "", " ")
	if err != nil {
		b.Fatal(err)
	}
	return string(data)
}

const service = `
---
apiVersion: v1
kind: Service
metadata: {name: operator, namespace: $ns}
spec: {selector: {app: operator}, ports: [{port: 80}]}
`

const clusterRole = `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "$ns-operator"}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [list]}]
`

var everyCall = flag.Bool("every-call", false, "kill at every call, not only at some")

// distance returns the distance between the calls at which the engine is killed.
func distance() int {
	if *everyCall {
		return 1
	}
	if testing.Short() {
		return 12
	}
	return 6
}

// TestLostAnswers loses the answers to calls that the server has executed, as a restarted load balancer does. The client repeats them,
// and the engine recognizes its own writes.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	const lossy = 3
	clean, b := newFixture(t), newFixture(t)
	dice := rand.New(rand.NewPCG(1, lossy))
	for _, version := range []string{"1", "2"} {
		text := strings.ReplaceAll(widgets+widget+small, "operator:1", "operator:"+version)
		clean.restart()
		clean.deploy(clean.release(version, text))
		b.through(&reaper{lossy: lossy, dice: dice}, run(b.release(version, text)))
		if diff := gocmp.Diff(clean.dump(), b.dump()); diff != "" {
			t.Errorf("-clean +this\n%s", diff)
		}
	}
	remove := func(b *fixture) engine.Release { return engine.Release{Key: b.Key, Operation: "remove"} }
	clean.deploy(remove(clean))
	b.through(&reaper{lossy: lossy, dice: dice}, run(remove(b)))
	if diff := gocmp.Diff(clean.dump(), b.dump()); diff != "" {
		t.Errorf("-clean +this\n%s", diff)
	}
}

// TestKilledAtEveryCall kills upgrades before and after their calls and starts another engine without state. The result must be the same as
// without a kill, with the same owners of fields and the same records. Tests in memory cover the other calls.
func TestKilledAtEveryCall(t *testing.T) {
	t.Parallel()
	changes := strings.NewReplacer("operator:1", "operator:2", `first: "1"`, `first: "one"`, "kind: Role, name: operator", "kind: ClusterRole, name: view")
	one := func(b *fixture) engine.Release { return b.release("1.0.0", widgets+widget+small+clusterRole) }
	two := func(b *fixture) engine.Release {
		return b.release("2.0.0", changes.Replace(widgets+widget+small+service))
	}
	prepared := func(t *testing.T) *fixture {
		t.Helper()
		b := newFixture(t)
		b.deploy(one(b))
		return b
	}
	clean := prepared(t)
	calls, _ := clean.mortal(0, false, run(two(clean)))
	clean.restart()
	clean.deploy(two(clean))
	want := clean.dump()
	// Requests are concurrent, so runs differ in the number of calls.
	for fatal, step := 1, distance(); fatal < calls+step; fatal += step {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("call %d after %t", fatal, after), func(t *testing.T) {
				t.Parallel()
				b := prepared(t)
				_, what := b.mortal(fatal, after, run(two(b)))
				b.restart()
				b.deploy(two(b))
				if diff := gocmp.Diff(want, b.dump()); diff != "" {
					t.Errorf("killed at %s: -clean +this\n%s", what, diff)
				}
			})
		}
	}
}
