package survey_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
)

// reported makes an Event about the operator of a Solution, or about another Deployment.
func reported(b *deployertest.Bed, name, object string, second int) {
	b.Helper()
	b.Server.Put(b, fmt.Sprintf(`{apiVersion: v1, kind: Event, metadata: {name: %s, namespace: site}, lastTimestamp: "2026-01-01T00:00:%02dZ",
involvedObject: {apiVersion: apps/v1, kind: Deployment, namespace: site, name: %s, uid: x}, type: Normal, reason: %s, message: m}`, name, second, object, name))
}

// TestWatchEvents: those that are there come first, each once, and then new ones and repetitions.
func TestWatchEvents(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", deployertest.Content{})
	reported(b, "second", "shop-operator", 2)
	reported(b, "first", "shop-operator", 1)
	reported(b, "other", "somewhere", 3)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var got []string
	err := b.Survey.WatchEvents(ctx, survey.Scope{Environment: site, Solution: shop}, func(e schema.ObjectEvent) error {
		got = append(got, fmt.Sprintf("%s %d", e.Reason, e.Last.Second()))
		switch got[len(got)-1] {
		case "second 2":
			reported(b, "first", "shop-operator", 59)
		case "first 59":
			reported(b, "third", "shop-operator", 4)
		}
		if slices.Contains(got, "first 59") && slices.Contains(got, "third 4") {
			stop()
		}
		return nil
	})
	want := []string{"first 1", "second 2", "first 59", "third 4"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	broken := errors.New("broken pipe")
	if err = b.Survey.WatchEvents(t.Context(), survey.Scope{Environment: site}, func(schema.ObjectEvent) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestEventsWithHostileReferences: an Event about an object that cannot be there or cannot be read belongs to nothing, and hides no other one.
func TestEventsWithHostileReferences(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", deployertest.Content{})
	reported(b, "good", "shop-operator", 9)
	for i, about := range []string{
		`apiVersion: v1, kind: Service, name: "50%"`, `apiVersion: v1, kind: Service, name: ".."`, `apiVersion: v1, kind: Pod, name: "web/proxy/x"`,
		`apiVersion: v1, kind: ConfigMap, name: refused`,
	} {
		b.Server.Put(b, fmt.Sprintf(`{apiVersion: v1, kind: Event, metadata: {name: hostile%d, namespace: site}, lastTimestamp: "2026-01-01T00:00:01Z",
involvedObject: {namespace: site, uid: "%d", %s}, type: Normal, reason: hostile, message: m}`, i, i, about))
	}
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		refused := strings.HasSuffix(r.URL.Path, "/refused")
		if refused {
			w.WriteHeader(http.StatusMethodNotAllowed)
			_, _ = w.Write([]byte(`{"kind":"Status","status":"Failure","reason":"MethodNotAllowed","code":405}`)) // the client finds out
		}
		if strings.Contains(r.URL.Path, "proxy") {
			t.Errorf("sent: %s", r.URL.Path)
		}
		return refused
	}
	list, err := b.Survey.Events(t.Context(), survey.Scope{Environment: site, Solution: shop})
	if err != nil || len(list.Events) != 1 || list.Events[0].Reason != "good" {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestEventsWithForgedUID: an Event that combines the UID of an object with another name does not hide Events about what the object owns.
func TestEventsWithForgedUID(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", deployertest.Content{})
	put := func(apiVersion, kind, name, ownerVersion, ownerKind, owner string) string {
		b.Server.Put(b, fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {name: %s, namespace: site, ownerReferences: [
{apiVersion: %s, kind: %s, name: %s, controller: true, uid: "%s"}]}}`, apiVersion, kind, name, ownerVersion, ownerKind, owner, b.Server.Object(ownerKind, site, owner).GetUID()))
		return string(b.Server.Object(kind, site, name).GetUID())
	}
	middle := put("apps/v1", "ReplicaSet", "middle", "apps/v1", "Deployment", "shop-operator")
	made := put("v1", "ConfigMap", "made", "apps/v1", "ReplicaSet", "middle")
	for i, about := range []string{"name: forged, uid: " + middle, "name: made, uid: " + made} {
		b.Server.Put(b, fmt.Sprintf(`{apiVersion: v1, kind: Event, metadata: {name: event%d, namespace: site}, lastTimestamp: "2026-01-01T00:00:01Z",
involvedObject: {apiVersion: v1, kind: ConfigMap, namespace: site, %s}, type: Normal, reason: r, message: m}`, i, about))
	}
	list, err := b.Survey.Events(t.Context(), survey.Scope{Environment: site, Solution: shop})
	if err != nil || len(list.Events) != 1 || list.Events[0].Name != "made" {
		t.Errorf("%+v, %v", list, err)
	}
}
