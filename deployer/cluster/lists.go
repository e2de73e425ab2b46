package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubejson "k8s.io/apimachinery/pkg/util/json"

	"github.com/solutionctl/solutionctl/schema/report"
)

// pageSize is the number of objects of a list in one answer: enough to need few requests, and few enough that neither
// side holds much at a time. partSize is that of lists of which only a part of each object is read, and wholeSize that of [Cluster.ListPartial]
// for other kinds: a whole object has some ten thousand bytes, of which little is kept.
const pageSize, partSize, wholeSize = 500, 5000, 100

// List returns the objects of a kind, in the order of the server, read in pages of 500 unless o.Limit is set. The
// namespace "" means all of them. A kind that the cluster does not have has no objects. The iteration ends with its first
// error.
func (c *Cluster) List(ctx context.Context, kind schema.GroupVersionKind, namespace string, o metav1.ListOptions) iter.Seq2[*unstructured.Unstructured, error] {
	return c.list(ctx, kind, namespace, o, listForm{})
}

// ListPartial is [Cluster.List] for callers that read many objects and need little of each: of workloads the fields that their health depends on, of pods
// those of their containers, of Events what they report, of ConfigMaps and Secrets the data; and the metadata, without the fields that managers
// own. Other kinds, and all kinds of a server without protobuf, are read as a whole.
func (c *Cluster) ListPartial(ctx context.Context, kind schema.GroupVersionKind, namespace string, o metav1.ListOptions) iter.Seq2[*unstructured.Unstructured, error] {
	return c.listPartial(ctx, kind, namespace, o, partial(kind))
}

// ListWithConditions is [Cluster.ListPartial], and of pods it also has the conditions, the gates and the message: why they are not ready.
func (c *Cluster) ListWithConditions(ctx context.Context, kind schema.GroupVersionKind, namespace string, o metav1.ListOptions) iter.Seq2[*unstructured.Unstructured, error] {
	of := partial(kind)
	if kind == PodKind {
		of = podWithConditions()
	}
	return c.listPartial(ctx, kind, namespace, o, of)
}

func (c *Cluster) listPartial(ctx context.Context, kind schema.GroupVersionKind, namespace string, o metav1.ListOptions, of message) iter.Seq2[*unstructured.Unstructured, error] {
	form := listForm{inProtobuf, of}
	if of == nil {
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
			if unlessImpossible(err) != nil {
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
