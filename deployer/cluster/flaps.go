package cluster

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// maxReturns is how often an object can be in the same state, with other states in between, until it counts as flapping.
	maxReturns = 3
	// maxFlapGap is the time without a change after which an object flaps no more. The kubelet starts a container that ends again and again every
	// five minutes.
	maxFlapGap = 10 * time.Minute
	// minFlapGap is the shortest time for which a flapping object has to stay as it is before that is reported.
	minFlapGap = 5 * time.Second
	// maxHistories bounds the objects whose states are remembered, and maxStates those of each.
	maxHistories, maxStates = 1000, 50
)

// history has the states in which an object was.
type history struct {
	states   map[uint64]int
	versions []string // the last ones: several watches report the same change
	last     time.Time
	gap      time.Duration // the longest one between two changes
	flaps    bool          // its changes are reported when it stays as it is
}

// hasStates reports whether objects of a kind can go to and fro between states without a change by a user: those that run containers, and
// events about them.
func hasStates(kind schema.GroupVersionKind) bool {
	return kind == PodKind || kind.Group == DeploymentKind.Group || kind.Group == "" && kind.Kind == "Event"
}

// IsFlapping reports whether an object goes to and fro between the same states, as a pod does whose container ends again and again.
// [Follower.Changed] reports another state of it at once, and the same ones when it stays as it is: after twice the longest time between two
// of its changes.
func (f *Follower) IsFlapping() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.histories {
		if h.flaps {
			return true
		}
	}
	return false
}

// observe reports a change, unless its object was in this state several times.
func (f *Follower) observe(c Change) {
	if !f.flapped(c) {
		f.notify()
	}
}

// flapped records the state of an object, and reports whether the change can wait.
func (f *Follower) flapped(c Change) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	uid, now := c.Object.GetUID(), f.Now()
	h := f.histories[uid]
	switch {
	case c.Type == watch.Deleted:
		delete(f.histories, uid)
		return false
	case !hasStates(c.Object.GroupVersionKind()) || c.Object.Object["status"] == nil && c.Object.Object["involvedObject"] == nil:
		return false // only its metadata were read
	case h != nil && slices.Contains(h.versions, c.Object.GetResourceVersion()):
		return true // it was reported, or waits
	}
	if h == nil || !h.flaps && now.Sub(h.last) > maxFlapGap || len(h.states) >= maxStates {
		if len(f.histories) >= maxHistories {
			clear(f.histories)
		}
		h = &history{states: map[uint64]int{}, last: now}
		f.histories[uid] = h
	}
	state := stateOf(c.Object)
	h.states[state]++
	h.versions = append(h.versions[max(0, len(h.versions)-9):], c.Object.GetResourceVersion())
	h.gap, h.last = max(h.gap, now.Sub(h.last)), now
	if h.states[state] <= maxReturns {
		return false
	}
	if !h.flaps {
		h.flaps = true
		f.running.Go(func() { f.awaitRest(uid, h) })
	}
	return true
}

// awaitRest reports a flapping object when it stays as it is.
func (f *Follower) awaitRest(uid types.UID, h *history) {
	for {
		f.mu.Lock()
		last, pause := h.last, min(max(2*h.gap, minFlapGap), maxFlapGap)
		f.mu.Unlock()
		select {
		case <-f.ctx.Done():
			return
		case <-f.After(pause):
		}
		f.mu.Lock()
		rests, known := h.last.Equal(last), f.histories[uid] == h
		if rests && known {
			delete(f.histories, uid)
		}
		f.mu.Unlock()
		switch {
		case !known:
			return
		case rests:
			f.notify()
			return
		}
	}
}

// stateOf identifies the state of an object: all of it but times, counters, messages, and versions.
func stateOf(object *unstructured.Unstructured) uint64 {
	text, _ := json.Marshal(lasting(object.Object)) // it was JSON
	sum := fnv.New64a()
	_, _ = sum.Write(text)
	return sum.Sum64()
}

func lasting(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(value))
		for key, one := range value {
			if !isPassing(key) {
				kept[key] = lasting(one)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i, one := range value {
			kept[i] = lasting(one)
		}
		return kept
	}
	return value
}

// isPassing reports whether a field has another value each time that an object is in the same state.
func isPassing(field string) bool {
	switch field {
	case "resourceVersion", "managedFields", "restartCount", "count", "series", "containerID", "message":
		return true
	case "deletionTimestamp":
		return false
	}
	return strings.HasSuffix(field, "Time") || strings.HasSuffix(field, "Timestamp") || strings.HasSuffix(field, "At")
}
