// Package health judges whether an object in a cluster is ready, and tells why it is not in words that a person
// understands, down to the container that does not start.
//
// [Of] looks at one object and is a pure function. [Explain] follows an object to its pods, through a [Reader].
package health

import (
	"context"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reader reads objects from a cluster; a *cluster.Cluster is one.
type Reader interface {
	Get(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error)
	List(ctx context.Context, kind schema.GroupVersionKind, namespace string, o metav1.ListOptions) iter.Seq2[*unstructured.Unstructured, error]
}

// Status is the judgement on one object. One that is neither Ready nor Failed is on its way.
type Status struct {
	Ready   bool
	Failed  bool   // waiting will not help
	Reason  string // one word, for programs
	Message string // one sentence, for people; "" when ready
}

// Of judges an object by itself.
func Of(object *unstructured.Unstructured) Status {
	panic("TODO")
}

// Explain tells why an object is not ready: one sentence for each thing that is in the way, most important first, at
// most ten. It reads what belongs to the object; what the user may not read is left out.
func Explain(ctx context.Context, r Reader, object *unstructured.Unstructured) []string {
	panic("TODO")
}
