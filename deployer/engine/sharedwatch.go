package engine

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/schema"
)

// follower follows targets until all are ready or failed, or until ctx ends.
type follower func(ctx context.Context, targets []*target)

// sharedWatches lets runs that start and end at different times share one watch for each kind in a namespace: hundreds of watches
// would use up the streams of a connection.
type sharedWatches struct {
	*Engine
	mu   sync.Mutex
	open map[watchedKind]*sharedWatch
}

type watchedKind struct {
	kube.GroupVersionKind
	namespace string
}

// sharedWatch is a watch with its listeners.
type sharedWatch struct {
	end       context.CancelFunc
	listeners map[record.ObjectKey]*listener
	last      map[record.ObjectKey]cluster.Change // of each object, for listeners that come later
	failure   error
}

// listener is a target that receives the changes of its object.
type listener struct {
	*target
	watch    *sharedWatch
	known    string         // resource version of its object when it joined; "" if unknown
	handling sync.WaitGroup // changes that are being handled
}

// keptWatches is the number of watches that stay open without listeners, because the next run would have to list everything
// for a new one.
const keptWatches = 20

func newSharedWatches(e *Engine) *sharedWatches {
	return &sharedWatches{Engine: e, open: map[watchedKind]*sharedWatch{}}
}

// close ends all watches, after the last listener has left.
func (w *sharedWatches) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.open {
		s.end()
	}
}

func (w *sharedWatches) follow(waitCtx context.Context, targets []*target) {
	moved := make(chan struct{}, 1)
	var open []*target
	for _, t := range targets {
		if t.live != nil && !t.ready() {
			t.observe(waitCtx, t.live)
		}
		if !t.over() {
			t.moved = moved
			open = append(open, t)
		}
	}
	if len(open) == 0 {
		return
	}
	waitCtx, cancel := context.WithCancel(waitCtx)
	var explaining sync.WaitGroup
	explaining.Go(func() { w.explainAll(waitCtx, open) })
	defer explaining.Wait()
	defer cancel()
	for _, t := range open {
		defer w.leave(w.join(t))
	}
	for _, t := range open {
		for !t.over() {
			select {
			case <-moved:
			case <-waitCtx.Done():
				return
			}
		}
	}
}

func (l *listener) kind() watchedKind {
	return watchedKind{kindOfRef(l.step.Object), l.step.Object.Namespace}
}

// join registers a target for the changes of its object, from its known state on.
func (w *sharedWatches) join(t *target) *listener {
	l := &listener{target: t}
	if t.live != nil {
		l.known = t.live.GetResourceVersion()
	}
	w.mu.Lock()
	s := w.open[l.kind()]
	if s == nil {
		// The watch outlives the run that opens it.
		ctx, end := context.WithCancel(context.WithoutCancel(t.run.waitCtx))
		s = &sharedWatch{end: end, listeners: map[record.ObjectKey]*listener{}, last: map[record.ObjectKey]cluster.Change{}}
		w.open[l.kind()] = s
		go w.run(ctx, l.kind(), s)
	}
	l.watch, s.listeners[record.KeyOf(t.step.Object)] = s, l
	w.mu.Unlock()
	w.catchUp(l)
	return l
}

// catchUp passes changes to a listener that came before it joined, until there is no newer one.
func (w *sharedWatches) catchUp(l *listener) {
	var handled cluster.Change
	for {
		w.mu.Lock()
		last, failure := l.watch.last[record.KeyOf(l.step.Object)], l.watch.failure
		w.mu.Unlock()
		switch {
		case failure != nil:
			l.set(unwatched(failure))
			return
		case last == handled:
			return
		}
		handled = last
		l.handle(l.run.waitCtx, last)
	}
}

func (w *sharedWatches) leave(l *listener) {
	w.mu.Lock()
	delete(l.watch.listeners, record.KeyOf(l.step.Object))
	if len(l.watch.listeners) == 0 && len(w.open) > keptWatches {
		w.drop(l.kind(), l.watch)
	}
	w.mu.Unlock()
	l.handling.Wait()
}

// drop ends a watch: later listeners open another one. The caller holds the lock.
func (w *sharedWatches) drop(kind watchedKind, s *sharedWatch) {
	s.end()
	if w.open[kind] == s {
		delete(w.open, kind)
	}
}

// run passes the changes of a watch on to its listeners.
func (w *sharedWatches) run(ctx context.Context, kind watchedKind, s *sharedWatch) {
	options := metav1.ListOptions{LabelSelector: schema.LabelRelease}
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
			l.handling.Add(1)
		}
		w.mu.Unlock()
		if l != nil {
			l.handle(ctx, change)
			l.handling.Done()
		}
	}
}

// fail reports to all listeners that a watch cannot continue.
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

// handle updates the target. A change from before the run applied the object arrives late and is ignored.
func (l *listener) handle(ctx context.Context, change cluster.Change) {
	order, err := resourceversion.CompareResourceVersion(change.Object.GetResourceVersion(), l.known)
	switch {
	case err == nil && order < 0:
	case change.Type == watch.Deleted:
		l.observeDeletion(ctx, change.Object)
	default:
		l.observe(ctx, change.Object)
	}
}
