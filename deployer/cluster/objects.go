package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubejson "k8s.io/apimachinery/pkg/util/json"

	"github.com/solutionctl/solutionctl/schema/report"
)

// onlyMetadata asks for objects without their spec and status.
const (
	metadataOfOne = protobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	onlyMetadata  = protobuf + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	inProtobuf    = protobuf + ",application/json"
	// The events of a watch come in JSON: those of protobuf have frames.
	metadataEvents = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	applyFormat    = "application/apply-patch+yaml" // JSON is YAML
)

// Get returns an object, or nil when it is not there. A kind that the cluster does not have has no objects, and neither does a name that
// Kubernetes does not allow.
func (c *Cluster) Get(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (object *unstructured.Unstructured, err error) {
	r, err := c.request(ctx, "get", http.MethodGet, kind, namespace, name)
	if err != nil {
		return nil, unlessImpossible(err)
	}
	key := memoryKey{kind, name}
	if namespace == SystemNamespace {
		if remembered, known := recall(ctx, key); known {
			return remembered, nil
		}
		defer func() {
			if err == nil {
				keep(ctx, key, object)
			}
		}()
	}
	object, _, err = c.exchange(ctx, r)
	if apierrors.IsNotFound(err) {
		object, err = nil, nil
	}
	if err == nil {
		noteObject(ctx, r, object)
	}
	return object, err
}

// GetMetadata is [Cluster.Get] without anything but the type and the metadata of the object, and without who manages its
// fields.
func (c *Cluster) GetMetadata(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	r, err := c.request(ctx, "get", http.MethodGet, kind, namespace, name)
	if err != nil {
		return nil, unlessImpossible(err)
	}
	r.accept = metadataOfOne
	answer, _, err := c.do(ctx, r)
	if apierrors.IsNotFound(err) {
		noteObject(ctx, r, nil)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := metadataIn(r, answer)
	if err == nil {
		noteObject(ctx, r, found)
	}
	return found, err
}

// metadataIn reads an answer that was asked for with [metadataOfOne].
func metadataIn(r request, answer []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	var err error
	if raw, ok := fromProtobuf(answer); ok {
		var d decoder
		object.Object, err = d.object(raw, onlyHeader)
	} else {
		err = kubejson.Unmarshal(answer, &object.Object)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: answer of the API server: %w", r.what(), err)
	}
	object.SetGroupVersionKind(r.kind)
	return object, nil
}

// WriteOptions changes how an object is written.
type WriteOptions struct {
	DryRun bool // let the server check and answer, but change nothing
	Force  bool // only for Apply: take ownership of fields from other managers
	Whole  bool // only for Create: what is made is replaced by Update and never applied, which costs the server half
	Unread bool // only for Create: the caller needs no answer, and gets nil
	Brief  bool // for Create and Apply: the caller needs no more of the answer than what [Cluster.GetMetadata] returns
}

// Create makes an object that must not be there; if it is, the error is [ErrExists]. It returns what the server stored.
//
// It is a server-side apply like every later change, because the server keeps what one manager creates apart from what the
// same manager applies: fields of the former could neither be changed without a conflict nor given up.
func (c *Cluster) Create(ctx context.Context, object *unstructured.Unstructured, o WriteOptions) (*unstructured.Unstructured, error) {
	object = object.DeepCopy()
	object.SetManagedFields(nil)
	object.SetUID("")
	object.SetResourceVersion("")
	method, format := http.MethodPost, ""
	if !o.Whole {
		method, format = http.MethodPatch, applyFormat
		object.SetResourceVersion(neverVersion)
	}
	r, err := c.writeRequest(ctx, "create", method, object, o)
	if err != nil {
		return nil, err
	}
	r.format = format
	if o.Whole && o.DryRun {
		r.query.Set("fieldValidation", metav1.FieldValidationStrict) // as an apply does
	}
	created, inDoubt, err := c.exchangeAs(ctx, r, o)
	if !inDoubt || !errors.Is(err, ErrExists) {
		return created, err
	}
	// The answer to an attempt was lost: did that attempt create it, or another client?
	found, getErr := c.Get(ctx, r.kind, r.namespace, r.name)
	if getErr != nil || found == nil || !slices.ContainsFunc(found.GetManagedFields(), madeByUs) {
		return nil, err
	}
	return found, nil
}

// neverVersion is a resource version that no object has: what is applied to it is created when it is missing, and refused
// when it is there.
const neverVersion = "1"

func madeByUs(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == FieldManager }

// Apply is a server-side apply as [FieldManager]: the object gets the fields that are given, loses those that this manager
// set before and that are missing now, and keeps everybody else's. A UID makes it an update of that very object (the error
// is [ErrChanged] if it is gone or another), a resource version of that very state. Without both it creates what is
// missing. Fields that belong to another manager with another value are a conflict that names them, unless o.Force is set.
func (c *Cluster) Apply(ctx context.Context, object *unstructured.Unstructured, o WriteOptions) (*unstructured.Unstructured, error) {
	if len(object.GetManagedFields()) > 0 {
		object = object.DeepCopy()
		object.SetManagedFields(nil) // they are the server's to say
	}
	r, err := c.writeRequest(ctx, "patch", http.MethodPatch, object, o)
	if err != nil {
		return nil, err
	}
	r.format = applyFormat
	if o.Force {
		r.query.Set("force", "true")
	}
	applied, _, err := c.exchangeAs(ctx, r, o)
	return applied, err
}

// Update replaces an object by what was made of the one that was read: its UID and resource version must be those of the
// server, else the error is [ErrChanged].
func (c *Cluster) Update(ctx context.Context, object *unstructured.Unstructured, o WriteOptions) (*unstructured.Unstructured, error) {
	return c.update(ctx, object, "", o)
}

// UpdateStatus is [Cluster.Update] for the status of an object.
func (c *Cluster) UpdateStatus(ctx context.Context, object *unstructured.Unstructured, o WriteOptions) (*unstructured.Unstructured, error) {
	return c.update(ctx, object, "status", o)
}

func (c *Cluster) update(ctx context.Context, object *unstructured.Unstructured, subresource string, o WriteOptions) (*unstructured.Unstructured, error) {
	if object.GetUID() == "" || object.GetResourceVersion() == "" {
		return nil, fmt.Errorf("update %s: it was not read before", NameOf(object))
	}
	r, err := c.writeRequest(ctx, "update", http.MethodPut, object, o)
	if err != nil {
		return nil, err
	}
	r.addSubresource(subresource)
	updated, _, err := c.exchange(ctx, r)
	return updated, err
}

// Patch applies the patch in data to the object that was read. A patch must be harmless when it is sent twice: it carries a
// resource version or sets fields to values.
func (c *Cluster) Patch(ctx context.Context, object *unstructured.Unstructured, kind types.PatchType, data []byte, o WriteOptions) (*unstructured.Unstructured, error) {
	return c.patch(ctx, object, "", kind, data, o)
}

// PatchStatus is [Cluster.Patch] for the status of an object.
func (c *Cluster) PatchStatus(ctx context.Context, object *unstructured.Unstructured, kind types.PatchType, data []byte, o WriteOptions) (*unstructured.Unstructured, error) {
	return c.patch(ctx, object, "status", kind, data, o)
}

// PatchScale is [Cluster.Patch] for the scale of an object whose kind has that subresource.
func (c *Cluster) PatchScale(ctx context.Context, object *unstructured.Unstructured, kind types.PatchType, data []byte, o WriteOptions) (*unstructured.Unstructured, error) {
	return c.patch(ctx, object, "scale", kind, data, o)
}

func (c *Cluster) patch(ctx context.Context, object *unstructured.Unstructured, subresource string, kind types.PatchType, data []byte, o WriteOptions) (*unstructured.Unstructured, error) {
	r, err := c.writeRequest(ctx, "patch", http.MethodPatch, object, o)
	if err != nil {
		return nil, err
	}
	r.addSubresource(subresource)
	r.format, r.body = string(kind), data
	patched, _, err := c.exchange(ctx, r)
	return patched, err
}

// DeleteOptions changes how an object is deleted.
type DeleteOptions struct {
	DryRun      bool
	Propagation metav1.DeletionPropagation // "" is the server's default
}

// Delete asks the server to delete the object that was read, which must have a UID; with a resource version it must be in
// that state, too, else the error is [ErrChanged]. It is not an error if the object is gone already, or stays until its
// finalizers are removed.
func (c *Cluster) Delete(ctx context.Context, object *unstructured.Unstructured, o DeleteOptions) error {
	_, err := c.Remove(ctx, object, o)
	return err
}

// Remove is [Cluster.Delete], and reports whether the answer proves that the object is gone. If it does not, the object may still be there, or
// be gone as well.
func (c *Cluster) Remove(ctx context.Context, object *unstructured.Unstructured, o DeleteOptions) (gone bool, err error) {
	r, err := c.deleteRequest(ctx, object, o)
	if err != nil {
		return false, unlessImpossible(err)
	}
	answer, err := c.deleteObject(ctx, r)
	return err == nil && !o.DryRun && isDeletion(answer, object.GetUID()), err
}

// isDeletion reports whether the answer to a deletion is that of an API server which has removed the object from its storage: a status with the
// UID. An object that waits for its finalizers or its pods is returned itself, and so are the deleted ones of a few kinds. A server behind the
// API server may answer with a status before it has deleted anything, but without the UID.
func isDeletion(answer []byte, uid types.UID) bool {
	var status metav1.Status
	return json.Unmarshal(answer, &status) == nil && status.Kind == "Status" && status.Status == metav1.StatusSuccess &&
		status.Details != nil && status.Details.UID == uid && uid != ""
}

// deleteRequest describes the deletion of the object that was read.
func (c *Cluster) deleteRequest(ctx context.Context, object *unstructured.Unstructured, o DeleteOptions) (request, error) {
	uid, version := object.GetUID(), object.GetResourceVersion()
	if uid == "" {
		return request{}, fmt.Errorf("delete %s: it was not read before", NameOf(object))
	}
	r, err := c.writeRequest(ctx, "delete", http.MethodDelete, object, WriteOptions{DryRun: o.DryRun})
	if err != nil {
		return request{}, err
	}
	options := metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{UID: &uid},
	}
	if o.DryRun {
		options.DryRun = []string{metav1.DryRunAll} // the server ignores the query of a request with a body
	}
	if version != "" {
		options.Preconditions.ResourceVersion = &version
	}
	if o.Propagation != "" {
		options.PropagationPolicy = &o.Propagation
	}
	r.body, err = json.Marshal(options)
	return r, err
}

// deleteObject sends a deletion and returns the answer, none if the object is gone already.
func (c *Cluster) deleteObject(ctx context.Context, r request) (answer []byte, err error) {
	answer, _, err = c.do(ctx, r)
	if apierrors.IsNotFound(err) && !errors.Is(err, ErrNoKind) {
		return nil, nil
	}
	return answer, err
}

// errNoName means that no object can have a name. Objects that others write refer to such names, too.
var errNoName = errors.New("the API server would read this name as another path")

// request describes a request about one object, or, without a name, about all of a kind.
func (c *Cluster) request(ctx context.Context, verb, method string, kind schema.GroupVersionKind, namespace, name string) (request, error) {
	mapping, err := c.Mapping(ctx, kind)
	if err != nil {
		return request{}, err
	}
	var path strings.Builder
	if kind.Group == "" {
		path.WriteString("/api/" + kind.Version)
	} else {
		path.WriteString("/apis/" + kind.Group + "/" + kind.Version)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	if namespace != "" {
		path.WriteString("/namespaces/" + namespace)
	}
	path.WriteString("/" + mapping.Resource.Resource)
	for _, segment := range []string{namespace, name} {
		if segment == "." || segment == ".." || strings.ContainsAny(segment, "/%") {
			return request{}, report.Errorf(report.Invalid, "%q: %w", segment, errNoName)
		}
	}
	if name != "" && method != http.MethodPost {
		path.WriteString("/" + name)
	}
	return request{
		verb: verb, method: method, path: path.String(), query: url.Values{},
		kind: kind, resource: mapping.Resource, namespace: namespace, name: name,
	}, nil
}

// writeRequest describes a request that changes an object.
func (c *Cluster) writeRequest(ctx context.Context, verb, method string, object *unstructured.Unstructured, o WriteOptions) (request, error) {
	r, err := c.request(ctx, verb, method, object.GroupVersionKind(), object.GetNamespace(), object.GetName())
	if err != nil {
		return r, fmt.Errorf("%s %s: %w", verb, NameOf(object), err)
	}
	if r.body, err = object.MarshalJSON(); err != nil {
		return r, report.Errorf(report.Invalid, "%s: %w", r.what(), err)
	}
	r.query.Set("fieldManager", FieldManager)
	if o.DryRun {
		r.query.Set("dryRun", metav1.DryRunAll)
	}
	r.write = !o.DryRun
	return r, nil
}

func (r *request) addSubresource(name string) {
	if name != "" {
		r.path += "/" + name
		r.resource.Resource += "/" + name
	}
}

// exchange sends a request whose answer is an object.
func (c *Cluster) exchange(ctx context.Context, r request) (object *unstructured.Unstructured, inDoubt bool, err error) {
	answer, inDoubt, err := c.do(ctx, r)
	if err != nil {
		return nil, inDoubt, err
	}
	object = &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(answer); err != nil {
		return nil, inDoubt, fmt.Errorf("%s: answer of the API server: %w", r.what(), err)
	}
	return object, inDoubt, nil
}

// exchangeAs is exchange for as much of the answer as the options ask for.
func (c *Cluster) exchangeAs(ctx context.Context, r request, o WriteOptions) (object *unstructured.Unstructured, inDoubt bool, err error) {
	if !o.Unread && !o.Brief {
		return c.exchange(ctx, r)
	}
	r.accept = metadataOfOne
	answer, inDoubt, err := c.do(ctx, r)
	if err == nil && o.Brief {
		object, err = metadataIn(r, answer)
	}
	return object, inDoubt, err
}

// unlessImpossible returns no error if no such object can be there.
func unlessImpossible(err error) error {
	if errors.Is(err, ErrNoKind) || errors.Is(err, errNoName) {
		return nil
	}
	return err
}
