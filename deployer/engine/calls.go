package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema/report"
)

// listMetadata returns the metadata of the objects that a label selector matches.
func (e *Engine) listMetadata(ctx context.Context, kind kube.GroupVersionKind, namespace, selector string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for object, err := range e.Cluster.ListMetadata(ctx, kind, namespace, metav1.ListOptions{LabelSelector: selector}) {
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func (e *Engine) emit(event report.Event) {
	if e.Sink != nil {
		e.Sink.Emit(event)
	}
}

// workers is the number of goroutines of [each], more than the cluster lets through at a time.
const workers = 2 * cluster.InFlight

// each calls f for 0 to n-1, several at a time, and returns the errors in that order. With stop it starts no further call after
// the first error.
func each(n int, stop bool, f func(i int) error) error {
	var (
		errs   = make([]error, n)
		next   atomic.Int64
		failed atomic.Bool
		group  sync.WaitGroup
	)
	for range min(n, workers) {
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

// join is errors.Join, except that it returns a single error as it is, lists a common cause once, and limits the number of errors.
func join(errs []error) error {
	var all []error
	for _, err := range errs {
		if err != nil {
			all = append(all, err)
		}
	}
	all = oncePerCause(all)
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

// oncePerCause keeps the first of the errors that one webhook or policy has returned with the same message, with the number of the others.
func oncePerCause(errs []error) []error {
	var left []error
	first, more := map[string]int{}, map[int]int{}
	for _, err := range errs {
		status, ok := errors.AsType[*apierrors.StatusError](err)
		if !ok || cluster.Interceptor(err) == "" || strings.Contains(err.Error(), "\n") { // several lines may be several errors
			left = append(left, err)
			continue
		}
		cause := status.ErrStatus.Message
		if i, listed := first[cause]; listed {
			more[i]++
			continue
		}
		first[cause] = len(left)
		left = append(left, err)
	}
	for i, n := range more {
		left[i] = fmt.Errorf("%w; and %s for the same reason", left[i], report.Count(n, "more object"))
	}
	return left
}
