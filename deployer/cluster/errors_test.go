package cluster

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/solutionctl/solutionctl/schema/report"
)

func newCluster() *Cluster {
	return &Cluster{options: Options{Now: time.Now}, config: &rest.Config{}, source: source{file: "/root/.kube/config", user: "admin"}}
}

// answer is a response of an API server.
func answer(code int, body string, header ...string) *http.Response {
	h := http.Header{}
	if len(header) > 0 {
		h.Set(header[0], header[1])
	}
	return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

// TestRetry checks that reads fail soon if the API server does not answer.
func TestRetry(t *testing.T) {
	t.Parallel()
	s, c := connected(t)
	var asked atomic.Int64
	s.Answer = func(http.ResponseWriter, *http.Request) bool {
		asked.Add(1)
		panic(http.ErrAbortHandler)
	}
	_, err := c.Get(WithRetry(t.Context(), 2*firstPause), NamespaceKind, "", "shop")
	if report.CodeOf(err) != report.Unavailable || c.retry < time.Second {
		t.Errorf("%v, else after %s", err, c.retry)
	}
	if n := asked.Load(); n < 2 || n > 6 { // the HTTP client tries again by itself, too
		t.Errorf("it was asked %d times", n)
	}
}

// TestTimeIsUp checks that the error of an expired wait for an API server has the reason.
func TestTimeIsUp(t *testing.T) {
	t.Parallel()
	s, c := connected(t)
	var asked atomic.Int64
	s.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if asked.Add(1) > 2 { // the HTTP client tries again by itself, too
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*firstPause) // in an attempt after one that failed
	defer cancel()
	_, err := c.Get(ctx, NamespaceKind, "", "shop")
	if text := err.Error(); report.CodeOf(err) != report.Timeout || !strings.Contains(text, "the time is up: ") {
		t.Errorf("%v", err)
	}
}

// TestTranslate turns what API servers have answered into sentences for people.
//
//nolint:bodyclose // they were never on a connection
func TestTranslate(t *testing.T) {
	web := request{
		verb: "update", kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, namespace: "shop", name: "web",
	}
	with := func(verb, format string) request { r := web; r.verb, r.format = verb, format; return r }
	failure := func(reason, message, details string) string {
		return `{"kind":"Status","status":"Failure","reason":"` + reason + `","message":"` + message + `","details":{` + details + `}}`
	}
	const cannot = `deployments.apps is forbidden: User \"bob\" cannot update resource \"deployments\" in API group \"apps\" in the namespace \"shop\"`
	const quota = `pods \"web\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2`
	for name, test := range map[string]struct {
		request      request
		status       int
		body         string
		code         report.Code
		kind         error
		message      string
		hint, absent string
	}{
		"unknown user":        {web, 401, failure("Unauthorized", "Unauthorized", ""), report.Unauthenticated, nil, "update Deployment shop/web: the API server does not know the user", `log in again: the certificate or token of user "admin"`, ""},
		"right":               {web, 403, failure("Forbidden", cannot, ""), report.Forbidden, nil, `user "bob" has no permission to update deployments of apps in namespace shop`, "a Role in namespace shop or a ClusterRole", "create"},
		"rights to apply":     {with("patch", applyFormat), 403, failure("Forbidden", cannot, ""), report.Forbidden, nil, "apply Deployment shop/web", "create", ""},
		"impersonation":       {web, 403, failure("Forbidden", `users \"eve\" is forbidden: User \"bob\" cannot impersonate resource \"users\"`, ""), report.Forbidden, nil, `user "bob" is not allowed to impersonate other users`, "impersonate", ""},
		"path":                {web, 403, failure("Forbidden", `forbidden: User \"bob\" cannot get path \"/metrics\"`, ""), report.Forbidden, nil, "has no permission to get path /metrics", "", ""},
		"escalation":          {web, 403, failure("Forbidden", `user \"bob\" (groups=[]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\" \"secrets\"], Verbs:[\"get\"]}`, ""), report.Forbidden, nil, "cannot grant permissions", `resources: ["pods", "secrets"]`, ""},
		"quota":               {web, 403, failure("Forbidden", quota, ""), report.Refused, nil, "quota small of namespace shop is used up: this needs pods=1, the limit is pods=2", "raise the ResourceQuota shop/small", ""},
		"ending namespace":    {web, 403, failure("Forbidden", "no", `"causes":[{"reason":"NamespaceTerminating"}]`), report.InUse, nil, "namespace shop is being deleted", "doctor", ""},
		"pod security":        {web, 403, failure("Forbidden", `pods \"web\" is forbidden: violates PodSecurity \"restricted:latest\"`, ""), report.Refused, nil, "it violates PodSecurity", "pod-security.kubernetes.io/enforce of namespace shop", ""},
		"other refusal":       {web, 403, failure("Forbidden", "limits say no", ""), report.Refused, nil, "the cluster refuses it: limits say no", "", ""},
		"webhook says no":     {web, 403, failure("Forbidden", `admission webhook \"a.example\" denied the request: not on Fridays`, ""), report.Refused, nil, "a.example of the cluster refuses it: not on Fridays", "", ""},
		"without explanation": {web, 400, failure("", `admission webhook \"a.example\" denied the request without explanation`, ""), report.Refused, nil, "no reason given", "", ""},
		"webhook is broken":   {web, 500, failure("InternalError", `failed calling webhook \"a.example\": refused`, ""), report.Unavailable, nil, `admission webhook "a.example" of the cluster does not work: refused`, "repair what serves the webhook", ""},
		"exists":              {with("create", ""), 409, failure("AlreadyExists", "exists", ""), report.Conflict, ErrExists, "create Deployment shop/web: it exists already", "", ""},
		"changed":             {web, 409, failure("Conflict", "changed", ""), report.Conflict, ErrChanged, "it was changed or deleted meanwhile", "run the command again", ""},
		"field of others":     {with("patch", applyFormat), 409, failure("Conflict", "c", `"causes":[{"reason":"FieldManagerConflict","field":".spec.replicas","message":"conflict with \"hpa\""}]`), report.Conflict, nil, `these fields: .spec.replicas ("hpa")`, "--force-conflicts", ""},
		"another UID":         {web, 422, failure("Invalid", "i", `"causes":[{"field":"metadata.uid","message":"no"}]`), report.Conflict, ErrChanged, "deleted and made again", "run the command again", ""},
		"invalid":             {web, 422, failure("Invalid", "i", `"causes":[{"field":"spec.replicas","message":"too many"},{"field":"spec.replicas","message":"too many"}]`), report.Invalid, nil, "does not accept it: spec.replicas: too many", "", "too many;"},
		"no patch":            {with("patch", applyFormat), 500, failure("InternalError", `failed to create typed patch object: .data.pin: expected string, got &value.valueUnstructured{Value:4711}`, ""), report.Invalid, nil, "does not accept it: failed to create typed patch object: .data.pin: expected string", "", "4711"},
		"too large":           {web, 413, failure("RequestEntityTooLarge", "large", ""), report.Invalid, nil, "larger than the API server accepts", "", ""},
		"gone":                {web, 404, failure("NotFound", "n", `"name":"web","kind":"deployments"`), report.Conflict, ErrChanged, "it was deleted meanwhile", "", ""},
		"not there":           {with("get", ""), 404, failure("NotFound", "n", `"name":"web","kind":"deployments"`), report.NotFound, nil, "read Deployment shop/web: it does not exist", "", ""},
		"no namespace":        {with("create", ""), 404, failure("NotFound", "n", `"name":"shop","kind":"namespaces"`), report.NotFound, nil, "namespace shop does not exist", "", ""},
		"no kind":             {web, 404, "404 page not found", report.Failure, ErrNoKind, "the cluster has no such kind", "", ""},
		"busy":                {web, 429, failure("TooManyRequests", "wait", ""), report.Unavailable, nil, "has no time for us: wait", "--qps", ""},
		"proxy":               {web, 502, "<html>bad gateway</html>", report.Unavailable, nil, "cannot do it now", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := newCluster().translate(t.Context(), test.request, refusal(test.request, answer(test.status, test.body)))
			if report.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.message) || test.kind != nil && !errors.Is(err, test.kind) {
				t.Errorf("%s: %v", report.CodeOf(err), err)
			}
			hints := strings.Join(report.Hints(err), "\n")
			if !strings.Contains(hints, test.hint) || test.absent != "" && strings.Contains(err.Error()+hints, test.absent) {
				t.Errorf("%v\nhints: %s", err, hints)
			}
		})
	}
}

func TestTranslateEnded(t *testing.T) {
	r := request{verb: "get", about: "read the version of the API server"}
	late, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	if err := newCluster().translate(late, r, context.DeadlineExceeded); report.CodeOf(err) != report.Timeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s: %v", report.CodeOf(err), err)
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	c := newCluster()
	if err := c.translate(ended, r, context.Canceled); report.CodeOf(err) == report.Interrupted {
		t.Errorf("nothing was changed: %v", err)
	}
	c.changed.Store(true)
	if err := c.translate(ended, r, context.Canceled); report.CodeOf(err) != report.Interrupted {
		t.Errorf("something was changed: %v", err)
	}
}

// TestAgain: which answers are worth another attempt, and how long they ask to wait.
//
//nolint:bodyclose // they were never on a connection
func TestAgain(t *testing.T) {
	r := request{verb: "get"}
	for name, test := range map[string]struct {
		response *http.Response
		attempt  int
		again    bool
		pause    time.Duration // at least
	}{
		"busy":             {answer(429, "", "Retry-After", "7"), 0, true, 7 * time.Second},
		"bad gateway":      {answer(502, ""), 50, true, lastPause},
		"server error":     {answer(500, ""), 0, true, firstPause},
		"too many of them": {answer(500, ""), serverErrors, false, 0},
		"not found":        {answer(404, ""), 0, false, 0},
		"no number":        {answer(503, "", "Retry-After", "soon"), 0, true, firstPause},
	} {
		t.Run(name, func(t *testing.T) {
			pause, again := newCluster().again(refusal(r, test.response), test.attempt)
			if again != test.again || pause < test.pause {
				t.Errorf("%t after %s", again, pause)
			}
		})
	}
	c := newCluster()
	if _, again := c.again(io.ErrUnexpectedEOF, 0); again {
		t.Error("a server that has never answered is asked again")
	}
	c.answered.Store(true)
	if _, again := c.again(io.ErrUnexpectedEOF, 0); !again {
		t.Error("a server that has answered before is not asked again")
	}
}

func TestSome(t *testing.T) {
	words := strings.Split("a b c d e f g h i j k l", " ")
	if got := report.Several(words); got != "a; b; c; d; e; f; g; h; i; j; and 2 more" || words[10] != "k" {
		t.Errorf("%q, %v", got, words)
	}
	long := "Invalid value: {" + strings.Repeat("x", 200) + "}: must be short"
	if got := causes(metav1.Status{Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "spec", Message: long}}}}); got != "spec: must be short" {
		t.Errorf("%q", got)
	}
}
