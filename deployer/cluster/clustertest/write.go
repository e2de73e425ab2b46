package clustertest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// write is one request that changes an object. The server's lock is held.
type write struct {
	*Server
	kind
	namespace, name, subresource string
	manager                      string
	force, dryRun                bool
}

func (w write) key() string { return w.namespace + "/" + w.name }

func (w write) live() *unstructured.Unstructured {
	if object := w.objects[w.groupResource()][w.key()]; object != nil {
		return as(object, w.kind)
	}
	return nil
}

func (w write) conflict(format string, args ...any) error {
	return apierrors.NewConflict(w.groupResource(), w.name, fmt.Errorf(format, args...))
}

func (w write) create(body []byte) (any, error) {
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(body); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	w.name = object.GetName()
	if w.live() != nil {
		return nil, apierrors.NewAlreadyExists(w.groupResource(), w.name)
	}
	return w.put(&object)
}

func (w write) update(body []byte) (any, error) {
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(body); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if w.live() == nil {
		return nil, apierrors.NewNotFound(w.groupResource(), w.name)
	}
	if err := w.precondition(string(object.GetUID()), object.GetResourceVersion()); err != nil {
		return nil, err
	}
	return w.put(&object)
}

// precondition compares what a request names, "" for nothing, with the object that is there.
func (w write) precondition(uid, version string) error {
	live := w.live()
	switch {
	case live == nil && uid != "":
		return w.conflict("uid mismatch: the provided object specified uid %s, and no existing object was found", uid)
	case live != nil && uid != "" && uid != string(live.GetUID()):
		return w.conflict("Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, live.GetUID())
	case live != nil && version != "" && version != live.GetResourceVersion():
		return w.conflict("the object has been modified; please apply your changes to the latest version and try again")
	default:
		return nil
	}
}

// put writes an object as a whole, as a client that does not apply.
func (w write) put(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live, manager := w.live(), w.fields()
	before := live
	if before == nil {
		before = w.empty()
	}
	object = object.DeepCopy()
	if len(object.GetManagedFields()) == 0 { // otherwise the client sends the owners
		object.SetManagedFields(before.GetManagedFields())
	}
	managed, err := manager.Update(before, object, w.manager)
	if err != nil {
		return nil, err
	}
	return w.finish(managed)
}

func (w write) patch(format string, body []byte) (any, error) {
	if format == string(types.ApplyPatchType) {
		return w.apply(body)
	}
	live := w.live()
	if live == nil {
		return nil, apierrors.NewNotFound(w.groupResource(), w.name)
	}
	old, err := live.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var text []byte
	if format == string(types.JSONPatchType) {
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(body); err == nil {
			text, err = patch.Apply(old)
		}
	} else {
		text, err = jsonpatch.MergePatch(old, body)
	}
	var object unstructured.Unstructured
	if err == nil {
		err = object.UnmarshalJSON(text)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := w.precondition(string(object.GetUID()), object.GetResourceVersion()); err != nil {
		return nil, err
	}
	return w.put(&object)
}

func (w write) apply(body []byte) (any, error) {
	var patch unstructured.Unstructured
	decode := utilyaml.Unmarshal
	if json.Valid(body) { // as clients write it; reading YAML takes longer
		decode = utiljson.Unmarshal
	}
	if err := decode(body, &patch.Object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := w.precondition(string(patch.GetUID()), patch.GetResourceVersion()); err != nil {
		return nil, err
	}
	patch.SetUID("")
	patch.SetResourceVersion("")
	live := w.live()
	if live == nil {
		live = w.empty()
	}
	applied, err := w.fields().Apply(live, &patch, w.manager, w.force)
	if err != nil {
		return nil, err
	}
	return w.finish(declared(applied))
}

// declared leaves out of what was applied that a mapping is itself a field, apart from the fields in it: where there is a
// schema that has the mapping, as for all that is built in, it is not.
func declared(applied runtime.Object) runtime.Object {
	object, ok := applied.(*unstructured.Unstructured)
	if !ok {
		return applied
	}
	entries := object.GetManagedFields()
	for i := range entries {
		var fields map[string]any
		if entries[i].Operation != metav1.ManagedFieldsOperationApply || json.Unmarshal(entries[i].FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if text, err := json.Marshal(withoutSelf(fields)); err == nil {
			entries[i].FieldsV1.SetRawBytes(text)
		}
	}
	object.SetManagedFields(entries)
	return object
}

func withoutSelf(fields map[string]any) map[string]any {
	delete(fields, ".")
	for _, field := range fields {
		if inside, ok := field.(map[string]any); ok {
			withoutSelf(inside)
		}
	}
	return fields
}

// finish stores what was made of an object, with all that is the server's to say.
func (w write) finish(managed runtime.Object) (*unstructured.Unstructured, error) {
	object, ok := managed.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%T", managed)
	}
	if err := errors.Join(w.admit(), w.fit(object)); err != nil {
		return nil, err
	}
	live := w.live()
	object.SetName(w.name)
	if w.namespaced {
		object.SetNamespace(w.namespace)
	}
	if live == nil {
		object.SetUID(uuid.NewUUID())
		object.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
		object.SetGeneration(1)
	} else {
		object.SetUID(live.GetUID())
		object.SetCreationTimestamp(live.GetCreationTimestamp())
		object.SetDeletionTimestamp(live.GetDeletionTimestamp())
		w.divide(live, object)
		object.SetResourceVersion(live.GetResourceVersion())
		object.SetGeneration(live.GetGeneration())
		if reflect.DeepEqual(withoutTimes(live), withoutTimes(object)) {
			return live, nil
		}
		if !reflect.DeepEqual(withoutMetadata(live), withoutMetadata(object)) {
			object.SetGeneration(live.GetGeneration() + 1)
		}
	}
	if w.dryRun {
		return object, nil
	}
	if w.settles(object) {
		settle(object)
	}
	if object.GetDeletionTimestamp() != nil && !w.isHeld(w.groupResource(), object) {
		w.remove(w.groupResource(), w.key())
		return object, nil
	}
	w.store(w.groupResource(), w.key(), object)
	return w.live(), nil
}

// fit refuses a ConfigMap or a Secret with more data than the API server stores.
func (w write) fit(object *unstructured.Unstructured) error {
	const most = 1 << 20
	size, at := 0, field.NewPath("")
	switch {
	case w.Group == "" && w.Kind == "ConfigMap":
		data, _, _ := unstructured.NestedStringMap(object.Object, "data")
		for _, value := range data {
			size += len(value)
		}
	case w.Group == "" && w.Kind == "Secret":
		at = field.NewPath("data")
		data, _, _ := unstructured.NestedStringMap(object.Object, "data")
		for _, value := range data {
			decoded, _ := base64.StdEncoding.DecodeString(value)
			size += len(decoded)
		}
	}
	if size <= most {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Kind: w.Kind}, w.name, field.ErrorList{field.TooLong(at, "", most)})
}

// admit refuses what is to be made in a namespace that is not there, or that goes.
func (w write) admit() error {
	if !w.namespaced || w.live() != nil {
		return nil
	}
	namespace := w.objects[namespaces]["/"+w.namespace]
	switch {
	case namespace == nil:
		return apierrors.NewNotFound(namespaces, w.namespace)
	case namespace.GetDeletionTimestamp() != nil:
		err := apierrors.NewForbidden(w.groupResource(), w.name, errors.New("namespace is being terminated"))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: "NamespaceTerminating", Message: "namespace " + w.namespace + " is being terminated"}}
		return err
	}
	return nil
}

// settles reports whether a controller gives the object its status now. What a test puts may have one.
func (w write) settles(object *unstructured.Unstructured) bool {
	given := w.manager == controller && object.Object["status"] != nil
	return !given && w.subresource == "" && !slices.Contains(w.stalled, object.GetKind())
}

// divide keeps the status from writers of the object, and the rest from writers of the status.
func (w write) divide(live, object *unstructured.Unstructured) {
	switch {
	case w.subresource == "status":
		status, metadata := object.Object["status"], object.Object["metadata"]
		object.Object = maps.Clone(live.Object)
		object.Object["status"], object.Object["metadata"] = status, metadata
	case w.status && w.manager != controller:
		delete(object.Object, "status")
		if status, ok := live.Object["status"]; ok {
			object.Object["status"] = status
		}
	}
}

func withoutMetadata(object *unstructured.Unstructured) map[string]any {
	rest := maps.Clone(object.Object)
	delete(rest, "metadata")
	delete(rest, "status")
	return rest
}

// withoutTimes returns an object without the times of managed fields, so that applying it again changes nothing.
func withoutTimes(object *unstructured.Unstructured) map[string]any {
	object = object.DeepCopy()
	entries := object.GetManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	object.SetManagedFields(entries)
	return object.Object
}

// store keeps an object in a new version.
func (s *Server) store(resource schema.GroupResource, key string, object *unstructured.Unstructured) {
	if s.objects[resource] == nil {
		s.objects[resource] = map[string]*unstructured.Unstructured{}
	}
	old := s.objects[resource][key]
	s.objects[resource][key] = object
	s.happened(resource, old, object)
}

// happened sends a change to watches and sets its version.
func (s *Server) happened(resource schema.GroupResource, old, object *unstructured.Unstructured) {
	s.revision++
	if object != nil {
		object.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	}
	s.events = append(s.events, event{resource: resource, revision: s.revision, old: old, new: object})
	close(s.changed)
	s.changed = make(chan struct{})
}

// empty is the object before it is made.
func (w write) empty() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(w.GroupVersionKind)
	object.SetName(w.name)
	if w.namespaced {
		object.SetNamespace(w.namespace)
	}
	return object
}

// fields is apimachinery's own server-side apply.
func (w write) fields() *managedfields.FieldManager {
	none := none{}
	manager, err := managedfields.NewDefaultCRDFieldManager(
		managedfields.NewDeducedTypeConverter(), none, none, none, w.GroupVersionKind, w.GroupVersion(), w.subresource, nil)
	if err != nil {
		panic(err) // there is nothing in it that could fail
	}
	return manager
}

// none converts and defaults nothing: objects are unstructured.
type none struct{}

func (none) Default(runtime.Object) {}

func (none) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object, nil
}

func (none) Convert(_, _, _ any) error { return errors.New("objects are unstructured") }

func (none) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", errors.New("objects are unstructured")
}

func (none) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	object := in.DeepCopyObject()
	gvk := object.GetObjectKind().GroupVersionKind()
	if wanted, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{gvk}); ok {
		object.GetObjectKind().SetGroupVersionKind(wanted)
	}
	return object, nil
}
