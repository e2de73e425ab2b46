package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema/report"
)

// inFlight is the number of requests of an engine that run at once.
const inFlight = 8

// limiter lets inFlight requests through at a time. Its zero value is ready to use.
type limiter struct {
	once  sync.Once
	slots chan struct{}
}

// limited makes one request when there is room for it.
func limited[T any](ctx context.Context, e *Engine, request func() (T, error)) (T, error) {
	e.limiter.once.Do(func() { e.limiter.slots = make(chan struct{}, inFlight) })
	select {
	case e.limiter.slots <- struct{}{}:
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
	defer func() { <-e.limiter.slots }()
	return request()
}

func (e *Engine) get(ctx context.Context, kind kube.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	return limited(ctx, e, func() (*unstructured.Unstructured, error) { return e.Cluster.Get(ctx, kind, namespace, name) })
}

func (e *Engine) getMetadata(ctx context.Context, kind kube.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	return limited(ctx, e, func() (*unstructured.Unstructured, error) {
		return e.Cluster.GetMetadata(ctx, kind, namespace, name)
	})
}

func (e *Engine) create(ctx context.Context, object *unstructured.Unstructured, o cluster.WriteOptions) (*unstructured.Unstructured, error) {
	return limited(ctx, e, func() (*unstructured.Unstructured, error) { return e.Cluster.Create(ctx, object, o) })
}

func (e *Engine) apply(ctx context.Context, object *unstructured.Unstructured, o cluster.WriteOptions) (*unstructured.Unstructured, error) {
	return limited(ctx, e, func() (*unstructured.Unstructured, error) { return e.Cluster.Apply(ctx, object, o) })
}

func (e *Engine) update(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return limited(ctx, e, func() (*unstructured.Unstructured, error) {
		return e.Cluster.Update(ctx, object, cluster.WriteOptions{})
	})
}

func (e *Engine) delete(ctx context.Context, object *unstructured.Unstructured, o cluster.DeleteOptions) error {
	_, err := limited(ctx, e, func() (struct{}, error) { return struct{}{}, e.Cluster.Delete(ctx, object, o) })
	return err
}

// listMetadata returns the metadata of the objects that have a label selector's labels.
func (e *Engine) listMetadata(ctx context.Context, kind kube.GroupVersionKind, namespace, selector string) ([]*unstructured.Unstructured, error) {
	return limited(ctx, e, func() ([]*unstructured.Unstructured, error) {
		var objects []*unstructured.Unstructured
		for object, err := range e.Cluster.ListMetadata(ctx, kind, namespace, metav1.ListOptions{LabelSelector: selector}) {
			if err != nil {
				return nil, err
			}
			objects = append(objects, object)
		}
		return objects, nil
	})
}

func (e *Engine) emit(event report.Event) {
	if e.Sink != nil {
		e.Sink.Emit(event)
	}
}

// each calls f for 0 to n-1, several at a time, and returns the errors in that order. With stop it begins no further call
// after the first error.
func each(n int, stop bool, f func(i int) error) error {
	var (
		errs   = make([]error, n)
		next   atomic.Int64
		failed atomic.Bool
		group  sync.WaitGroup
	)
	for range min(n, 2*inFlight) {
		group.Go(func() {
			for i := int(next.Add(1) - 1); i < n && (!stop || !failed.Load()); i = int(next.Add(1) - 1) {
				if errs[i] = f(i); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	group.Wait()
	return join(errs)
}

// shown is the number of errors that a message lists.
const shown = 20

// join is errors.Join, except that one error stays itself and that many are cut.
func join(errs []error) error {
	var all []error
	for _, err := range errs {
		if err != nil {
			all = append(all, err)
		}
	}
	switch {
	case len(all) == 0:
		return nil
	case len(all) == 1:
		return all[0]
	case len(all) > shown:
		all = append(all[:shown:shown], fmt.Errorf("and %d more", len(all)-shown))
	}
	return errors.Join(all...)
}
