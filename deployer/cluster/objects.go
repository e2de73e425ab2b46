package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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

// pageSize is the number of objects of a list in one answer: enough to need few requests, and few enough that neither
// side holds much at a time. partSize is that of lists of which only a part of each object is read, and wholeSize that of [Cluster.ListPartial]
// for other kinds: a whole object has some ten thousand bytes, of which little is kept.
const pageSize, partSize, wholeSize = 500, 5000, 100

// onlyMetadata asks for objects without their spec and status.
const (
	metadataOfOne = protobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	onlyMetadata  = protobuf + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	inProtobuf    = protobuf + ",application/json"
	// The events of a watch come in JSON: those of protobuf have frames.
	metadataEvents = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	applyFormat    = "application/apply-patch+yaml" // JSON is YAML
)

// Get returns an object, or nil when it is not there. A kind that the cluster does not have has no objects.
func (c *Cluster) Get(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (object *unstructured.Unstructured, err error) {
	r, err := c.request(ctx, "get", http.MethodGet, kind, namespace, name)
	if err != nil {
		return nil, unlessNoKind(err)
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
		return nil, unlessNoKind(err)
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
	found := &unstructured.Unstructured{}
	if raw, ok := fromProtobuf(answer); ok {
		var d decoder
		found.Object, err = d.object(raw, onlyHeader)
	} else {
		err = kubejson.Unmarshal(answer, &found.Object)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: answer of the API server: %w", r.what(), err)
	}
	found.SetGroupVersionKind(kind)
	noteObject(ctx, r, found)
	return found, nil
}

// List returns the objects of a kind, in the order of the server, read in pages of 500 unless o.Limit is set. The
// namespace "" means all of them. A kind that the cluster does not have has no objects. The iteration ends with its first
// error.
func (c *Cluster) List(ctx context.Context, kind schema.GroupVersionKind, namespace string, o metav1.ListOptions) iter.Seq2[*unstructured.Unstructured, error] {
	return c.list(ctx, kind, namespace, o, listForm{})
}

// ListPartial is [Cluster.List] for callers that read many objects and need little of each: of workloads the fields that their health depends on, of pods
// those of their containers, of ConfigMaps and Secrets the data; and the metadata, without the fields that managers own. Other kinds, and
// all kinds of a server without protobuf, are read as a whole.
func (c *Cluster) ListPartial(ctx context.Context, kind schema.GroupVersionKind, namespace string, o metav1.ListOptions) iter.Seq2[*unstructured.Unstructured, error] {
	form := listForm{inProtobuf, partial(kind)}
	if form.of == nil {
		form = listForm{}
		if o.Limit == 0 {
			o.Limit = wholeSize
		}
	}
	return c.list(ctx, kind, namespace, o, form)
}

// listForm is the form in which objects are asked for, and their fields that are read; the zero value is all of them in JSON.
type listForm struct {
	accept string
	of     message
}

// ListMetadata is [Cluster.List] without anything but the type and the metadata of each object, and without who manages
// its fields.
func (c *Cluster) ListMetadata(ctx context.Context, kind schema.GroupVersionKind, namespace string, o metav1.ListOptions) iter.Seq2[*unstructured.Unstructured, error] {
	return c.list(ctx, kind, namespace, o, listForm{onlyMetadata, onlyHeader})
}

// ListVersions is [Cluster.ListMetadata] for callers that only compare objects with those that they know: of the metadata it has the name, the
// UID, the versions, and whether the object is being deleted.
func (c *Cluster) ListVersions(ctx context.Context, kind schema.GroupVersionKind, namespace string, o metav1.ListOptions) iter.Seq2[*unstructured.Unstructured, error] {
	return c.list(ctx, kind, namespace, o, listForm{onlyMetadata, onlyVersions})
}

// Collect returns the objects of a list, or its error.
func Collect(list iter.Seq2[*unstructured.Unstructured, error]) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for object, err := range list {
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// list is not copied into each of its many callers: that took 180 KB of the program.
//
//go:noinline
func (c *Cluster) list(ctx context.Context, kind schema.GroupVersionKind, namespace string, o metav1.ListOptions, form listForm) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for page, err := range c.pages(ctx, kind, namespace, o, form) {
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Items {
				if !yield(&page.Items[i], nil) {
					return
				}
			}
		}
	}
}

// pages returns a list page by page. When the server has forgotten the state that the list began with, the rest comes
// from the present state.
func (c *Cluster) pages(ctx context.Context, kind schema.GroupVersionKind, namespace string, o metav1.ListOptions, form listForm) iter.Seq2[*unstructured.UnstructuredList, error] {
	return func(yield func(*unstructured.UnstructuredList, error) bool) {
		r, err := c.request(ctx, "list", http.MethodGet, kind, namespace, "")
		if err != nil {
			if unlessNoKind(err) != nil {
				yield(nil, err)
			}
			return
		}
		r.accept, r.query = form.accept, listQuery(o)
		if o.Limit == 0 && form.of != nil {
			r.query.Set("limit", strconv.Itoa(partSize))
		} else if o.Limit == 0 {
			r.query.Set("limit", strconv.Itoa(pageSize))
		}
		for {
			page, err := c.page(ctx, r, form.of)
			if token := inconsistentContinue(err); token != "" {
				r.query.Set("continue", token)
				continue
			}
			if err == nil {
				note(ctx, read{kind, namespace, "", o.LabelSelector, o.FieldSelector}, seen{version: page.GetResourceVersion()})
			}
			if !yield(page, err) || err != nil || page.GetContinue() == "" {
				return
			}
			r.query.Set("continue", page.GetContinue())
			r.query.Del("resourceVersion") // it is part of the token
			r.query.Del("resourceVersionMatch")
		}
	}
}

func (c *Cluster) page(ctx context.Context, r request, of message) (page *unstructured.UnstructuredList, err error) {
	var invalid error
	r.read = func(body io.Reader) error {
		page = &unstructured.UnstructuredList{}
		answer := &readerWithError{Reader: body}
		invalid = readPage(page, answer, of)
		return answer.err
	}
	if err = c.listed(ctx, r); err == nil && invalid != nil {
		err = fmt.Errorf("%s: answer of the API server: %w", r.what(), invalid)
	}
	if err != nil {
		return nil, err
	}
	for i := range page.Items {
		page.Items[i].SetGroupVersionKind(r.kind) // the server leaves it out, or sends PartialObjectMetadata
	}
	return page, nil
}

// readerWithError keeps the error of a reader, unless it is the end.
type readerWithError struct {
	io.Reader
	err error
}

func (r *readerWithError) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

func readPage(page *unstructured.UnstructuredList, answer io.Reader, of message) error {
	r := bufio.NewReader(answer)
	if start, _ := r.Peek(len(protobufMagic)); string(start) == protobufMagic {
		_, _ = r.Discard(len(start)) // it is in the buffer
		return readProtobuf(page, r, of)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return readList(page, data)
}

// readList reads a list once, where its own UnmarshalJSON reads each object twice.
func readList(page *unstructured.UnstructuredList, answer []byte) error {
	if err := kubejson.Unmarshal(answer, &page.Object); err != nil {
		return err
	}
	items, isList := page.Object["items"].([]any)
	if page.GetKind() == "" || !isList && page.Object["items"] != nil {
		return errors.New("it is not a list")
	}
	delete(page.Object, "items")
	page.Items = make([]unstructured.Unstructured, len(items))
	for i, item := range items {
		object, isObject := item.(map[string]any)
		if !isObject {
			return fmt.Errorf("item %d is not an object", i)
		}
		page.Items[i].Object = object
	}
	return nil
}

// listed requests a page. For a moment after a change of a CustomResourceDefinition the server does not serve a kind that discovery
// lists. The error is [ErrNoKind] only if discovery does not list it, because callers conclude that no object is left.
func (c *Cluster) listed(ctx context.Context, r request) error {
	_, _, err := c.do(ctx, r)
	for pause := firstPause; errors.Is(err, ErrNoKind); pause *= 2 {
		if _, missing := c.Mapping(ctx, r.kind); errors.Is(missing, ErrNoKind) {
			return err
		} else if missing != nil {
			return missing
		}
		if pause > lastPause {
			return report.Errorf(report.Unavailable, "%s: the API server lists the kind, but does not serve it", r.what()).WithHint("run the command again")
		}
		if err = Sleep(ctx, pause); err == nil {
			_, _, err = c.do(ctx, r)
		}
	}
	return err
}

// inconsistentContinue returns the token that continues a list whose own token has expired, "" if err is another error.
func inconsistentContinue(err error) string {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsResourceExpired(err) {
		return ""
	}
	return status.ErrStatus.Continue
}

func listQuery(o metav1.ListOptions) url.Values {
	query := url.Values{}
	for key, value := range map[string]string{
		"labelSelector": o.LabelSelector, "fieldSelector": o.FieldSelector,
		"resourceVersion": o.ResourceVersion, "resourceVersionMatch": string(o.ResourceVersionMatch),
	} {
		if value != "" {
			query.Set(key, value)
		}
	}
	if o.Limit > 0 {
		query.Set("limit", strconv.FormatInt(o.Limit, 10))
	}
	return query
}

// WriteOptions changes how an object is written.
type WriteOptions struct {
	DryRun bool // let the server check and answer, but change nothing
	Force  bool // only for Apply: take ownership of fields from other managers
	Whole  bool // only for Create: what is made is replaced by Update and never applied, which costs the server half
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
	created, inDoubt, err := c.exchange(ctx, r)
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
	applied, _, err := c.exchange(ctx, r)
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
	r, err := c.deleteRequest(ctx, object, o)
	if err != nil {
		return unlessNoKind(err)
	}
	return c.deleteObject(ctx, r)
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

// deleteObject sends a deletion, and accepts that the object is gone already.
func (c *Cluster) deleteObject(ctx context.Context, r request) error {
	_, _, err := c.do(ctx, r)
	if apierrors.IsNotFound(err) && !errors.Is(err, ErrNoKind) {
		return nil
	}
	return err
}

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

func unlessNoKind(err error) error {
	if errors.Is(err, ErrNoKind) {
		return nil
	}
	return err
}
