package cluster

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Reads are the objects and lists that were read with a context, for a [Follower] that reports when any of them changes.
type Reads struct {
	mu    sync.Mutex
	made  map[read]seen
	begun chan struct{} // closed by the first one
}

// Begun is closed when the API server has answered for the first time: it knows the user, who may see at least that.
func (r *Reads) Begun() <-chan struct{} { return r.begun }

// read identifies a read: of an object, or without a name of a list.
type read struct {
	kind            schema.GroupVersionKind
	namespace, name string
	labels, fields  string // selectors
}

// seen is the state that was read: that of the list, or of the object, which has no UID when there was none.
type seen struct {
	uid     types.UID
	version string
}

type readsContext struct{}

// Namespaces lists the namespaces of the reads.
func (r *Reads) Namespaces() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for one := range r.made {
		if one.namespace != "" && !slices.Contains(list, one.namespace) {
			list = append(list, one.namespace)
		}
	}
	slices.Sort(list)
	return list
}

// Include reports whether one of the reads was of this kind.
func (r *Reads) Include(kind schema.GroupVersionKind) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for one := range r.made {
		if one.kind == kind {
			return true
		}
	}
	return false
}

// Except returns those of the reads that others do not have.
func (r *Reads) Except(others *Reads) *Reads {
	others.mu.Lock()
	defer others.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	rest := &Reads{made: map[read]seen{}}
	for one, s := range r.made {
		if _, other := others.made[one]; !other {
			rest.made[one] = s
		}
	}
	return rest
}

// WithReads returns a context that notes what is read with it.
func WithReads(ctx context.Context) (context.Context, *Reads) {
	reads := &Reads{made: map[read]seen{}, begun: make(chan struct{})}
	return context.WithValue(ctx, readsContext{}, reads), reads
}

// WithoutReads returns a context that does not note reads, so that a [Follower] does not watch them.
func WithoutReads(ctx context.Context) context.Context {
	return context.WithValue(ctx, readsContext{}, nil)
}

// note notes a read. The first of several equal reads counts: it is unknown which of them saw a change in between.
func note(ctx context.Context, r read, s seen) {
	reads, ok := ctx.Value(readsContext{}).(*Reads)
	if !ok {
		return
	}
	reads.mu.Lock()
	defer reads.mu.Unlock()
	if len(reads.made) == 0 {
		close(reads.begun)
	}
	if _, known := reads.made[r]; !known {
		reads.made[r] = s
	}
}

func noteObject(ctx context.Context, r request, object *unstructured.Unstructured) {
	note(ctx, read{kind: r.kind, namespace: r.namespace, name: r.name}, seenOf(object))
}

func seenOf(object *unstructured.Unstructured) seen {
	if object == nil {
		return seen{}
	}
	return seen{object.GetUID(), object.GetResourceVersion()}
}

const (
	// maxFollowed bounds the watches of a Follower.
	maxFollowed = 128
	// followSeconds is for how long a server is asked to keep a watch of a Follower open: as long as servers do that on their own. A
	// connection that is lost is noticed earlier: both ends check it.
	followSeconds = 3000
	// pollEvery is the time between two reads of an object that a user is allowed to read, and not to watch.
	pollEvery = 12 * time.Second
)

// Follower reports that something that was read has changed. It watches the metadata of what was read, of pods and what makes them all fields, and
// keeps no object.
type Follower struct {
	cluster *Cluster
	ctx     context.Context //nolint:containedctx // of the watches, which end with Close
	stop    context.CancelFunc
	running sync.WaitGroup
	changed chan struct{} // holds one when something has changed
	// Now and After are the clock, and Answered is called when the API server has answered the read of an object that cannot be watched. Set them
	// before Follow.
	Now      func() time.Time
	After    func(time.Duration) <-chan time.Time
	Answered func()

	mu        sync.Mutex
	watches   map[read]context.CancelFunc
	ended     map[read]bool // watches that the server does not allow to continue
	histories map[types.UID]*history
}

// Follower returns a follower of nothing yet. It must be closed.
func (c *Cluster) Follower(ctx context.Context) *Follower {
	f := &Follower{
		cluster: c, changed: make(chan struct{}, 1), Now: c.options.Now, After: time.After, Answered: func() {},
		watches: map[read]context.CancelFunc{}, ended: map[read]bool{}, histories: map[types.UID]*history{},
	}
	f.ctx, f.stop = context.WithCancel(ctx)
	return f
}

// Close ends all watches, and waits for their end.
func (f *Follower) Close() {
	f.stop()
	f.running.Wait()
}

// Changed has a value when something has changed since the last one was taken, or may have: the server cannot be reached.
func (f *Follower) Changed() <-chan struct{} { return f.changed }

// Follow watches the objects that reads has, from the versions in which they were read, and ends the watches of earlier reads. It returns false
// when changes cannot be followed: the user has no permission to watch, or there are too many reads.
func (f *Follower) Follow(reads *Reads) bool {
	reads.mu.Lock()
	defer reads.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	for r, stop := range f.watches {
		if _, again := reads.made[r]; !again {
			stop()
			delete(f.watches, r)
			delete(f.ended, r)
		}
	}
	if len(reads.made) > maxFollowed {
		return false
	}
	for r, s := range reads.made {
		if f.watches[r] == nil {
			ctx, stop := context.WithCancel(f.ctx)
			f.watches[r] = stop
			f.running.Go(func() { f.watch(ctx, r, s) })
		}
	}
	return len(f.ended) == 0
}

func (f *Follower) watch(ctx context.Context, r read, s seen) {
	w := watcher{
		cluster: f.cluster, kind: r.kind, namespace: r.namespace, metadata: true, states: hasStates(r.kind), version: s.version, seconds: followSeconds,
		options: metav1.ListOptions{LabelSelector: r.labels, FieldSelector: r.fields},
		yield:   func(c Change, _ error) bool { f.observe(c); return true },
		failed:  f.notify,
	}
	if r.name != "" { // its version may be so old that no watch can begin there
		w.version, w.options.FieldSelector = "", fields.OneTermEqualSelector("metadata.name", r.name).String()
		w.known = map[types.UID]*unstructured.Unstructured{}
		if s.uid != "" {
			object := &unstructured.Unstructured{}
			object.SetUID(s.uid)
			object.SetResourceVersion(s.version)
			w.known[s.uid] = object
		}
	}
	if err := w.run(ctx); err == nil || ctx.Err() != nil {
		return
	}
	if r.name != "" && f.poll(ctx, r, s) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() == nil {
		f.ended[r] = true
		f.notify()
	}
}

// poll reads an object from time to time that the user is allowed to read and not to watch, such as the namespace of an environment. It
// returns false when it cannot be read either.
func (f *Follower) poll(ctx context.Context, r read, s seen) bool {
	for {
		object, err := f.cluster.GetMetadata(ctx, r.kind, r.namespace, r.name)
		if err != nil {
			return ctx.Err() != nil
		}
		f.Answered()
		if now := seenOf(object); now != s {
			s = now
			f.notify()
		}
		select {
		case <-ctx.Done():
			return true
		case <-f.After(pollEvery):
		}
	}
}

func (f *Follower) notify() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}
