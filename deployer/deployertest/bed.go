// Package deployertest has what a test of the verbs begins with: an API server in memory, with a Solution in it as far on its
// way as the test wants it. Nothing is compiled, pulled or waited for, so that a test takes milliseconds.
//
// Start with [New], and bring a Solution there with [Bed.Imported], [Bed.Activated] and [Bed.Added]. What a version has is its
// [Content]. That the real API server agrees is proven by the tests of deployer/e2e.
package deployertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authorization "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Environment is the environment, and its namespace, that [New] makes.
const Environment = "site"

// endpoint is the recorded registry. No server listens there, because nothing is pulled.
const endpoint = "http://127.0.0.1:9"

// Bed is a cluster in memory and the verbs on it.
type Bed struct {
	testing.TB
	*deployer.Deployer
	Server *clustertest.Server
	Sink   *report.Recorder
}

// New is a cluster with one [Environment] and the objects of some YAML documents.
func New(tb testing.TB, documents ...string) *Bed {
	tb.Helper()
	b := &Bed{TB: tb, Server: clustertest.Start(tb), Sink: &report.Recorder{}}
	b.Namespace(Environment, Environment)
	for _, document := range documents {
		b.Server.Put(tb, document)
	}
	b.Deployer = b.Connect()
	return b
}

// Connect returns a deployer of another administrator.
func (b *Bed) Connect() *deployer.Deployer {
	b.Helper()
	c, err := cluster.Connect(cluster.Options{Kubeconfig: b.Server.Kubeconfig(b.TB), Now: time.Now, Retry: -1, Sink: b.Sink})
	if err != nil {
		b.Fatal(err)
	}
	return deployer.New(deployer.Config{Cluster: c, Sink: b.Sink, Now: time.Now, Version: "1.0.0", Identity: "tester@here"})
}

// Namespace makes a namespace of an environment, as MetalK8s does.
func (b *Bed) Namespace(environment, name string) {
	b.Helper()
	b.Server.Put(b.TB, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {%s: %s}}}", name, metalk8s.EnvironmentLabel, environment))
}

// Clock makes a custom resource of a Solution.
func (b *Bed) Clock(solution, namespace, name, spec string) {
	b.Helper()
	b.Server.Put(b.TB, fmt.Sprintf("{apiVersion: %s/v1, kind: Clock, metadata: {name: %s, namespace: %s}, spec: {%s}}", Group(solution), name, namespace, spec))
}

// Put creates or replaces an object, as another user than the tool.
func (b *Bed) Put(object *unstructured.Unstructured) {
	b.Helper()
	text, err := object.MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	b.Server.Put(b.TB, string(text))
}

// Deleted deletes an object, as another user than the tool.
func (b *Bed) Deleted(kind, namespace, name string) {
	b.Helper()
	object := b.Server.Object(kind, namespace, name)
	if object == nil {
		b.Fatalf("there is no %s %s/%s", kind, namespace, name)
	}
	if err := b.Cluster.Delete(b.Context(), object, cluster.DeleteOptions{}); err != nil {
		b.Fatal(err)
	}
}

// Record returns the record of an import.
func (b *Bed) Record(solution, version string, c Content) records.ImportRecord {
	b.Helper()
	return records.ImportRecord{
		Payload: Payload(b.TB, solution, version, c), Path: "/srv/" + solution + "-" + version + ".iso", SHA256: digest(solution + version), Size: 4096,
		Registry: &schema.ClusterRegistry{Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn, Endpoints: []string{endpoint}},
	}
}

// Imported makes a version known.
func (b *Bed) Imported(solution, version string, c Content) {
	b.Helper()
	if _, err := b.RecordImport(b.Context(), b.Record(solution, version, c)); err != nil {
		b.Fatal(err)
	}
}

// Activated imports a version and makes it the active one.
func (b *Bed) Activated(solution, version string, c Content) {
	b.Helper()
	b.Imported(solution, version, c)
	if _, err := b.Activate(b.Context(), deployer.ActivateOptions{Solution: solution, Version: version}); err != nil {
		b.Fatal(err)
	}
}

// Added brings a version into the [Environment].
func (b *Bed) Added(solution, version string, c Content) {
	b.Helper()
	b.Activated(solution, version, c)
	if _, err := b.Add(b.Context(), deployer.AddOptions{Environment: Environment, Solution: solution, Version: version}); err != nil {
		b.Fatal(err)
	}
}

// Writes are the requests since the last call of this or [clustertest.Server.Requests] that changed something. Locks do.
func (b *Bed) Writes() []string {
	return slices.DeleteFunc(b.Server.Requests(), func(request string) bool {
		return strings.HasPrefix(request, "GET ") || strings.HasSuffix(request, "(dry run)") ||
			strings.Contains(request, "/apis/authorization.k8s.io/") || strings.Contains(request, "/apis/authentication.k8s.io/")
	})
}

// Valid holds what a command prints against its schema.
func Valid(tb testing.TB, name string, value any) {
	tb.Helper()
	data, err := json.Marshal(value)
	if err == nil {
		err = schema.ValidateOutput(name, data)
	}
	if err != nil {
		tb.Errorf("%v\n%s", err, data)
	}
}

// Refused expects an error with this code that names all of these, in its text or its hints.
func Refused(tb testing.TB, err error, code report.Code, words ...string) {
	tb.Helper()
	if report.CodeOf(err) != code {
		tb.Errorf("got %q: %v\nhints: %q\nwant %s", report.CodeOf(err), err, report.Hints(err), code)
		return
	}
	text := err.Error() + "\n" + strings.Join(report.Hints(err), "\n")
	for _, word := range words {
		if !strings.Contains(text, word) {
			tb.Errorf("nothing about %q in:\n%s", word, text)
		}
	}
}

// Only restricts the user to one namespace, as with a RoleBinding there alone. More allows further requests; nil allows none.
func (b *Bed) Only(namespace string, more func(authorization.ResourceAttributes) bool) {
	b.permit(func(a authorization.ResourceAttributes) bool {
		return a.Namespace == namespace && a.Resource != "namespaces" || a.Resource == "namespaces" && a.Name == namespace && a.Verb == "get" || more != nil && more(a)
	})
}

// Grant is a role that is bound in a namespace, or for "" in the whole cluster.
type Grant struct {
	Namespace string
	Rules     []rbacv1.PolicyRule
}

// Granted lets the user do what some roles permit and nothing else, as an API server does.
func (b *Bed) Granted(grants ...Grant) {
	b.permit(func(a authorization.ResourceAttributes) bool {
		return slices.ContainsFunc(grants, func(g Grant) bool {
			return (g.Namespace == "" || g.Namespace == a.Namespace) && slices.ContainsFunc(g.Rules, func(r rbacv1.PolicyRule) bool { return permits(r, a) })
		})
	})
}

func permits(r rbacv1.PolicyRule, a authorization.ResourceAttributes) bool {
	has := func(list []string, one string) bool { return slices.Contains(list, "*") || slices.Contains(list, one) }
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	return has(r.APIGroups, a.Group) && has(r.Resources, resource) && has(r.Verbs, a.Verb) && (len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.Name))
}

// permit makes the server answer as one that permits this and nothing else.
func (b *Bed) permit(may func(authorization.ResourceAttributes) bool) {
	b.Server.May = may
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		a, known := attributes(r)
		if !known || may(a) {
			return false
		}
		where := ""
		if a.Namespace != "" {
			where = fmt.Sprintf(" in the namespace %q", a.Namespace)
		}
		clustertest.Fail(w, apierrors.NewForbidden(kube.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name,
			fmt.Errorf("User %q cannot %s resource %q in API group %q%s", clustertest.User, a.Verb, a.Resource, a.Group, where))) //nolint:staticcheck // the words of the real server
		return true
	}
}

// attributes returns the access attributes of a request; known is false for requests that every user is allowed to make.
func attributes(r *http.Request) (a authorization.ResourceAttributes, known bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis" && !strings.HasPrefix(parts[1], "auth"):
		a.Group, parts = parts[1], parts[3:]
	default:
		return a, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		a.Namespace, parts = parts[1], parts[2:]
	}
	a.Resource = parts[0]
	if len(parts) > 1 {
		a.Name = parts[1]
	}
	if len(parts) > 2 {
		a.Subresource = parts[2]
	}
	if a.Resource == "namespaces" { // a namespace counts as one of its own objects
		a.Namespace = a.Name
	}
	a.Verb = map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[r.Method]
	if a.Verb == "get" && a.Name == "" {
		a.Verb = "list"
	}
	if a.Verb == "list" && r.URL.Query().Get("watch") != "" {
		a.Verb = "watch"
	}
	return a, true
}
