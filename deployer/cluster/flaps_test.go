package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// flap is a change of a pod: how long after the last one, and the state of its container.
type flap struct {
	after time.Duration
	state string
}

const (
	runs  = "running: {startedAt: 'TIME'}"
	ends  = "terminated: {exitCode: 1, finishedAt: 'TIME'}"
	waits = "waiting: {reason: CrashLoopBackOff, message: 'back-off since TIME'}"
)

// crash returns the changes of a container that ends again and again: it waits, runs and ends.
func crash(times int, pause time.Duration) (list []flap) {
	for range times {
		list = append(list, flap{pause, runs}, flap{time.Second, ends}, flap{time.Second, waits})
	}
	return list
}

// TestFlaps: a state in which an object was several times is not worth a read, until the object stays in it; any other one is.
func TestFlaps(t *testing.T) {
	const minute = time.Minute
	for name, test := range map[string]struct {
		flaps   []flap
		delayed int  // of the changes, those that wait
		last    bool // the last one does
	}{
		"a rollout":                   {flaps: []flap{{0, waits}, {minute, runs}}},
		"three crashes":               {flaps: crash(maxReturns, minute)},
		"ten crashes":                 {flaps: crash(10, 5*minute), delayed: 7 * 3, last: true},
		"a crash a day":               {flaps: crash(10, 24*time.Hour), delayed: 0},
		"ten crashes, then another":   {flaps: append(crash(10, minute), flap{minute, "terminated: {exitCode: 137, reason: OOMKilled}"}), delayed: 7 * 3, last: false},
		"ten crashes of rising pause": {flaps: append(crash(3, minute), crash(7, 5*minute)...), delayed: 7 * 3, last: true},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			_, c := connected(t)
			f := c.Follower(t.Context())
			defer f.Close()
			f.Now = func() time.Time { return now }
			f.After = func(time.Duration) <-chan time.Time { return nil }
			delayed, last := 0, false
			for i, one := range test.flaps {
				now = now.Add(one.after)
				for range 2 { // two watches report it
					f.observe(Change{watch.Modified, parsed(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: shop, uid: u, resourceVersion: "%d"},
status: {containerStatuses: [{name: main, restartCount: %[1]d, state: {%[2]s}}]}}`, i, strings.ReplaceAll(one.state, "TIME", now.Format(time.RFC3339))))})
				}
				select {
				case <-f.Changed():
					last = false
				default:
					delayed, last = delayed+1, true
				}
			}
			if delayed != test.delayed || last != test.last || f.IsFlapping() != (delayed > 0) {
				t.Errorf("%d changes wait, the last one %t; want %d, %t", delayed, last, test.delayed, test.last)
			}
		})
	}
}

// TestFlapsEnd: what becomes of an object that has flapped is reported, twice as long after its last change as there was between two of them.
func TestFlapsEnd(t *testing.T) {
	s, c := connected(t)
	put := func(i int, state string) {
		t.Helper()
		s.Put(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: shop}, spec: {containers: [{name: main, image: x}]},
status: {phase: Running, containerStatuses: [{name: main, restartCount: %d, state: {%s}}]}}`, i, state))
	}
	put(0, "running: {}")
	ctx, reads := WithReads(t.Context())
	for _, err := range c.List(ctx, PodKind, "", metav1.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	f := c.Follower(t.Context())
	defer f.Close()
	paused, end := make(chan time.Duration, 1), make(chan time.Time)
	f.After = func(d time.Duration) <-chan time.Time { paused <- d; return end }
	if !f.Follow(reads) {
		t.Fatal("it cannot be followed")
	}
	for i := range maxReturns {
		put(2*i+1, "waiting: {reason: CrashLoopBackOff}")
		f.awaitChange(t, "it has crashed")
		put(2*i+2, "running: {}")
		f.awaitChange(t, "it runs again")
	}
	put(100, "waiting: {reason: CrashLoopBackOff}")
	if d := <-paused; d < minFlapGap || !f.IsFlapping() {
		t.Errorf("it flaps: %t, and rests after %s", f.IsFlapping(), d)
	}
	put(101, "running: {}")
	s.Put(t, `{apiVersion: v1, kind: Pod, metadata: {name: other, namespace: shop}, spec: {containers: [{name: main, image: x}]}, status: {phase: Pending}}`)
	f.awaitChange(t, "another pod is there")
	end <- time.Time{}
	<-paused // it has changed meanwhile
	select {
	case <-f.Changed():
		t.Error("it is reported before it rests")
	default:
	}
	end <- time.Time{}
	f.awaitChange(t, "it stays as it is")
	if f.IsFlapping() {
		t.Error("it still flaps")
	}
}
