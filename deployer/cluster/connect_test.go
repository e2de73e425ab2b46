package cluster

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/schema/report"
)

// kubeconfig writes a kubeconfig with contexts a and b, and returns its path.
func kubeconfig(t *testing.T, server, current string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("{clusters: [{name: c, cluster: {server: %q}}], users: [{name: bob, user: {}}], "+
		"contexts: [{name: b, context: {cluster: c}}, {name: a, context: {cluster: c, user: bob}}], current-context: %q}", server, current)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestConnect checks which kubeconfig is used, and the errors of invalid ones.
func TestConnect(t *testing.T) {
	good, none := kubeconfig(t, "https://example.com:6443", "a"), kubeconfig(t, "https://example.com:6443", "")
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".kube"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(good, filepath.Join(home, ".kube", "config")); err != nil {
		t.Fatal(err)
	}
	empty, broken := filepath.Join(home, "empty"), filepath.Join(home, "broken")
	for file, text := range map[string]string{empty: "{}", broken: "{{"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	missing := filepath.Join(home, "missing")
	for name, test := range map[string]struct {
		options    Options
		from       string // the source in messages
		text, hint string // of the error
	}{
		"a file that is named":            {Options{Kubeconfig: good}, good + `, context "a"`, "", ""},
		"the file before KUBECONFIG":      {Options{Kubeconfig: good, Environment: broken}, good + `, context "a"`, "", ""},
		"KUBECONFIG before the home":      {Options{Environment: none, Home: home, Context: "b"}, none + `, context "b"`, "", ""},
		"KUBECONFIG with a missing file":  {Options{Environment: missing + string(filepath.ListSeparator) + good}, missing + ":" + good + `, context "a"`, "", ""},
		"the home directory":              {Options{Home: home}, filepath.Join(home, ".kube", "config") + `, context "a"`, "", ""},
		"another context":                 {Options{Kubeconfig: good, Context: "b"}, good + `, context "b"`, "", ""},
		"a context that is not there":     {Options{Kubeconfig: good, Context: "c"}, "", `has no context "c"`, "it has: a, b"},
		"no current context":              {Options{Kubeconfig: none}, "", "has no current context", "choose one with --context: a, b"},
		"a file that is not there":        {Options{Kubeconfig: missing}, "", "kubeconfig " + missing + " does not exist", ""},
		"a file without a cluster":        {Options{Kubeconfig: empty}, "", "names no cluster", "--kubeconfig"},
		"an unreadable file":              {Options{Kubeconfig: broken}, "", "kubeconfig " + broken + ": ", ""},
		"groups without a user":           {Options{Kubeconfig: good, AsGroups: []string{"g"}}, "", "groups to impersonate without a user", "--as USER"},
		"a server that is no address":     {Options{Kubeconfig: kubeconfig(t, "https://[", "a")}, "", `server "https://["`, ""},
		"KUBECONFIG of files all missing": {Options{Environment: missing}, "", "names no cluster", ""},
		"another context, and KUBECONFIG": {Options{Environment: good, Context: "c"}, "", `has no context "c"`, "it has: a, b"},
		"another user, with their groups": {Options{Kubeconfig: good, As: "eve", AsGroups: []string{"g"}}, good + `, context "a"`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Connect(test.options)
			if test.text != "" {
				if report.CodeOf(err) != report.Usage || !strings.Contains(err.Error(), test.text) || !strings.Contains(strings.Join(report.Hints(err), ""), test.hint) {
					t.Errorf("%v; %q", err, report.Hints(err))
				}
				return
			}
			if err != nil || c.source.String() != test.from || c.Server() != "https://example.com:6443" || c.retry != 30*time.Second || c.config.Impersonate.UserName != test.options.As {
				t.Errorf("%v, %+v", err, c)
			}
		})
	}
	if got := Contexts(Options{Kubeconfig: good}); !slices.Equal(got, []string{"a", "b"}) || Contexts(Options{Kubeconfig: missing}) != nil {
		t.Errorf("contexts %v", got)
	}
	if err := badConfig(source{file: "f"}, fs.ErrPermission); !strings.Contains(err.Error(), "this user has no permission to read kubeconfig f") {
		t.Error(err)
	}
	for want, s := range map[string]source{"the service account of this pod": {}, "f": {file: "f"}} {
		if s.String() != want {
			t.Errorf("got %q, want %q", s, want)
		}
	}
}

// TestNoAnswer: what to do about an API server that cannot be spoken with.
func TestNoAnswer(t *testing.T) {
	c, err := Connect(Options{Kubeconfig: kubeconfig(t, "https://example.com:6443", "a"), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for text, err := range map[string]error{
		"is not signed by the authority in": x509.UnknownAuthorityError{},
		"is for another name":               x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h"},
		"is valid from 0001-01-01":          x509.CertificateInvalidError{Reason: x509.Expired, Cert: &x509.Certificate{}},
		"does not speak TLS":                errors.New("http: server gave HTTP response to HTTPS client"),
		"no answer within 1m5s":             errNoAnswer,
		"it does not answer: get: refused":  errors.New("refused"),
	} {
		got := c.noAnswer(fmt.Errorf("get: %w", err))
		if report.CodeOf(got) != report.Unavailable || !strings.Contains(got.Error(), "API server https://example.com:6443: ") || !strings.Contains(got.Error(), text) || len(report.Hints(got)) == 0 {
			t.Errorf("%q: %v, %q", text, got, report.Hints(got))
		}
	}
}

// serve gives a connection to a server that answers like this.
func serve(t *testing.T, handler http.HandlerFunc) *Cluster {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := Connect(Options{Kubeconfig: kubeconfig(t, server.URL, "a"), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const unavailable = `{"kind":"Status","status":"Failure","reason":"ServiceUnavailable","message":"starting","code":503}`

// TestRetries: which requests are sent again, and when it is not known whether one was executed.
func TestRetries(t *testing.T) {
	const good = `{"gitVersion":"v1.36.3"}`
	lose := func(_ http.ResponseWriter) { panic(http.ErrAbortHandler) }
	refuse := func(code int, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.WriteHeader(code); _, _ = w.Write([]byte(body)) }
	}
	for name, test := range map[string]struct {
		answers  []func(http.ResponseWriter) // before the good one
		answered bool                        // it has answered before
		requests int32
		inDoubt  bool
		code     report.Code
	}{
		"at once":                                 {requests: 1},
		"a server that starts":                    {answers: []func(http.ResponseWriter){refuse(503, unavailable)}, requests: 2},
		"a proxy without a server":                {answers: []func(http.ResponseWriter){refuse(502, "bad gateway")}, requests: 2, inDoubt: true},
		"a connection that broke":                 {answers: []func(http.ResponseWriter){lose}, answered: true, requests: 2, inDoubt: true},
		"a connection that broke, the very first": {answers: []func(http.ResponseWriter){lose}, requests: 1, inDoubt: true, code: report.Unavailable},
		"an internal error":                       {answers: []func(http.ResponseWriter){refuse(500, `{"kind":"Status","status":"Failure","reason":"InternalError","code":500}`)}, requests: 2, inDoubt: true},
		"what is not there":                       {answers: []func(http.ResponseWriter){refuse(404, "not found")}, requests: 1, code: report.Failure},
		"what is forbidden":                       {answers: []func(http.ResponseWriter){refuse(403, `{"kind":"Status","status":"Failure","reason":"Forbidden","code":403}`)}, requests: 1, code: report.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if n := int(requests.Add(1)); n <= len(test.answers) {
					test.answers[n-1](w)
					return
				}
				_, _ = w.Write([]byte(good))
			})
			c.answered.Store(test.answered)
			answer, inDoubt, err := c.do(t.Context(), request{verb: "create", method: http.MethodPost, path: "/version", about: "test", write: true})
			if requests.Load() != test.requests || inDoubt != test.inDoubt || (err == nil) != (test.code == "") || err == nil && string(answer) != good {
				t.Fatalf("%d requests, in doubt %t, %s, %v", requests.Load(), inDoubt, answer, err)
			}
			if test.code != "" && report.CodeOf(err) != test.code {
				t.Errorf("%s: %v", report.CodeOf(err), err)
			}
			if c.changed.Load() != (err == nil || inDoubt) {
				t.Errorf("something was changed: %t", c.changed.Load())
			}
		})
	}
}

type guardFunc func() error

func (g guardFunc) Check() error { return g() }

// TestGuards checks that nothing is written if a guard fails, and that reads check none.
func TestGuards(t *testing.T) {
	var requests atomic.Int32
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { requests.Add(1); _, _ = w.Write([]byte("{}")) })
	var asked []string
	guard := func(name string, err error) Guard {
		return guardFunc(func() error { asked = append(asked, name); return err })
	}
	lost := errors.New("the lock is lost")
	outer := WithGuard(t.Context(), guard("outer", nil))
	for name, test := range map[string]struct {
		guards   []Guard
		write    bool
		asked    []string
		requests int32
	}{
		"both agree":          {[]Guard{guard("inner", nil)}, true, []string{"outer", "inner"}, 1},
		"the inner one is no": {[]Guard{guard("inner", lost), guard("last", nil)}, true, []string{"outer", "inner"}, 0},
		"a read":              {[]Guard{guard("inner", lost)}, false, nil, 1},
		"only the outer one":  {nil, true, []string{"outer"}, 1},
	} {
		ctx := outer
		for _, g := range test.guards {
			ctx = WithGuard(ctx, g)
		}
		asked = nil
		requests.Store(0)
		_, _, err := c.do(ctx, request{verb: "update", method: http.MethodPut, path: "/a", about: "test", write: test.write})
		if diff := cmp.Diff(test.asked, asked); diff != "" || requests.Load() != test.requests || (err != nil) != (test.requests == 0) || err != nil && !errors.Is(err, lost) {
			t.Errorf("%s: %d requests, %v: %s", name, requests.Load(), err, diff)
		}
	}
}

const (
	core = `{"kind":"APIGroupDiscoveryList","items":[{"versions":[{"version":"v1","resources":[
{"resource":"pods","responseKind":{"kind":"Pod"},"scope":"Namespaced","verbs":["get","list","delete"],"subresources":[]},
{"resource":"bindings","responseKind":{"kind":"Binding"},"scope":"Namespaced","verbs":["create","delete"]},
{"resource":"only-subresources","verbs":["get"]},
{"resource":"nodes","responseKind":{"kind":"Node"},"scope":"Cluster","verbs":["list","delete"]}]}]}]}`
	groups = `{"kind":"APIGroupDiscoveryList","items":[
{"metadata":{"name":"example.com"},"versions":[
{"version":"v2","resources":[{"resource":"dbs","responseKind":{"kind":"Db"},"scope":"Namespaced","verbs":["list","delete"]}]},
{"version":"v1","resources":[{"resource":"dbs","responseKind":{"kind":"Db"},"scope":"Namespaced","verbs":["list","delete"]}]}]},
{"metadata":{"name":"metrics.example.com"},"versions":[{"version":"v1","freshness":"Stale"}]}]}`
)

// TestDiscovery checks the kinds of a cluster, and the errors of API servers that do not answer.
func TestDiscovery(t *testing.T) {
	var asked atomic.Int32
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(map[string]string{"/api": core, "/apis": groups}[r.URL.Path]))
	})
	kind := func(group, version, name string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: version, Kind: name}
	}
	for name, test := range map[string]struct {
		kind       schema.GroupVersionKind
		resource   string
		namespaced bool
		code       report.Code
		err        error
	}{
		"a kind of the core":               {kind("", "v1", "Pod"), "pods", true, "", nil},
		"one without namespaces":           {kind("", "v1", "Node"), "nodes", false, "", nil},
		"one that cannot be listed":        {kind("", "v1", "Binding"), "bindings", true, "", nil},
		"an older version of a kind":       {kind("example.com", "v1", "Db"), "dbs", true, "", nil},
		"a version that there is not":      {kind("example.com", "v3", "Db"), "", false, report.Failure, ErrNoKind},
		"a kind that there is not":         {kind("", "v1", "Db"), "", false, report.Failure, ErrNoKind},
		"of a server that does not answer": {kind("metrics.example.com", "v1", "Load"), "", false, report.Unavailable, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := c.Mapping(t.Context(), test.kind)
			if test.code != "" {
				if report.CodeOf(err) != test.code || test.err != nil && !errors.Is(err, test.err) || test.err == nil && errors.Is(err, ErrNoKind) {
					t.Errorf("%s: %v", report.CodeOf(err), err)
				}
				return
			}
			if err != nil || m.Resource.Resource != test.resource || (m.Scope.Name() == "namespace") != test.namespaced {
				t.Errorf("%+v, %v", m, err)
			}
		})
	}
	var got []string
	kinds, err := c.Kinds(t.Context(), "example.com")
	for _, m := range kinds {
		got = append(got, m.GroupVersionKind.String())
	}
	if diff := cmp.Diff([]string{"/v1, Kind=Node", "/v1, Kind=Pod", "example.com/v2, Kind=Db"}, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	if _, err = c.Kinds(t.Context(), "metrics.example.com"); report.CodeOf(err) != report.Unavailable || !strings.Contains(strings.Join(report.Hints(err), ""), "APIService v1.metrics.example.com") {
		t.Errorf("a group that is needed and does not answer: %v", err)
	}
	if p, failure := c.PermissionsOn(t.Context(), kind("example.com", "v1", "Db"), "shop", "get", "list"); failure != nil || len(p) != 2 || p[1] != (Permission{Verb: "list", Group: "example.com", Resource: "dbs", Namespace: "shop"}) {
		t.Errorf("%v, %v", p, failure)
	}
	before := asked.Load()
	if _, err = c.Mapping(t.Context(), kind("", "v1", "Pod")); err != nil || asked.Load() != before {
		t.Errorf("a kind that is known is asked for: %v", err)
	}
	c.Refresh()
	if _, err = c.Mapping(t.Context(), kind("", "v1", "Pod")); err != nil || asked.Load() != before+2 {
		t.Errorf("after a change, the server is not asked again: %v", err)
	}
	old := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"kind":"APIVersions"}`)) })
	if _, err = old.Kinds(t.Context()); err == nil || !strings.Contains(err.Error(), "older than Kubernetes 1.30") {
		t.Errorf("an old API server: %v", err)
	}
}

// TestRules: what an administrator adds to a role.
func TestRules(t *testing.T) {
	pods := Permission{Resource: "pods", Namespace: "shop"}
	all := slices.Concat(pods.Each("get", "list", "get"), []Permission{
		{Verb: "patch", Group: "apps", Resource: "deployments", Subresource: "scale", Namespace: "prod", Name: "web"}, {Verb: "watch", Resource: "pods"},
	})
	const rules = `- apiGroups: [""]
  resources: ["pods"]
  verbs: ["get", "list", "watch"]
- apiGroups: ["apps"]
  resources: ["deployments/scale"]
  resourceNames: ["web"]
  verbs: ["patch"]`
	if diff := cmp.Diff(rules, Rules(all...)); diff != "" {
		t.Error(diff)
	}
	var places []string
	for line := range strings.Lines(RulesByPlace(all...)) {
		if strings.HasPrefix(line, "in ") {
			places = append(places, strings.TrimSpace(line))
		}
	}
	if diff := cmp.Diff([]string{"in every namespace:", "in namespace prod:", "in namespace shop:"}, places); diff != "" {
		t.Error(diff)
	}
	if Rules() != "" || everywhere(pods) != (Permission{Resource: "pods"}) {
		t.Error("no permission is a rule, or everywhere is a namespace")
	}
}

// TestMemory checks that an object is read only once under a lock, and that callers cannot change the cached one.
func TestMemory(t *testing.T) {
	lease := leaseOf(t, "1", 15)
	key := memoryKey{LeaseKind, "env-shop"}
	keep(t.Context(), key, lease) // without a memory nothing is kept
	if _, known := recall(t.Context(), key); known {
		t.Error("a context without a memory knows something")
	}
	ctx := WithMemory(t.Context())
	keep(ctx, key, lease)
	lease.SetName("changed")
	got, known := recall(ctx, key)
	if !known || got.GetName() != "env-shop" {
		t.Errorf("%v %t", got, known)
	}
	got.SetName("changed")
	if again, _ := recall(ctx, key); again.GetName() != "env-shop" {
		t.Error("whoever reads it changes it")
	}
	Remember(ctx, SecretKind, "state.", nil)
	if object, known := recall(ctx, memoryKey{SecretKind, "state.db"}); !known || object != nil {
		t.Error("what is not there is asked for again")
	}
	if _, known := recall(ctx, memoryKey{SecretKind, "content.db"}); known {
		t.Error("what was not read is known")
	}
	if _, known := recall(ctx, memoryKey{ConfigMapKind, "state.db"}); known {
		t.Error("what was not read is known by its name")
	}
}
