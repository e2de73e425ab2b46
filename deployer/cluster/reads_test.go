package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
)

// awaitChange waits until a follower reports a change.
func (f *Follower) awaitChange(t *testing.T, what string) {
	t.Helper()
	select {
	case <-f.Changed():
	case <-time.After(20 * time.Second):
		t.Fatalf("the change is not reported: %s", what)
	}
}

// readSome reads what tests follow: an object, one that is not there, the metadata of one, and a list.
func readSome(t *testing.T, c *Cluster) *Reads {
	t.Helper()
	ctx, reads := WithReads(t.Context())
	_, first := c.Get(ctx, ConfigMapKind, "shop", "a")
	_, second := c.Get(ctx, ConfigMapKind, "shop", "none")
	_, third := c.GetMetadata(ctx, ConfigMapKind, "shop", "m")
	if err := errors.Join(first, second, third); err != nil {
		t.Fatal(err)
	}
	for _, err := range c.List(ctx, ConfigMapKind, "", metav1.ListOptions{LabelSelector: "app=x"}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return reads
}

func labelled(name, data string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: shop, labels: {app: x}}, data: {x: '%s'}}", name, data)
}

// TestFollower: whatever was read is followed, from the state in which it was read and also when that is followed already.
func TestFollower(t *testing.T) {
	for name, after := range map[string]string{ // what is put; nothing deletes
		"an object":              config("a", "2"),
		"one that was not there": config("none", "1"),
		"metadata":               config("m", "2"),
		"one of a list":          labelled("l", "2"),
		"one more":               labelled("more", "1"),
		"one is gone":            "",
	} {
		t.Run(name, func(t *testing.T) {
			s, c := connected(t, config("a", "1"), config("m", "1"), labelled("l", "1"))
			reads := readSome(t, c)
			f := c.Follower(t.Context())
			defer f.Close()
			if after != "" {
				s.Put(t, after)
			} else if err := c.Delete(t.Context(), s.Object("ConfigMap", "shop", "l"), DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if !f.Follow(reads) {
				t.Fatal("it cannot be followed")
			}
			f.awaitChange(t, "what happened before it was followed")
			if !f.Follow(readSome(t, c)) {
				t.Fatal("it cannot be followed again")
			}
			s.Put(t, labelled("l", "3"))
			f.awaitChange(t, "what happened afterwards")
		})
	}
}

// TestFollowerWatchesWhatWasRead and nothing else, and no longer than it is read. It gets no more of it than metadata.
func TestFollowerWatchesWhatWasRead(t *testing.T) {
	s, c := connected(t, config("a", "1"), config("m", "1"), labelled("l", "1"))
	var open atomic.Int64
	seen := make(chan string, 10)
	s.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if !watches(r) || r.Context().Value(servedKey{}) != nil {
			return false
		}
		if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata;") {
			t.Errorf("%s asks for %s", r.URL, r.Header.Get("Accept"))
		}
		seen <- r.URL.Path + " " + r.URL.Query().Get("labelSelector") + r.URL.Query().Get("fieldSelector")
		open.Add(1)
		defer open.Add(-1)
		s.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), servedKey{}, true)))
		return true
	}
	f := c.Follower(t.Context())
	f.Follow(readSome(t, c))
	var got []string
	for range 4 {
		got = append(got, <-seen)
	}
	slices.Sort(got)
	const shop = "/api/v1/namespaces/shop/configmaps metadata.name="
	if want := []string{"/api/v1/configmaps app=x", shop + "a", shop + "m", shop + "none"}; !slices.Equal(got, want) {
		t.Errorf("watched are %q", got)
	}
	ended := func(left int64) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); open.Load() != left; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d watches are open, want %d", open.Load(), left)
			}
		}
	}
	ctx, reads := WithReads(t.Context())
	if _, err := c.Get(ctx, ConfigMapKind, "shop", "a"); err != nil {
		t.Fatal(err)
	}
	f.Follow(reads)
	ended(1)
	f.Close()
	ended(0)
	if len(seen) > 0 {
		t.Errorf("also watched: %s", <-seen)
	}
}

// TestFollowerPolls checks that a follower reads an object again that the user is allowed to read, and not to watch.
func TestFollowerPolls(t *testing.T) {
	s, c := connected(t, config("a", "1"), config("m", "1"))
	s.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if watches(r) && strings.HasSuffix(r.URL.Query().Get("fieldSelector"), "=a") {
			clustertest.Fail(w, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("cannot watch")))
			return true
		}
		return false
	}
	f := c.Follower(t.Context())
	defer f.Close()
	f.After = func(time.Duration) <-chan time.Time { return time.After(10 * time.Millisecond) }
	reads := readSome(t, c)
	for i := range 3 {
		if !f.Follow(reads) {
			t.Fatal("it cannot be followed")
		}
		s.Put(t, config("a", fmt.Sprint("later", i)))
		f.awaitChange(t, "the object that cannot be watched")
	}
}

// TestFollowerWithoutWatches checks that a follower reports lists that cannot be watched.
func TestFollowerWithoutWatches(t *testing.T) {
	s, c := connected(t, config("a", "1"), config("m", "1"))
	s.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if watches(r) && r.URL.Query().Get("labelSelector") != "" {
			clustertest.Fail(w, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "m", errors.New(`User "jane" cannot watch resource "configmaps" in API group ""`)))
			return true
		}
		return false
	}
	f := c.Follower(t.Context())
	defer f.Close()
	reads := readSome(t, c)
	f.Follow(reads)
	f.awaitChange(t, "that nothing will be")
	if f.Follow(reads) {
		t.Error("what may not be watched is followed")
	}
	ctx, few := WithReads(t.Context())
	if _, err := c.Get(ctx, ConfigMapKind, "shop", "a"); err != nil {
		t.Fatal(err)
	}
	if !f.Follow(few) {
		t.Error("the rest cannot be followed either")
	}
	ctx, many := WithReads(t.Context())
	for i := range maxFollowed + 1 {
		if _, err := c.Get(ctx, ConfigMapKind, "shop", fmt.Sprint("c", i)); err != nil {
			t.Fatal(err)
		}
	}
	if f.Follow(many) {
		t.Error("there is no end of what can be followed")
	}
}

// TestFollowerOfAServerThatIsAway checks that a follower asks for a new read after the server was unavailable.
func TestFollowerOfAServerThatIsAway(t *testing.T) {
	s, c := connected(t, config("a", "1"), config("m", "1"))
	reads := readSome(t, c)
	s.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if watches(r) {
			panic(http.ErrAbortHandler)
		}
		return false
	}
	f := c.Follower(t.Context())
	defer f.Close()
	if !f.Follow(reads) {
		t.Fatal("it cannot be followed")
	}
	f.awaitChange(t, "that the server cannot be reached")
}
