package clustertest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func (w write) delete(body []byte) (any, error) {
	var options metav1.DeleteOptions
	if len(body) > 0 {
		if err := json.Unmarshal(body, &options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	live := w.live()
	if live == nil {
		return nil, apierrors.NewNotFound(w.groupResource(), w.name)
	}
	if p := options.Preconditions; p != nil {
		var uid, version string
		if p.UID != nil {
			uid = string(*p.UID)
		}
		if p.ResourceVersion != nil {
			version = *p.ResourceVersion
		}
		if err := w.precondition(uid, version); err != nil {
			return nil, err
		}
	}
	if !w.dryRun {
		w.leave(w.groupResource(), w.key(), options.PropagationPolicy)
		if left := w.live(); left != nil {
			return left, nil
		}
	}
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{Name: w.name, UID: live.GetUID()},
	}, nil
}

// leave deletes an object, or marks it while it has finalizers.
func (s *Server) leave(resource schema.GroupResource, key string, policy *metav1.DeletionPropagation) {
	object := s.objects[resource][key].DeepCopy()
	if resource == namespaces {
		s.clear(object.GetName())
	}
	if policy != nil && *policy == metav1.DeletePropagationForeground {
		s.leaveLast(resource, key, object)
		return
	}
	if s.isHeld(resource, object) {
		if object.GetDeletionTimestamp() == nil {
			now := metav1.NewTime(time.Now().Truncate(time.Second))
			object.SetDeletionTimestamp(&now)
			if object.GetKind() == "Namespace" {
				settle(object)
			}
			s.store(resource, key, object)
		}
		return
	}
	if policy != nil && *policy == metav1.DeletePropagationOrphan {
		for _, owned := range s.ownedBy(object) {
			s.objects[owned.resource][owned.key].SetOwnerReferences(nil)
		}
	}
	s.remove(resource, key)
}

// leaveLast deletes what an object owns, and the object when all of that is gone.
func (s *Server) leaveLast(resource schema.GroupResource, key string, object *unstructured.Unstructured) {
	if !slices.Contains(object.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		object.SetFinalizers(append(object.GetFinalizers(), metav1.FinalizerDeleteDependents))
	}
	s.store(resource, key, object)
	s.leave(resource, key, nil)
	for _, owned := range s.ownedBy(object) {
		foreground := metav1.DeletePropagationForeground
		s.leave(owned.resource, owned.key, &foreground)
	}
	s.release(object)
}

// release ends the wait of an object for what it owns.
func (s *Server) release(object *unstructured.Unstructured) {
	last := func(f string) bool { return f == metav1.FinalizerDeleteDependents }
	for resource, objects := range s.objects {
		for key, live := range objects {
			if live.GetUID() != object.GetUID() || !slices.ContainsFunc(live.GetFinalizers(), last) || len(s.ownedBy(live)) > 0 {
				continue
			}
			live = live.DeepCopy()
			live.SetFinalizers(slices.DeleteFunc(live.GetFinalizers(), last))
			s.store(resource, key, live)
			s.leave(resource, key, nil)
			return
		}
	}
}

// IsHeld reports whether an object that is deleted stays: it has a finalizer, or its namespace is not empty.
func (s *Server) isHeld(resource schema.GroupResource, object *unstructured.Unstructured) bool {
	for _, objects := range s.objects {
		for _, inside := range objects {
			if resource == namespaces && inside.GetNamespace() == object.GetName() {
				return true
			}
		}
	}
	return len(object.GetFinalizers()) > 0
}

// clear deletes what is in a namespace.
func (s *Server) clear(namespace string) {
	for resource, objects := range s.objects {
		for _, key := range slices.Sorted(maps.Keys(objects)) {
			if strings.HasPrefix(key, namespace+"/") && objects[key] != nil {
				s.leave(resource, key, nil)
			}
		}
	}
}

type place struct {
	resource schema.GroupResource
	key      string
}

func (s *Server) ownedBy(owner *unstructured.Unstructured) []place {
	var owned []place
	for resource, objects := range s.objects {
		for key, object := range objects {
			if slices.ContainsFunc(object.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() }) {
				owned = append(owned, place{resource, key})
			}
		}
	}
	return owned
}

// remove forgets an object, and what belongs to it: what it owns, and the instances of a definition.
func (s *Server) remove(resource schema.GroupResource, key string) {
	object := s.objects[resource][key]
	owned := s.ownedBy(object)
	if resource == definitions {
		for _, k := range kindsOf(object) {
			for instance := range s.objects[k.groupResource()] {
				owned = append(owned, place{k.groupResource(), instance})
			}
		}
	}
	delete(s.objects[resource], key)
	s.happened(resource, object, nil)
	for _, owner := range object.GetOwnerReferences() {
		gone := &unstructured.Unstructured{Object: map[string]any{}}
		gone.SetUID(owner.UID)
		s.release(gone)
	}
	for _, o := range owned {
		if s.objects[o.resource][o.key] != nil {
			s.leave(o.resource, o.key, nil)
		}
	}
	if home := s.objects[namespaces]["/"+object.GetNamespace()]; home != nil && home.GetDeletionTimestamp() != nil && !s.isHeld(namespaces, home) {
		s.remove(namespaces, "/"+home.GetName())
	}
}
