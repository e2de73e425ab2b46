package console_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/rights"
)

const shopLogs = ownPage + "/logs/shop"

// logBench is a console in front of a cluster in which the operator of a Solution has written logs.
type logBench struct {
	*bench
	*deployertest.Bed
	mu      sync.Mutex
	written map[string]string      // by container, with -before for the one before a restart
	more    map[string]chan string // lines of a log that is followed
	asked   []string               // queries of logs
	others  func(http.ResponseWriter, *http.Request) bool
}

func startWithLogs(t *testing.T) *logBench {
	t.Helper()
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{})
	operator := bed.Server.Object("Deployment", deployertest.Environment, "shop-operator")
	bed.Server.Put(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: shop-operator-x, namespace: site, uid: pod-x,
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: shop-operator, uid: %q, controller: true}]},
spec: {nodeName: node-1, containers: [{name: manager}, {name: proxy}]}, status: {containerStatuses: [
  {name: manager, ready: false, restartCount: 3, state: {running: {}}, lastState: {terminated: {exitCode: 2}}}, {name: proxy, ready: true, state: {running: {}}}]}}`, operator.GetUID()))
	l := &logBench{bench: startOn(t, bed.Server, nil), Bed: bed, written: map[string]string{
		"manager": "2026-11-26T10:00:01.000000001Z <script>alert(1)</script>\n2026-11-26T10:00:03Z \x1b[2J\u202eError 7\n", "manager-before": "2026-11-26T09:00:00Z panic\n",
		"proxy": "2026-11-26T10:00:02Z ready\n",
	}, more: map[string]chan string{"manager": make(chan string)}}
	l.others = l.authenticate
	l.api.Answer = l.answer
	return l
}

func (l *logBench) answer(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasSuffix(r.URL.Path, "/log") || l.others(w, r) {
		return !strings.HasSuffix(r.URL.Path, "/log") && l.others(w, r)
	}
	q := r.URL.Query()
	name := q.Get("container")
	if q.Get("previous") == "true" {
		name += "-before"
	}
	l.mu.Lock()
	l.asked = append(l.asked, r.URL.RawQuery)
	text := l.written[name]
	l.mu.Unlock()
	_, _ = fmt.Fprint(w, text)
	if q.Get("follow") != "true" {
		return true
	}
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case line := <-l.more[name]:
			_, _ = fmt.Fprintln(w, line)
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return true
		}
	}
}

// TestLogs: the lines of all containers in the order of their times, or those that are chosen, as text that cannot be anything else.
func TestLogs(t *testing.T) {
	l := startWithLogs(t)
	c := l.in(t)
	a := c.get(shopLogs)
	a.has(t, "shop-operator-x/manager <script>alert(1)</script>\n11-26 10:00:02 shop-operator-x/proxy ready\n11-26 10:00:03 shop-operator-x/manager \\u001b[2J\\u202eError 7\n", "Before the restart", "New lines appear")
	if strings.Contains(a.body, "<script>alert") || !strings.Contains(a.body, `data-feed="`+shopLogs+`/events`) {
		t.Errorf("%s", content(a.body))
	}
	for name, test := range map[string]struct {
		query string
		has   []string
		asked string // of the API server
	}{
		"one container":          {"pod=shop-operator-x&container=proxy", []string{"11-26 10:00:02 ready", "not manager <script>"}, "container=proxy&tailLines=200&timestamps=true"},
		"before the restart":     {"previous=true&container=manager", []string{"manager panic", "not ready", "not New lines appear"}, "container=manager&previous=true&tailLines=200&timestamps=true"},
		"words in any case":      {"q=error+MANAGER", []string{"Error 7", "not <script>", "not ready\n"}, "container=proxy&tailLines=5000&timestamps=true"},
		"nothing with the words": {"q=nonsense", []string{"There are no such lines"}, ""},
		"paused":                 {"follow=no", []string{"Error 7", "Follow", "not New lines appear"}, ""},
		"a pod that has gone":    {"pod=shop-operator-y", []string{"no pod shop-operator-y"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.get(shopLogs+"?"+test.query).has(t, test.has...)
			l.mu.Lock()
			defer l.mu.Unlock()
			if got := l.asked[len(l.asked)-1]; test.asked != "" && got != test.asked {
				t.Errorf("the API server is asked for %s", got)
			}
		})
	}
	for query, status := range map[string]int{"since=yesterday": http.StatusBadRequest, "since=-1h": http.StatusBadRequest, "component=missing": http.StatusNotFound, "pod=../x": http.StatusBadRequest} {
		if got := c.get(shopLogs + "?" + query); got.StatusCode != status {
			t.Errorf("%s: %d\n%s", query, got.StatusCode, content(got.body))
		}
	}
	var document struct{ Lines []struct{ Pod, Text string } }
	if c.json(shopLogs, &document); len(document.Lines) != 3 || document.Lines[2].Text != "\x1b[2J\u202eError 7" {
		t.Errorf("%+v", document)
	}
	a = c.get(shopLogs + "/download?container=manager")
	if want := "2026-11-26T10:00:03Z shop-operator-x/manager \\u001b[2J\\u202eError 7\n"; !strings.HasSuffix(a.body, want) || !strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment; filename=site-shop-") {
		t.Errorf("%v %q", a.Header, a.body)
	}
	for _, path := range []string{"/download?since=-1h", "/events?since=-1h"} {
		if refused := c.get(shopLogs + path); refused.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", path, refused.StatusCode)
		}
	}
	if a = c.get(shopLogs + "/download?component=missing"); a.StatusCode != http.StatusNotFound {
		t.Errorf("a download of nothing: %d", a.StatusCode)
	}
}

// TestDownloadsTakeLong: a download has no deadline while it waits for more lines, and has one for its end.
func TestDownloadsTakeLong(t *testing.T) {
	l := startWithLogs(t)
	c := l.in(t)
	var read, write atomic.Pointer[time.Time]
	l.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { l.ServeHTTP(deadlines{w, &read, &write}, r) })
	answer := l.api.Answer
	l.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if at := write.Load(); strings.HasSuffix(r.URL.Path, "/log") && (at == nil || !at.IsZero()) {
			t.Errorf("at work, with a deadline for the answer: %v", at)
		}
		return answer(w, r)
	}
	if a := c.get(shopLogs + "/download?container=manager"); a.StatusCode != http.StatusOK || write.Load() == nil || write.Load().IsZero() {
		t.Errorf("%d, the last deadline is %v", a.StatusCode, write.Load())
	}
}

// events are the events of a stream, each on one line.
func (b *browser) events(path string) func(want string) {
	b.Helper()
	lines, event := b.stream(path), ""
	return func(want string) {
		b.Helper()
		for lines.Scan() {
			if line := lines.Text(); line != "" {
				event += line + "|"
				continue
			}
			if got := event; strings.Contains(got, "event:") {
				event = ""
				if !strings.Contains(got, want) {
					b.Fatalf("got %s, want %s", got, want)
				}
				return
			}
		}
		b.Fatalf("the stream has ended without %s", want)
	}
}

// TestLogsFollow: the last lines come first, then later ones, until the session ends.
func TestLogsFollow(t *testing.T) {
	l := startWithLogs(t)
	c := l.with(t, "mine")
	next := c.events(shopLogs + "/events?q=manager")
	next("event: begin|data: 11-26 10:00:01 shop-operator-x/manager <script>alert(1)</script>|data: 11-26 10:00:03 ")
	l.more["manager"] <- "2026-11-26T10:00:04Z line\r\ndata: x"
	next(`event: lines|data: 11-26 10:00:04 shop-operator-x/manager line`)
	l.deny("mine")
	c.leads(c.get("/"), "/login?to=%2F&ended=refused")
	for done := time.After(20 * time.Second); ; { // the stream ends with the session, and with it the log
		select {
		case l.more["manager"] <- "2026-11-26T10:00:05Z still here":
			time.Sleep(time.Millisecond)
			continue
		case <-time.After(time.Second):
		case <-done:
			t.Error("the log is still followed")
		}
		break
	}
}

// piped is a listener with one connection, in which each byte waits for its reader.
type piped struct {
	net.Listener
	connections chan net.Conn
}

func (p piped) Accept() (net.Conn, error) {
	if c, ok := <-p.connections; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (piped) Close() error { return nil }

// writes reports the first time that something is written to a browser.
type writes struct {
	http.ResponseWriter
	begun func()
}

func (w writes) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w writes) Write(data []byte) (int, error) {
	if len(data) > 0 {
		w.begun()
	}
	return w.ResponseWriter.Write(data)
}

// TestLogsNotRead: a log is not followed after the session for a browser that does not read it.
func TestLogsNotRead(t *testing.T) {
	l := startWithLogs(t)
	c := l.with(t, "mine")
	ended, begun := make(chan struct{}), make(chan struct{})
	l.others = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("follow") == "true" {
			context.AfterFunc(r.Context(), func() { close(ended) })
		}
		return l.authenticate(w, r)
	}
	front, back := net.Pipe()
	listener := piped{l.server.Listener, make(chan net.Conn, 1)}
	listener.connections <- back
	close(listener.connections)
	reportBegun := sync.OnceFunc(func() { close(begun) })
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.ServeHTTP(writes{w, reportBegun}, r)
	})}
	if err := server.Serve(listener); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
	defer front.Close() //nolint:errcheck // nothing is read from it
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.server.URL+shopLogs+"/events?container=manager", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: "solutionctl", Value: c.sessionCookie()})
	if err = r.Write(front); err != nil {
		t.Fatal(err)
	}
	if response, err := http.ReadResponse(bufio.NewReader(front), r); err != nil || response.StatusCode != http.StatusOK { //nolint:bodyclose // its connection is closed
		t.Fatal(response, err)
	}
	<-begun
	c.post("/logout")
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the log is still followed")
	}
}

// grant lets the users of the console do what some roles permit, and nothing else.
func (l *logBench) grant(grants ...deployertest.Grant) {
	l.Granted(grants...)
	l.others, l.api.Answer = l.api.Answer, l.answer
}

// TestLogsRefused: a user without the right to read logs gets the command by which an administrator gives it, and an open page ends when
// the right is taken away. The roles for those who deploy have the right.
func TestLogsRefused(t *testing.T) {
	l := startWithLogs(t)
	roles := printed(t, l.Bed, rights.RolesOptions{Solution: "shop", Environment: deployertest.Environment, Installers: "installers"})
	read := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"configmaps", "deployments", "pods", "namespaces"}, Verbs: []string{"get", "list", "watch"}}
	blind := []deployertest.Grant{{Namespace: deployertest.Environment, Rules: []rbacv1.PolicyRule{read}}, {Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}}}}
	l.grant(blind...)
	c := l.with(t, "joe")
	c.leads(c.get("/environments?open="+deployertest.Environment), ownPage)
	c.get(ownPage).has(t, shopLogs)
	a := c.get(shopLogs)
	a.has(t, "You do not have permission to read logs in site", "kubectl --namespace site create role solutionctl-logs", "--role solutionctl-logs --user ", "not ready")
	if !regexp.MustCompile("rolebinding solutionctl-logs-[0-9a-f]{16} ").MatchString(a.body) { // Kubernetes refuses a name with the / or % of a user
		t.Errorf("the name of the RoleBinding\n%s", content(a.body))
	}
	if a.StatusCode != http.StatusForbidden {
		t.Errorf("status %d", a.StatusCode)
	}
	l.grant(roles...)
	c.get(shopLogs).has(t, "proxy ready", "not permission")
	next := c.events(shopLogs + "/events")
	next("event: begin|data: ")
	l.grant(blind...)
	l.clock.advance(time.Minute)
	next("event: end|")
}

// TestObjects: the tree of a Solution, with links to the logs of its containers.
func TestObjects(t *testing.T) {
	l := startWithLogs(t)
	for name, grants := range map[string][]deployertest.Grant{
		"an administrator": nil,
		"a visitor": {
			{Namespace: deployertest.Environment, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}}},
			{Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if grants != nil {
				l.grant(grants...)
			}
			c := l.with(t, strings.ReplaceAll(name, " ", "-"))
			if grants != nil {
				c.leads(c.get("/environments?open="+deployertest.Environment), ownPage)
			}
			a := c.get(ownPage + "/objects/shop")
			a.has(t, "shop-operator", "0 of 1 pod ready", "restarted 3 times", "its readiness probe does not succeed yet")
			if to := a.link(t, "Logs before the restart"); to != shopLogs+"?container=manager&namespace=site&pod=shop-operator-x&previous=true" {
				t.Errorf("%s", to)
			}
			if a := c.get(ownPage + "/objects/missing"); a.StatusCode != http.StatusNotFound {
				t.Errorf("a Solution that is not there: %d", a.StatusCode)
			}
		})
	}
}
