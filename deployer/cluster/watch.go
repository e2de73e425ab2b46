package cluster

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Change is one event of a watch: an object that is new or that the watch finds when it starts ([watch.Added]), one that
// changed ([watch.Modified]), or the last that is known of one that is gone ([watch.Deleted]).
type Change struct {
	Type   watch.EventType
	Object *unstructured.Unstructured
}

// Watch follows the objects of a kind. It first yields the existing ones, or, if o.ResourceVersion is set, the changes since then. It
// survives lost connections, restarts of the server and an expired history: changes in between may be merged, but the last state
// of every object is yielded. It ends with its context, silently, or with an error that waiting does not fix, such as a missing
// kind or permission.
//
// Known are objects that the caller has read: if the history has expired, Watch reports which of them were deleted, and does not
// yield those that have not changed.
func (c *Cluster) Watch(ctx context.Context, kind schema.GroupVersionKind, namespace string, o metav1.ListOptions, known ...*unstructured.Unstructured) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		w := watcher{cluster: c, kind: kind, namespace: namespace, options: o, version: o.ResourceVersion, known: map[types.UID]*unstructured.Unstructured{}, yield: yield}
		for _, object := range known {
			w.known[object.GetUID()] = object
		}
		w.options.ResourceVersion, w.options.Limit = "", 0
		if err := w.run(ctx); err != nil && !errors.Is(err, errStop) && ctx.Err() == nil {
			yield(Change{}, err)
		}
	}
}

// watcher follows a kind until its caller stops listening.
type watcher struct {
	cluster   *Cluster
	kind      schema.GroupVersionKind
	namespace string
	options   metav1.ListOptions
	metadata  bool                                     // ask for nothing else
	states    bool                                     // but ask for whole objects when they change
	version   string                                   // what happens after it is asked for; "" lists first
	known     map[types.UID]*unstructured.Unstructured // nil keeps nothing: existing objects are yielded again after each gap
	yield     func(Change, error) bool
	failed    func() // called when the watch is interrupted; may be nil
	seconds   int    // for how long a server is asked to keep one watch open; 0 is watchSeconds
}

// errStop ends a watch whose listener has had enough.
var errStop = errors.New("stop")

// watchSeconds is for how long a server is asked to keep one watch open. One that lost its peer without a word, as when a
// firewall forgets a connection, is noticed by then at the latest.
const watchSeconds = 290

// run lists and watches in turn. Failures that pass are waited for, longer each time.
func (w *watcher) run(ctx context.Context) error {
	for failures := 0; ; {
		r, err := w.once(ctx)
		switch {
		case err == nil:
			failures = 0 // the server ended the watch in good order, or died
		case ctx.Err() != nil, errors.Is(err, errStop):
			return err
		case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
			w.version = ""
		case !w.cluster.passes(err):
			return w.cluster.translate(ctx, r, err)
		default:
			failures++
			if w.failed != nil {
				w.failed()
			}
		}
		if err := Sleep(ctx, min(firstPause<<min(failures, 10), lastPause)); err != nil {
			return err
		}
	}
}

// passes reports whether a watch that failed is worth another try.
func (c *Cluster) passes(err error) bool {
	status, refused := errors.AsType[*apierrors.StatusError](err)
	switch {
	case errors.Is(err, ErrNoKind):
		return false
	case refused:
		return status.ErrStatus.Code >= http.StatusInternalServerError || apierrors.IsTooManyRequests(err)
	default:
		return c.answered.Load() && !isPermanent(err)
	}
}

// once lists if it must, then watches until the server ends it.
func (w *watcher) once(ctx context.Context) (request, error) {
	r, err := w.cluster.request(ctx, "watch", http.MethodGet, w.kind, w.namespace, "")
	if err != nil {
		return r, err
	}
	if w.version == "" {
		if err = w.list(ctx); err != nil {
			return r, err
		}
	}
	if w.metadata && !w.states {
		r.accept = metadataEvents
	}
	r.query = listQuery(w.options)
	r.query.Set("watch", "true")
	r.query.Set("allowWatchBookmarks", "true")
	r.query.Set("resourceVersion", w.version)
	seconds := cmp.Or(w.seconds, watchSeconds)
	r.query.Set("timeoutSeconds", strconv.Itoa(seconds))
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(seconds+30)*time.Second, errNoAnswer)
	defer cancel()
	stream, err := w.cluster.open(ctx, r)
	if err != nil {
		return r, err
	}
	defer func() { _ = stream.Close() }() // it was only read
	return r, w.follow(r, stream)
}

// list yields the present state: deleted, new and changed objects.
func (w *watcher) list(ctx context.Context) error {
	var form listForm
	if w.metadata {
		form = listForm{onlyMetadata, onlyHeader}
	}
	present := map[types.UID]bool{}
	var objects []*unstructured.Unstructured
	for page, err := range w.cluster.pages(ctx, w.kind, w.namespace, w.options, form) {
		if err != nil {
			return err
		}
		for i := range page.Items {
			object := &page.Items[i]
			present[object.GetUID()] = true
			objects = append(objects, object)
		}
		w.version = page.GetResourceVersion()
	}
	for uid, object := range w.known {
		if !present[uid] {
			delete(w.known, uid)
			if !w.yield(Change{watch.Deleted, object}, nil) {
				return errStop
			}
		}
	}
	for _, object := range objects {
		if err := w.observe(object); err != nil {
			return err
		}
	}
	return nil
}

// see yields an object that is there, unless nothing is new about it.
func (w *watcher) observe(object *unstructured.Unstructured) error {
	change := Change{watch.Added, object}
	if known := w.known[object.GetUID()]; known != nil {
		if known.GetResourceVersion() == object.GetResourceVersion() {
			return nil
		}
		change.Type = watch.Modified
	}
	if w.known != nil {
		w.known[object.GetUID()] = object
	}
	if !w.yield(change, nil) {
		return errStop
	}
	return nil
}

// follow yields what the server sends until it stops. A stream that breaks off is not an error: it is opened again.
func (w *watcher) follow(r request, stream io.Reader) error {
	decoder := json.NewDecoder(bufio.NewReader(stream))
	for {
		var event struct {
			Type   watch.EventType `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := decoder.Decode(&event); err != nil {
			return nil
		}
		if event.Type == watch.Error {
			var status metav1.Status
			if err := json.Unmarshal(event.Object, &status); err != nil {
				return fmt.Errorf("%s: answer of the API server: %w", r.what(), err)
			}
			return &apierrors.StatusError{ErrStatus: status}
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(event.Object); err != nil {
			return fmt.Errorf("%s: answer of the API server: %w", r.what(), err)
		}
		w.version = object.GetResourceVersion()
		switch event.Type {
		case watch.Added, watch.Modified:
			if err := w.observe(object); err != nil {
				return err
			}
		case watch.Deleted:
			delete(w.known, object.GetUID())
			if !w.yield(Change{watch.Deleted, object}, nil) {
				return errStop
			}
		}
	}
}
