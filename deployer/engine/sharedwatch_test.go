package engine

import (
	"fmt"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/engine/record"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestLateChange checks that a change from before the run, which an open watch delivers late, is ignored: the object was ready then, or was another
// one.
func TestLateChange(t *testing.T) {
	claim := func(version string, phase string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: db, namespace: shop, resourceVersion: %q}, status: {phase: %s}}",
			version, phase)
	}
	for name, test := range map[string]struct {
		live   string // as the run has applied it; "" if unknown
		object string
		kind   watch.EventType
		want   string
	}{
		"an earlier one was ready":            {claim("10", "Pending"), claim("9", "Bound"), watch.Modified, ""},
		"an earlier one is gone":              {claim("10", "Pending"), claim("9", "Bound"), watch.Deleted, ""},
		"it becomes ready":                    {claim("10", "Pending"), claim("11", "Bound"), watch.Modified, "Ready"},
		"it is as the run left it":            {claim("10", "Bound"), claim("10", "Bound"), watch.Added, "Ready"},
		"it is gone":                          {claim("10", "Pending"), claim("11", "Pending"), watch.Deleted, "Deleted"},
		"versions are numbers":                {claim("99", "Pending"), claim("100", "Bound"), watch.Modified, "Ready"},
		"a server whose versions are not any": {claim("a7", "Pending"), claim("a6", "Bound"), watch.Modified, "Ready"},
		"nothing is known":                    {"", claim("9", "Bound"), watch.Modified, "Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			s := stepOf(t, claim("0", "Pending"), test.live)
			r := runOf(Release{Key: shop}, record.State{}, s)
			r.Sink = report.Discard
			l := &listener{target: newTarget(r, s)}
			if s.live != nil {
				l.known = s.live.GetResourceVersion()
			}
			l.handle(t.Context(), cluster.Change{Type: test.kind, Object: object(t, test.object)})
			got := l.status.Reason
			if l.status.Ready {
				got = "Ready"
			}
			if got != test.want {
				t.Errorf("got %+v, want %q", l.status, test.want)
			}
		})
	}
}

// TestScaledToNothing checks that an object without pods needs no time to settle.
func TestScaledToNothing(t *testing.T) {
	for text, want := range map[string]bool{
		"{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 0}}":  true,
		"{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1}}":  false,
		"{apiVersion: apps/v1, kind: DaemonSet, spec: {}}":              false,
		"{apiVersion: apps/v1, kind: Deployment, spec: {replicas: no}}": false,
	} {
		if got := scaledToNothing(object(t, text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
	if scaledToNothing(nil) {
		t.Error("what was not read")
	}
}
