package apps_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/schema"
)

// TestEvents: events of the instance and of its objects are listed newest first, up to a limit.
func TestEvents(t *testing.T) {
	b := shopBed(t)
	now := time.Now().UTC().Truncate(time.Second)
	app := &schema.App{
		APIVersion: "shop.example/v1", Kind: "Clock", Namespace: site, Name: "main", Created: now.Add(-time.Hour),
		Objects: []schema.AppObject{{ObjectRef: schema.ObjectRef{APIVersion: "v1", Kind: "Pod", Namespace: site, Name: "main-0"}}},
	}
	put := func(name, kind, apiVersion, about, reason, message string, at time.Time) {
		b.Server.Put(t, fmt.Sprintf("{apiVersion: v1, kind: Event, metadata: {name: %s, namespace: %s}, involvedObject: {apiVersion: %s, kind: %s, name: %s, namespace: %s}, "+
			"type: Warning, reason: %s, message: %q, count: 3, lastTimestamp: %q}", name, site, apiVersion, kind, about, site, reason, message, at.Format(time.RFC3339)))
	}
	put("a", "Pod", "v1", "main-0", "BackOff", "<script>alert(1)</script>", now.Add(-time.Minute))
	put("b", "Clock", "shop.example/v1", "main", "Wound", strings.Repeat("x", 5000), now)
	put("c", "Pod", "v1", "other-0", "Other", "of another one", now)
	put("d", "Clock", "other.example/v1", "main", "Group", "of another group", now)
	put("e", "Pod", "v1", "main-0", "Before", "of an instance of the same name", now.Add(-2*time.Hour))
	events, err := b.Apps.Events(t.Context(), app, now)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		got = append(got, fmt.Sprintf("%s %s %s %d %s", e.Reason, e.Kind, e.Name, e.Count, e.Last.Sub(now)))
	}
	if want := []string{"Wound Clock main 3 0s", "BackOff Pod main-0 3 -1m0s"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(events) == 2 && (len(events[0].Message) != 1000 || events[1].Message != "<script>alert(1)</script>") {
		t.Errorf("messages are %d and %q", len(events[0].Message), events[1].Message)
	}
	for i := range 60 {
		put(fmt.Sprintf("more-%d", i), "Pod", "v1", "main-0", "More", "again", now.Add(-time.Duration(i)*time.Second))
	}
	if events, err = b.Apps.Events(t.Context(), app, now); err != nil || len(events) != 50 {
		t.Errorf("%d events, %v", len(events), err)
	}
	if events, err = b.Apps.Events(t.Context(), app, now.Add(48*time.Hour)); err != nil || events == nil || len(events) != 0 {
		t.Errorf("two days later: %v, %v", events, err)
	}
}

// TestReasonsOfPods: the reason of a pod is that of its container, and not merely that the pod is not ready.
func TestReasonsOfPods(t *testing.T) {
	b := shopBed(t)
	b.Clock(shop, site, "main", "")
	b.Server.Stall("Pod")
	clock := b.Server.Object("Clock", site, "main")
	b.Server.Put(t, fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: main-0, namespace: %s, ownerReferences: [{apiVersion: %s, kind: Clock, name: main, uid: %q, controller: true}]}, "+
		"spec: {nodeName: node-1, containers: [{name: web, image: i}]}, status: {phase: Running, containerStatuses: [{name: web, image: i, ready: false, restartCount: 14, "+
		"state: {waiting: {reason: CrashLoopBackOff, message: back-off}}, lastState: {terminated: {exitCode: 1, reason: Error, message: 'no such database'}}}]}}", site, clock.GetAPIVersion(), clock.GetUID()))
	one, err := b.Apps.Get(t.Context(), apps.Options{Environment: site, Name: "main"})
	if err != nil {
		t.Fatal(err)
	}
	if len(one.Objects) != 1 || !strings.Contains(one.Objects[0].Reason, "web") || !strings.Contains(one.Objects[0].Reason, "no such database") {
		t.Errorf("objects are %v, and of the pod it says %q", one.Objects, one.Objects[0].Reason)
	}
}
