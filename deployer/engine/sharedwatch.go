package engine

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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

// sharedWatch is a watch with those who listen to it. It ends with the last of them.
type sharedWatch struct {
	end       context.CancelFunc
	listeners map[objectKey]*listener
	last      map[objectKey]cluster.Change // of every object, as those who come later have missed it
	failure   error
}

// listener is a target that is told what happens to its object.
type listener struct {
	*target
	uid     types.UID      // of its object, "" when that is not known
	heeding sync.WaitGroup // somebody tells it something
}

func newSharedWatches(e *Engine) follower {
	return (&sharedWatches{Engine: e, open: map[watchedKind]*sharedWatch{}}).follow
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
		l.uid = t.live.GetUID()
	}
	w.mu.Lock()
	s := w.open[l.kind()]
	if s == nil {
		// It outlives the run that needs it first, and ends with the last one.
		ctx, end := context.WithCancel(context.WithoutCancel(t.run.patience))
		s = &sharedWatch{end: end, listeners: map[objectKey]*listener{}, last: map[objectKey]cluster.Change{}}
		w.open[l.kind()] = s
		go w.run(ctx, l.kind(), s)
	}
	s.listeners[keyOfRef(t.step.Object)] = l
	w.mu.Unlock()
	w.catchUp(s, l)
	return l
}

// catchUp tells a listener what it has missed, until nothing newer has come meanwhile.
func (w *sharedWatches) catchUp(s *sharedWatch, l *listener) {
	var told cluster.Change
	for {
		w.mu.Lock()
		last, failure := s.last[keyOfRef(l.step.Object)], s.failure
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
	s := w.open[l.kind()]
	delete(s.listeners, keyOfRef(l.step.Object))
	if len(s.listeners) == 0 {
		s.end()
		delete(w.open, l.kind())
	}
	w.mu.Unlock()
	l.heeding.Wait()
}

// run tells the listeners of a watch what happens to their objects.
func (w *sharedWatches) run(ctx context.Context, kind watchedKind, s *sharedWatch) {
	options := metav1.ListOptions{LabelSelector: LabelRelease}
	for change, err := range w.Cluster.Watch(ctx, kind.GroupVersionKind, kind.namespace, options) {
		if err != nil {
			w.fail(s, err)
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

// fail tells everybody that a watch cannot go on.
func (w *sharedWatches) fail(s *sharedWatch, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.failure = err
	for _, l := range s.listeners {
		l.set(unwatched(err))
	}
}

func unwatched(err error) health.Status {
	return health.Status{Failed: true, Reason: "NotWatched", Message: err.Error()}
}

// heed judges what has happened to the object. The end of an earlier one of its name is none of its own.
func (l *listener) heed(ctx context.Context, change cluster.Change) {
	switch {
	case change.Type != watch.Deleted:
		l.see(ctx, change.Object)
	case l.uid == "" || l.uid == change.Object.GetUID():
		l.vanish(ctx, change.Object)
	}
}
