package logs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/logs"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const shop = "shop"

// bed is a Solution whose operator has a pod. Beside it are a stranger, and one that the operator made.
type bed struct {
	*deployertest.Bed
	mu      sync.Mutex
	queries []string          // of logs
	written map[string]string // by pod/container
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{Bed: deployertest.New(t), written: map[string]string{}}
	b.Added(shop, "1.0.0", deployertest.Content{})
	b.answerLogs()
	operator := b.Server.Object("Deployment", deployertest.Environment, "shop-operator")
	b.Server.Put(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: shop-operator-1, namespace: site, uid: set-1,
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: shop-operator, uid: %q, controller: true}]}}`, operator.GetUID()))
	set := b.Server.Object("ReplicaSet", deployertest.Environment, "shop-operator-1")
	b.pod("operator-a", fmt.Sprintf("apiVersion: apps/v1, kind: ReplicaSet, name: shop-operator-1, uid: %q", set.GetUID()), running(0))
	b.pod("clock-b", "apiVersion: "+deployertest.Group(shop)+"/v1, kind: Clock, name: big, uid: clock", running(0))
	b.pod("stranger", "apiVersion: apps/v1, kind: ReplicaSet, name: unknown, uid: unknown", running(0))
	return b
}

// answerLogs answers with logs, whatever else the server refuses.
func (b *bed) answerLogs() {
	others := b.Server.Answer
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		name, ok := strings.CutSuffix(r.URL.Path, "/log")
		if !ok {
			return others != nil && others(w, r)
		}
		name = name[strings.LastIndex(name, "/")+1:] + "/" + r.URL.Query().Get("container")
		b.mu.Lock()
		defer b.mu.Unlock()
		b.queries = append(b.queries, name+"?"+r.URL.RawQuery)
		_, _ = fmt.Fprint(w, b.written[name])
		return true
	}
}

// pod makes a pod with one container, by its owner and the status of the container.
func (b *bed) pod(name, owner, status string) {
	b.Helper()
	b.Server.Put(b, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: site, ownerReferences: [{%s, controller: true}]},
spec: {nodeName: node-1, containers: [{name: main, image: a}]}, status: {phase: Running, conditions: [{type: PodScheduled, status: "True"}], containerStatuses: [%s]}}`, name, owner, status))
}

func running(restarts int) string {
	return fmt.Sprintf(`{name: main, restartCount: %d, state: {running: {startedAt: "2026-01-01T00:00:00Z"}}}`, restarts)
}

func (b *bed) writes(name string, lines ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.written[name] = strings.Join(lines, "\n") + "\n"
}

// run reads logs, and returns lines and notes as they came. Until ends it.
func (b *bed) run(o logs.Options, until func(text string) bool) ([]string, error) {
	b.Helper()
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	var got []string
	take := func(text string) {
		got = append(got, text)
		if until != nil && until(text) {
			stop()
		}
	}
	o.Environment = deployertest.Environment
	if o.Solution == "" {
		o.Solution = shop
	}
	reader := logs.Reader{
		Survey: b.Connect().Survey, Now: func() time.Time { return time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC) },
		Line: func(l schema.LogLine) error { take(l.Pod + "/" + l.Container + " " + l.Text); return nil },
		Note: func(text string) { take("note: " + text) },
	}
	err := reader.Run(ctx, o)
	return got, err
}

const second = "2026-01-01T00:00:%02d.000000001Z "

func at(n int, text string) string { return fmt.Sprintf(second, n) + text }

func TestRead(t *testing.T) {
	b := newBed(t)
	b.writes("operator-a/main", at(1, "started"), at(2, "ready"))
	b.writes("clock-b/main", at(1, "\x1b[1;31mti\x1b[0mck"), "no time", at(3, strings.Repeat("x", 70000)))
	b.writes("stranger/main", at(1, "secret"))
	got, err := b.run(logs.Options{Tail: 10, Since: time.Hour}, nil)
	want := []string{
		"clock-b/main tick", "clock-b/main no time", "clock-b/main " + strings.Repeat("x", 65536-len(at(3, ""))), "clock-b/main " + strings.Repeat("x", 70000-65536+len(at(3, ""))),
		"operator-a/main started", "operator-a/main ready",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	if want := "clock-b/main?container=main&sinceTime=2026-01-01T00%3A00%3A00Z&tailLines=10&timestamps=true"; b.queries[0] != want {
		t.Errorf("it asks for %s, want %s", b.queries[0], want)
	}
	if got, err = b.run(logs.Options{Pod: "operator-a", Container: "main", Tail: -1}, nil); err != nil || len(got) != 2 {
		t.Errorf("of one pod: %q, %v", got, err)
	}
}

func TestReadWithoutRecords(t *testing.T) {
	b := newBed(t)
	b.writes("operator-a/main", at(1, "started"))
	b.Only(deployertest.Environment, nil)
	b.answerLogs()
	got, err := b.run(logs.Options{Tail: -1}, nil)
	if diff := cmp.Diff([]string{"operator-a/main started"}, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
}

// TestReadBrokenOff: a log that ends in the middle is not complete.
func TestReadBrokenOff(t *testing.T) {
	b := newBed(t)
	answer := b.Server.Answer
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			return answer(w, r)
		}
		_, _ = io.WriteString(w, "2026-01-01T00:00:00Z half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, err := b.run(logs.Options{Tail: -1}, nil)
	if report.CodeOf(err) != report.Unavailable || !strings.Contains(err.Error(), "/main: it broke off: ") {
		t.Errorf("got %v", err)
	}
}

func TestReadRefuses(t *testing.T) {
	b := newBed(t)
	for name, test := range map[string]struct {
		o     logs.Options
		code  report.Code
		words string
	}{
		"another Solution":      {logs.Options{Scope: survey.Scope{Solution: "bakery"}}, report.NotFound, "bakery is not deployed"},
		"no such component":     {logs.Options{Scope: survey.Scope{Component: "web"}}, report.NotFound, "no component web"},
		"no such pod":           {logs.Options{Pod: "missing"}, report.NotFound, "no pod missing"},
		"a path":                {logs.Options{Pod: "../secrets"}, report.Usage, "not the name"},
		"the past, for ever":    {logs.Options{Follow: true, Previous: true}, report.Usage, "--previous"},
		"a namespace of others": {logs.Options{Scope: survey.Scope{Namespace: "default"}}, report.NotFound, "not part of environment"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.run(test.o, nil)
			deployertest.Refused(t, err, test.code, test.words)
		})
	}
}

func TestPrevious(t *testing.T) {
	b := newBed(t)
	b.writes("operator-a/main", at(1, "panic"))
	owner := fmt.Sprintf("apiVersion: apps/v1, kind: ReplicaSet, name: shop-operator-1, uid: %q", b.Server.Object("ReplicaSet", "site", "shop-operator-1").GetUID())
	b.pod("operator-a", owner, `{name: main, restartCount: 1, state: {running: {}}, lastState: {terminated: {exitCode: 2}}}`)
	got, err := b.run(logs.Options{Previous: true, Tail: -1}, nil)
	if diff := cmp.Diff([]string{"operator-a/main panic"}, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	if !strings.Contains(b.queries[0], "previous=true") {
		t.Errorf("it asks for %s", b.queries[0])
	}
}

// TestFailing reads the logs of containers that do not work, and no others.
func TestFailing(t *testing.T) {
	b := newBed(t)
	owner := fmt.Sprintf("apiVersion: apps/v1, kind: ReplicaSet, name: shop-operator-1, uid: %q", b.Server.Object("ReplicaSet", "site", "shop-operator-1").GetUID())
	for name, status := range map[string]string{
		"clock-b": "ready: true, state: {running: {}}", "operator-a": "ready: false, state: {running: {}}",
		"operator-c": "state: {terminated: {exitCode: 0}}", "operator-d": "state: {terminated: {exitCode: 1}}",
		"operator-e": "state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1}}",
	} {
		b.pod(name, owner, "{name: main, restartCount: 1, "+status+"}")
		b.writes(name+"/main", at(1, "here"))
	}
	got, err := b.run(logs.Options{Failing: true, Tail: -1}, nil)
	if diff := cmp.Diff([]string{"operator-a/main here", "operator-d/main here", "operator-e/main here"}, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
}

// TestFollow: a pod that has not started is waited for, a connection that breaks off is opened again after the last line, and a
// container that is started again is followed on.
func TestFollow(t *testing.T) {
	b := newBed(t)
	b.Deleted("Pod", "site", "clock-b")
	owner := fmt.Sprintf("apiVersion: apps/v1, kind: ReplicaSet, name: shop-operator-1, uid: %q", b.Server.Object("ReplicaSet", "site", "shop-operator-1").GetUID())
	b.pod("operator-a", owner, `{name: main, ready: false, state: {waiting: {reason: ImagePullBackOff, message: no such image}}}`)
	got, err := b.run(logs.Options{Follow: true, Tail: 5}, func(text string) bool {
		switch text {
		case "operator-a/main one":
			b.writes("operator-a/main", at(1, "one"), at(2, "two"))
		case "operator-a/main two":
			b.writes("operator-a/main", at(9, "again"))
			b.pod("operator-a", owner, running(1))
		case "operator-a/main again":
			return true
		default:
			b.writes("operator-a/main", at(1, "one"))
			b.pod("operator-a", owner, running(0))
		}
		return false
	})
	if err != nil || len(got) != 4 || !strings.HasPrefix(got[0], "note: operator-a/main has not started: ") || !strings.Contains(got[0], "no such image") {
		t.Fatalf("%q, %v", got, err)
	}
	if diff := cmp.Diff([]string{"operator-a/main one", "operator-a/main two", "operator-a/main again"}, got[1:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFollowEnds with the error of who takes the lines.
func TestFollowEnds(t *testing.T) {
	b := newBed(t)
	b.writes("operator-a/main", at(1, "one"))
	broken := errors.New("broken pipe")
	reader := logs.Reader{
		Survey: b.Connect().Survey, Now: time.Now, Note: func(string) {},
		Line: func(schema.LogLine) error { return broken },
	}
	err := reader.Run(t.Context(), logs.Options{Scope: survey.Scope{Environment: "site", Solution: shop}, Follow: true, Tail: -1})
	if !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}
