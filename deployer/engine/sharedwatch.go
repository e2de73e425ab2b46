package engine

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/health"
)

// follower follows targets until all of them are ready or failed, or until the patience ends.
type follower func(patience context.Context, targets []*target)

// sharedWatches lets runs that begin and end at different times follow their objects with one watch for each kind in a namespace:
// hundreds of watches at once would take all streams of a connection.
type sharedWatches struct {
	*Engine
	mu   sync.Mutex
	open map[watchedKind]*sharedWatch
}

type watchedKind struct {
	kube.GroupVersionKind
	namespace string
}

// sharedWatch is a watch with those who listen to it.
type sharedWatch struct {
	end       context.CancelFunc
	listeners map[objectKey]*listener
	last      map[objectKey]cluster.Change // of every object, as those who come later have missed it
	failure   error
}

// listener is a target that is told what happens to its object.
type listener struct {
	*target
	watch   *sharedWatch
	known   string         // the state in which its object was last seen, "" when that is not known
	heeding sync.WaitGroup // somebody tells it something
}

// keptWatches is how many watches stay open without anybody who listens, as the next run would begin them again with a list of
// everything.
const keptWatches = 20

func newSharedWatches(e *Engine) *sharedWatches {
	return &sharedWatches{Engine: e, open: map[watchedKind]*sharedWatch{}}
}

// close ends all watches, when nobody listens any more.
func (w *sharedWatches) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.open {
		s.end()
	}
}

func (w *sharedWatches) follow(patience context.Context, targets []*target) {
	moved := make(chan struct{}, 1)
	var open []*target
	for _, t := range targets {
		if t.live != nil && !t.ready() {
			t.see(patience, t.live)
		}
		if !t.over() {
			t.moved = moved
			open = append(open, t)
		}
	}
	if len(open) == 0 {
		return
	}
	patience, cancel := context.WithCancel(patience)
	var explaining sync.WaitGroup
	explaining.Go(func() { w.explainAll(patience, open) })
	defer explaining.Wait()
	defer cancel()
	for _, t := range open {
		defer w.leave(w.join(t))
	}
	for _, t := range open {
		for !t.over() {
			select {
			case <-moved:
			case <-patience.Done():
				return
			}
		}
	}
}

func (l *listener) kind() watchedKind {
	return watchedKind{kindOfRef(l.step.Object), l.step.Object.Namespace}
}

// join begins to tell a target what happens to its object, from what is known of it on.
func (w *sharedWatches) join(t *target) *listener {
	l := &listener{target: t}
	if t.live != nil {
		l.known = t.live.GetResourceVersion()
	}
	w.mu.Lock()
	s := w.open[l.kind()]
	if s == nil {
		// It outlives the run that needs it first.
		ctx, end := context.WithCancel(context.WithoutCancel(t.run.patience))
		s = &sharedWatch{end: end, listeners: map[objectKey]*listener{}, last: map[objectKey]cluster.Change{}}
		w.open[l.kind()] = s
		go w.run(ctx, l.kind(), s)
	}
	l.watch, s.listeners[keyOfRef(t.step.Object)] = s, l
	w.mu.Unlock()
	w.catchUp(l)
	return l
}

// catchUp tells a listener what it has missed, until nothing newer has come meanwhile.
func (w *sharedWatches) catchUp(l *listener) {
	var told cluster.Change
	for {
		w.mu.Lock()
		last, failure := l.watch.last[keyOfRef(l.step.Object)], l.watch.failure
		w.mu.Unlock()
		switch {
		case failure != nil:
			l.set(unwatched(failure))
			return
		case last == told:
			return
		}
		told = last
		l.heed(l.run.patience, last)
	}
}

func (w *sharedWatches) leave(l *listener) {
	w.mu.Lock()
	delete(l.watch.listeners, keyOfRef(l.step.Object))
	if len(l.watch.listeners) == 0 && len(w.open) > keptWatches {
		w.drop(l.kind(), l.watch)
	}
	w.mu.Unlock()
	l.heeding.Wait()
}

// drop ends a watch: who comes later begins another one. The caller holds the lock.
func (w *sharedWatches) drop(kind watchedKind, s *sharedWatch) {
	s.end()
	if w.open[kind] == s {
		delete(w.open, kind)
	}
}

// run tells the listeners of a watch what happens to their objects.
func (w *sharedWatches) run(ctx context.Context, kind watchedKind, s *sharedWatch) {
	options := metav1.ListOptions{LabelSelector: LabelRelease}
	for change, err := range w.Cluster.Watch(ctx, kind.GroupVersionKind, kind.namespace, options) {
		if err != nil {
			w.fail(kind, s, err)
			return
		}
		w.mu.Lock()
		key := keyOf(change.Object)
		s.last[key] = change
		l := s.listeners[key]
		if l != nil {
			l.heeding.Add(1)
		}
		w.mu.Unlock()
		if l != nil {
			l.heed(ctx, change)
			l.heeding.Done()
		}
	}
}

// fail tells everybody who listens that a watch cannot go on.
func (w *sharedWatches) fail(kind watchedKind, s *sharedWatch, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.failure = err
	w.drop(kind, s)
	for _, l := range s.listeners {
		l.set(unwatched(err))
	}
}

func unwatched(err error) health.Status {
	return health.Status{Failed: true, Reason: "NotWatched", Message: err.Error()}
}

// heed judges what has happened to the object. What was before the run has changed or replaced it is told late, and means nothing.
func (l *listener) heed(ctx context.Context, change cluster.Change) {
	order, err := resourceversion.CompareResourceVersion(change.Object.GetResourceVersion(), l.known)
	switch {
	case err == nil && order < 0:
	case change.Type == watch.Deleted:
		l.vanish(ctx, change.Object)
	default:
		l.see(ctx, change.Object)
	}
}
