package console_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/console"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/schema"
)

// crashLoop plays the kubelet and the controllers of a Deployment whose container ends as soon as it runs, on the fast clock of the console. It
// is started again after 10 s, 20 s, and so on up to five minutes, until heal is called: then it runs.
type crashLoop struct {
	bed  *deployertest.Bed
	now  func() time.Time
	pod  string // with the identity of its owner, in YAML
	end  context.CancelFunc
	done sync.WaitGroup
}

// crashes makes the operator of a bed one whose container ends again and again.
func crashes(t *testing.T, bed *deployertest.Bed, now func() time.Time) *crashLoop {
	t.Helper()
	deployment := bed.Server.Object("Deployment", deployertest.Environment, "shop-operator")
	labels, _, _ := unstructured.NestedStringMap(deployment.Object, "spec", "selector", "matchLabels")
	var pairs []string
	for name, value := range labels {
		pairs = append(pairs, name+": "+value)
	}
	own := func(name, kind string, owner *unstructured.Unstructured) string {
		return fmt.Sprintf(`name: %s, namespace: site, labels: {%s}, ownerReferences: [{apiVersion: apps/v1, kind: %s, name: %s, uid: %s, controller: true}]`,
			name, strings.Join(pairs, ", "), kind, owner.GetName(), owner.GetUID())
	}
	bed.Server.Put(t, `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {`+own("shop-operator-1", "Deployment", deployment)+`}, spec: {replicas: 1}}`)
	l := &crashLoop{bed: bed, now: now, pod: own("shop-operator-1-x", "ReplicaSet", bed.Server.Object("ReplicaSet", deployertest.Environment, "shop-operator-1"))}
	l.show(0, "running: {startedAt: TIME}", 1)
	ctx, end := context.WithCancel(context.Background())
	l.end = end
	l.done.Go(func() {
		for i := 1; ; i++ {
			for _, step := range []struct {
				pause time.Duration
				state string
				ready int
			}{
				{time.Second, "terminated: {exitCode: 1, reason: Error, finishedAt: TIME}", 0},
				{time.Second, "waiting: {reason: CrashLoopBackOff, message: back-off}", 0},
				{min(10*time.Second<<min(i, 10), 5*time.Minute), "running: {startedAt: TIME}", 1},
			} {
				select {
				case <-ctx.Done():
					return
				case <-time.After(step.pause / haste):
				}
				l.show(i, step.state, step.ready)
			}
		}
	})
	t.Cleanup(l.heal)
	return l
}

// show makes the container have been restarted so many times, and be in a state.
func (l *crashLoop) show(restarts int, state string, ready int) {
	last := ""
	if restarts > 0 {
		last = ", lastState: {terminated: {exitCode: 1, reason: Error, finishedAt: TIME}}"
	}
	l.bed.Server.Put(l.bed.TB, strings.ReplaceAll(fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {%s}, spec: {containers: [{name: main, image: x}]},
status: {phase: Running, containerStatuses: [{name: main, restartCount: %d, ready: %t, state: {%s}%s}]}}`, l.pod, restarts, ready > 0, state, last), "TIME", l.now().UTC().Format(time.RFC3339)))
	for _, of := range []string{"ReplicaSet shop-operator-1", "Deployment shop-operator"} {
		kind, name, _ := strings.Cut(of, " ")
		object := l.bed.Server.Object(kind, deployertest.Environment, name)
		for _, field := range []string{"readyReplicas", "availableReplicas"} {
			_ = unstructured.SetNestedField(object.Object, int64(ready), "status", field) // it has a status
		}
		l.bed.Put(object)
	}
}

// heal lets the container run from now on.
func (l *crashLoop) heal() {
	l.end()
	l.done.Wait()
}

// TestQuietCrashLoop counts the requests of open pages while a container ends again and again, some minutes after the last other change. What
// else happens is shown at once, and that the container keeps running when it has done so for ten minutes.
func TestQuietCrashLoop(t *testing.T) {
	if testing.Short() {
		t.Skip("a long test: in short mode there are TestQuiet, and TestFlaps of package cluster")
	}
	t.Parallel() // it waits
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{})
	var now func() time.Time
	b := startOn(t, bed.Server, func(o *console.Options) {
		hasten(o)
		now = o.Now
	})
	loop := crashes(t, bed, now)
	var asked requests
	permit := b.api.Answer
	b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool { asked.add(r); return permit(w, r) }
	c := b.in(t)
	c.get("/")
	next := c.followNames("/events")
	next("changed")
	b.in(t).followNames("/events")("changed")
	reads := func(list []string) (n int) {
		for _, r := range list {
			if strings.HasPrefix(r, "GET /api/v1/namespaces?") && !strings.Contains(r, "watch=") {
				n++
			}
		}
		return n
	}
	const quiet = 5 * time.Minute
	for tries := 0; ; tries++ { // the pauses between restarts, and those between reads, become long
		time.Sleep(quiet / haste)
		if n := reads(asked.take()); n == 0 {
			break
		} else if tries == 20 {
			t.Fatalf("the console reads the cluster all the time: %d times in %s", n, quiet)
		}
	}
	requested := float64(11)
	for tries := 0; requested > 10 && tries < 4; tries++ { // a busy machine makes the API server look absent, and then the cluster is read again
		started := time.Now()
		time.Sleep(20 * time.Minute / haste)
		list := asked.take()
		requested = float64(len(list)) / (time.Since(started).Minutes() * haste)
		t.Logf("%.1f requests a minute, with %d reads", requested, reads(list))
	}
	if requested > 10 {
		t.Errorf("%.1f requests a minute", requested)
	}

	since := time.Now()
	bed.Namespace("more", "more")
	for environments := 0; environments < 2; {
		next("changed")
		var status schema.Status
		c.json("/", &status)
		environments = len(status.Environments)
	}
	if took := time.Since(since); took > 5*time.Second { // a machine that is busy takes some time
		t.Errorf("another change is shown after %s", took)
	}

	loop.heal()
	loop.show(100, "running: {startedAt: TIME}", 1)
	isReady := func() bool {
		var status schema.Status
		c.json("/", &status)
		return status.Ready || !slices.ContainsFunc(slices.Collect(status.Deployments()), func(d schema.PlacedDeployment) bool { return d.Health != schema.HealthReady })
	}
	for end := time.Now().Add(15 * time.Minute / haste); !isReady(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is not shown that the container runs")
		}
	}
}
