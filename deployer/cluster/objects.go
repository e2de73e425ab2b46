package cluster

import (
	"context"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Get returns an object, or nil when it is not there. A kind that the cluster does not have has no objects.
func (c *Cluster) Get(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	panic("TODO")
}

// List returns the objects of a kind, in the order of the server, read in pages of 500 unless o.Limit says otherwise. The
// namespace "" means all of them. A kind that the cluster does not have has no objects. The iteration ends with its first
// error.
func (c *Cluster) List(ctx context.Context, kind schema.GroupVersionKind, namespace string, o metav1.ListOptions) iter.Seq2[*unstructured.Unstructured, error] {
	panic("TODO")
}

// ListMetadata is [Cluster.List] without anything but the type and the metadata of each object.
func (c *Cluster) ListMetadata(ctx context.Context, kind schema.GroupVersionKind, namespace string, o metav1.ListOptions) iter.Seq2[*unstructured.Unstructured, error] {
	panic("TODO")
}

// WriteOptions changes how an object is written.
type WriteOptions struct {
	DryRun bool // let the server check and answer, but change nothing
	Force  bool // only for Apply: take fields over from other managers
}

// Create makes an object that must not be there; if it is, the error is [ErrExists]. It returns what the server stored.
func (c *Cluster) Create(ctx context.Context, object *unstructured.Unstructured, o WriteOptions) (*unstructured.Unstructured, error) {
	panic("TODO")
}

// Apply is a server-side apply as [FieldManager]: the object gets the fields that are given, loses those that this manager
// set before and that are missing now, and keeps everybody else's. A UID makes it an update of that very object (the error
// is [ErrChanged] if it is gone or another), a resource version of that very state. Without both it creates what is
// missing. Fields that belong to another manager with another value are a conflict that names them, unless o.Force is set.
func (c *Cluster) Apply(ctx context.Context, object *unstructured.Unstructured, o WriteOptions) (*unstructured.Unstructured, error) {
	panic("TODO")
}

// Update replaces an object by what was made of the one that was read: its UID and resource version must be those of the
// server, else the error is [ErrChanged].
func (c *Cluster) Update(ctx context.Context, object *unstructured.Unstructured, o WriteOptions) (*unstructured.Unstructured, error) {
	panic("TODO")
}

// UpdateStatus is [Cluster.Update] for the status of an object.
func (c *Cluster) UpdateStatus(ctx context.Context, object *unstructured.Unstructured, o WriteOptions) (*unstructured.Unstructured, error) {
	panic("TODO")
}

// Patch changes the object that was read as data says. A patch must be harmless when it is sent twice: it carries a
// resource version or sets fields to values.
func (c *Cluster) Patch(ctx context.Context, object *unstructured.Unstructured, kind types.PatchType, data []byte, o WriteOptions) (*unstructured.Unstructured, error) {
	panic("TODO")
}

// PatchStatus is [Cluster.Patch] for the status of an object.
func (c *Cluster) PatchStatus(ctx context.Context, object *unstructured.Unstructured, kind types.PatchType, data []byte, o WriteOptions) (*unstructured.Unstructured, error) {
	panic("TODO")
}

// DeleteOptions changes how an object is deleted.
type DeleteOptions struct {
	DryRun      bool
	Propagation metav1.DeletionPropagation // "" is the server's default
}

// Delete asks the server to delete the object that was read, which must have a UID; with a resource version it must be in
// that state, too, else the error is [ErrChanged]. That it is gone already is no error, and so is that it stays until its
// finalizers are served.
func (c *Cluster) Delete(ctx context.Context, object *unstructured.Unstructured, o DeleteOptions) error {
	panic("TODO")
}
