package clustertest

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// event is a change of an object.
type event struct {
	resource schema.GroupResource
	revision int64
	old, new *unstructured.Unstructured // nil before it was made, and after it is gone
}

// selector reports which objects a list or a watch has.
func selector(namespace string, query url.Values) (func(*unstructured.Unstructured) bool, error) {
	label, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	wanted, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return func(object *unstructured.Unstructured) bool {
		field := func(path ...string) string {
			text, _, _ := unstructured.NestedString(object.Object, path...)
			return text
		}
		return object != nil && (namespace == "" || object.GetNamespace() == namespace) && label.Matches(labels.Set(object.GetLabels())) &&
			wanted.Matches(fields.Set{
				"metadata.name": object.GetName(), "metadata.namespace": object.GetNamespace(),
				"involvedObject.uid": field("involvedObject", "uid"), "involvedObject.name": field("involvedObject", "name"), "involvedObject.kind": field("involvedObject", "kind"),
				"spec.nodeName": field("spec", "nodeName"), "status.phase": field("status", "phase"),
			})
	}, nil
}

// list answers with the objects of a kind by name, from where the last page ended.
func (s *Server) list(k kind, namespace string, query url.Values) (any, error) {
	matches, err := selector(namespace, query)
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": k.GroupVersion().String(), "kind": k.Kind + "List"}}
	list.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	limit, _ := strconv.Atoi(query.Get("limit")) // "" is no limit
	objects := s.objects[k.groupResource()]
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		if name <= query.Get("continue") || !matches(objects[name]) {
			continue
		}
		if limit > 0 && len(list.Items) == limit {
			last := list.Items[limit-1]
			list.SetContinue(last.GetNamespace() + "/" + last.GetName())
			break
		}
		list.Items = append(list.Items, *as(objects[name], k))
	}
	return list, nil
}

// watch sends events since a revision until the client disconnects. The caller holds the lock, which is released while there are
// none.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, k kind, namespace string) error {
	matches, err := selector(namespace, r.URL.Query())
	if err != nil {
		return err
	}
	since, err := strconv.ParseInt(r.URL.Query().Get("resourceVersion"), 10, 64)
	if err != nil {
		return apierrors.NewBadRequest("watch without a resource version")
	}
	w.Header().Set("Content-Type", "application/json")
	encoder, flush := json.NewEncoder(w), http.NewResponseController(w)
	for {
		for _, e := range s.events {
			if e.resource != k.groupResource() || e.revision <= since {
				continue
			}
			if change := changeOf(e, k, matches); change != nil && encoder.Encode(change) != nil {
				return nil
			}
		}
		since = s.revision
		changed := s.changed
		s.mu.Unlock()
		_ = flush.Flush() // a connection that is gone ends the context
		select {
		case <-changed:
			s.mu.Lock()
		case <-r.Context().Done():
			s.mu.Lock()
			return nil
		}
	}
}

// changeOf returns the event for a watch; nil if the watch does not select its object.
func changeOf(e event, k kind, matches func(*unstructured.Unstructured) bool) any {
	change := struct {
		Type   watch.EventType            `json:"type"`
		Object *unstructured.Unstructured `json:"object"`
	}{watch.Modified, e.new}
	switch before, after := matches(e.old), matches(e.new); {
	case !before && !after:
		return nil
	case !after:
		change.Type, change.Object = watch.Deleted, as(e.old, k)
		change.Object.SetResourceVersion(strconv.FormatInt(e.revision, 10))
		return change
	case !before:
		change.Type = watch.Added
	}
	change.Object = as(change.Object, k)
	return change
}
