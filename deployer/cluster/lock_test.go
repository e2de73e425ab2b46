package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/schema/report"
)

// leaseOf is the Lease of lock env-shop.
func leaseOf(t *testing.T, version string, seconds int) *unstructured.Unstructured {
	t.Helper()
	lease := new(unstructured.Unstructured)
	text := fmt.Sprintf(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"env-shop","resourceVersion":%q},
"spec":{"holderIdentity":"bob@host x","leaseDurationSeconds":%d,"leaseTransitions":4,"acquireTime":"2026-01-02T03:04:05.678901Z"}}`, version, seconds)
	if err := lease.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return lease
}

// TestObserver: who lives, for whom reads the versions of a Lease and no foreign clock.
func TestObserver(t *testing.T) {
	for name, test := range map[string]struct {
		versions string // of the Lease at each look; - for none
		alive    bool
	}{
		"seen once":                 {"1", false},
		"never changed":             {"1 1 1", false},
		"renewed":                   {"1 1 2", true},
		"renewed, and silent since": {"1 2 2 2", true},
		"deleted and made again":    {"1 - 1", false},
		"made while we wait":        {"- 1", false},
		"not there":                 {"- -", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObserver()
			for version := range strings.FieldsSeq(test.versions) {
				if version == "-" {
					o.look(nil)
				} else {
					o.look(leaseOf(t, version, 15))
				}
			}
			if o.alive != test.alive {
				t.Errorf("alive %t", o.alive)
			}
		})
	}
	o := newObserver()
	o.look(leaseOf(t, "1", 15))
	o.since -= time.Hour
	if o.look(leaseOf(t, "1", 15)); o.silence() < time.Hour {
		t.Error("a look ends the silence")
	}
	if o.look(leaseOf(t, "2", 15)); o.silence() >= time.Hour {
		t.Error("a sign of life does not end the silence")
	}
}

type eventList []report.Event

func (l *eventList) Emit(e report.Event) { *l = append(*l, e) }

// TestAnnounce checks the event of a wait: it names the holder, and reports if the holder may be dead.
func TestAnnounce(t *testing.T) {
	var events eventList
	o, lease := newObserver(), leaseOf(t, "1", 15)
	o.look(lease)
	o.announce(&events, "env-shop", lease)
	o.since -= time.Minute
	o.announce(&events, "env-shop", lease)
	if len(events) != 2 || events[0].State != report.Started || events[0].Note != "held by bob@host" || events[1].State != report.Running || events[1].Note != "held by bob@host, who gives no sign of life" {
		t.Errorf("%+v", events)
	}
}

// TestPromise: for how long a holder may be silent, also one that wrote nonsense.
func TestPromise(t *testing.T) {
	for seconds, want := range map[int]time.Duration{15: 15 * time.Second, 60: time.Minute, 0: leaseDuration, -5: leaseDuration} {
		if got := promise(leaseOf(t, "1", seconds)); got != want {
			t.Errorf("%d seconds: %s", seconds, got)
		}
	}
	odd := leaseOf(t, "1", 15)
	if person(odd) != "bob@host" || transitions(odd) != 4 || transitions(nil) != 0 {
		t.Errorf("%s, %d", person(odd), transitions(odd))
	}
	odd.Object["spec"] = "nonsense"
	if promise(odd) != leaseDuration || holder(odd) != "" || transitions(odd) != 0 {
		t.Errorf("%s, %q", promise(odd), holder(odd))
	}
	if err := (&Lock{}).locked(leaseOf(t, "1", 15)); report.CodeOf(err) != report.Locked || err.Error() != "bob@host is at work since 2026-01-02T03:04:05Z; nothing was changed" {
		t.Error(err)
	}
}

// TestHeldLock: until when a lock is certainly ours.
func TestHeldLock(t *testing.T) {
	hold := func(since time.Duration) *Lock {
		l := &Lock{name: "env-shop", duration: 15 * time.Second}
		l.hold(leaseOf(t, "1", 15), since)
		return l
	}
	fresh, late := hold(bootTime()), hold(bootTime()-11*time.Second) // a third of the time is left for what is on its way
	taken := hold(bootTime() - time.Hour)
	taken.lost.Store(true)
	for name, test := range map[string]struct {
		guard Guard
		want  error
	}{
		"just written":                     {fresh, nil},
		"its promise is about to run out":  {late, errSilent},
		"another process acquired it":      {taken, errTaken},
		"all of several":                   {Locks{fresh, fresh}, nil},
		"one of several":                   {Locks{fresh, late}, errSilent},
		"none at all, so there is no harm": {Locks(nil), nil},
	} {
		if err := test.guard.Check(); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) || err != nil && report.CodeOf(err) != report.Interrupted {
			t.Errorf("%s: %v", name, err)
		}
	}
	if fresh.Token() != 4 {
		t.Errorf("token %d", fresh.Token())
	}
}

// TestClocks: what is measured and what other people read.
func TestClocks(t *testing.T) {
	if before := bootTime(); before <= 0 || bootTime() < before {
		t.Error("the clock does not go forward")
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 900, time.UTC)
	for date, want := range map[string]time.Duration{
		"Fri, 02 Jan 2026 03:04:05 GMT": 0,
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute,
		"Fri, 02 Jan 2026 02:04:05 GMT": -time.Hour,
		"yesterday":                     0,
		"":                              0,
	} {
		if got := skew(date, now); got != want {
			t.Errorf("date %q: %s", date, got)
		}
	}
	lease := leaseOf(t, "1", 15)
	if got := timeIn(lease, "acquireTime"); !got.Equal(time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)) || !timeIn(lease, "renewTime").IsZero() {
		t.Errorf("acquired %s", got)
	}
}
