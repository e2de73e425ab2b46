package cluster

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Workers is the number of goroutines of [Each], more than [Cluster] sends requests at a time.
const Workers = 2 * InFlight

// Each calls f for 0 to n-1, several at a time, and returns the errors in that order. After an error it starts no further call.
func Each(n int, f func(i int) error) error { return each(n, true, f) }

// All is like [Each], but calls f for all numbers, whatever fails.
func All(n int, f func(i int) error) error { return each(n, false, f) }

func each(n int, stop bool, f func(i int) error) error {
	var (
		errs   = make([]error, n)
		next   atomic.Int64
		failed atomic.Bool
		group  sync.WaitGroup
	)
	for range min(n, Workers) {
		group.Go(func() {
			for i := int(next.Add(1) - 1); i < n && (!stop || !failed.Load()); i = int(next.Add(1) - 1) {
				if errs[i] = f(i); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	group.Wait()
	return Join(errs)
}

// shown is the number of errors that a message lists.
const shown = 20

// Join is errors.Join, except that it returns a single error as it is, lists a common cause once, and limits the number of errors.
func Join(errs []error) error {
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
		if !ok || Interceptor(err) == "" || strings.Contains(err.Error(), "\n") { // several lines may be several errors
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
