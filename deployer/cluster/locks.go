package cluster

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/schema/report"
)

// atOnce is the number of requests for locks that run at a time.
const atOnce = 8

// LockOf names the lock that protects what is deployed in a namespace; "" stands for what belongs to the whole cluster.
func LockOf(namespace string) string {
	if namespace == "" {
		return ClusterLock
	}
	return LockPrefix + namespace
}

// The names of locks: that of the cluster, and what those of namespaces begin with.
const (
	ClusterLock = "cluster"
	LockPrefix  = "env-"
)

// freedLeases are the Leases of locks that this process gave back, as they were written then: the next to take one of them need not read it. The
// zero value is ready to use.
type freedLeases struct {
	mu     sync.Mutex
	byName map[string]*unstructured.Unstructured
}

// maxFreed bounds the Leases that are kept.
const maxFreed = 1000

func (f *freedLeases) keep(lease *unstructured.Unstructured) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byName == nil || len(f.byName) >= maxFreed {
		f.byName = map[string]*unstructured.Unstructured{}
	}
	f.byName[lease.GetName()] = lease
}

// take returns the Lease of a lock once; nil if none is kept.
func (f *freedLeases) take(name string) *unstructured.Unstructured {
	f.mu.Lock()
	defer f.mu.Unlock()
	lease := f.byName[name]
	delete(f.byName, name)
	return lease
}

// Work reports whether a process holds a lock, according to its Lease.
type Work struct {
	Holder  string    // user@host; "" when no process holds the lock
	Renewed time.Time // when it was last written; zero when that is not known
}

// clockTolerance is for how long after the end of its Lease a holder still counts as alive: clocks of hosts differ.
const clockTolerance = time.Minute

// Work reads who holds a lock. A holder that has not renewed it for longer than it promised, by the clock of this host and with a minute
// for the difference between clocks, is none; nor is one whose process on this host has ended.
func (c *Cluster) Work(ctx context.Context, lock string) (Work, error) {
	lease, err := c.Get(ctx, LeaseKind, SystemNamespace, lock)
	if err != nil || lease == nil {
		return Work{}, err
	}
	w := Work{Holder: person(lease)}
	if hasEnded(process(lease)) {
		w.Holder = ""
	}
	text, _ := specOf(lease)["renewTime"].(string)
	if w.Renewed, err = time.Parse(time.RFC3339Nano, text); err != nil {
		return w, nil //nolint:nilerr // there are no signs that the holder has ended
	}
	if c.options.Now().Sub(w.Renewed) > promise(lease)+clockTolerance {
		w.Holder = ""
	}
	return w, nil
}

// Locks are several locks that one person holds. They are a [Guard].
type Locks []*Lock

// LockAll takes several locks, or none. While it waits for one it holds only locks with lower names, so that two callers never wait
// for each other; free locks are taken concurrently. Later ones are observed meanwhile: if a dead process holds many of them, their
// leases expire at the same time.
func (c *Cluster) LockAll(ctx context.Context, names []string, o LockOptions) (Locks, error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	watches := map[string]*observer{}
	for _, name := range names {
		watches[name] = newObserver()
	}
	var held Locks
	for len(names) > 0 {
		free, err := c.lockFree(ctx, names, o, watches)
		held, names = append(held, free...), names[len(free):]
		if err == nil && len(names) > 0 {
			waiting := o
			waiting.meanwhile = func(ctx context.Context) error { return c.watchLocks(ctx, names[1:], watches) }
			var lock *Lock
			if lock, err = c.lock(ctx, names[0], waiting, watches[names[0]]); err == nil {
				held, names = append(held, lock), names[1:]
			}
		}
		if err != nil {
			return nil, errors.Join(err, held.Release(ctx))
		}
	}
	return held, nil
}

// lockFree takes locks in order up to the first one that another process holds, and does not wait. The returned locks are
// held even when there is an error.
func (c *Cluster) lockFree(ctx context.Context, names []string, o LockOptions, watches map[string]*observer) (Locks, error) {
	o.free = true
	locks := make(Locks, len(names))
	var enough atomic.Bool
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, name := range names {
		group.Go(func() (err error) {
			if enough.Load() {
				return nil
			}
			locks[i], err = c.lock(ctx, name, o, watches[name]) // a lock is renewed as long as its context lasts, so this is not that of the group
			if err == nil {
				return nil
			}
			enough.Store(true)
			if errors.Is(err, errHeld) {
				return nil
			}
			return err
		})
	}
	err := group.Wait()
	taken := slices.Index(locks, nil)
	if taken < 0 {
		return locks, err
	}
	return locks[:taken], errors.Join(err, locks[taken:].Release(ctx))
}

// watchLocks reads locks that other processes may hold.
func (c *Cluster) watchLocks(ctx context.Context, names []string, watches map[string]*observer) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, name := range names {
		group.Go(func() error {
			lease, err := c.Get(ctx, LeaseKind, SystemNamespace, name)
			if err == nil {
				watches[name].look(lease)
			}
			return err
		})
	}
	return group.Wait()
}

// errHeld means that another process holds a lock that was to be taken only if it is free.
var errHeld = errors.New("another process has the lock")

// Check returns the error of the first of the locks that is no longer certainly ours.
func (l Locks) Check() error {
	for _, lock := range l {
		if err := lock.Check(); err != nil {
			return err
		}
	}
	return nil
}

// DiscardLocks discards the locks of the last [WithGuard] of a context, see [Lock.Discard].
func DiscardLocks(ctx context.Context) {
	all := guards(ctx)
	if len(all) == 0 {
		return
	}
	locks, _ := all[len(all)-1].(Locks)
	for _, lock := range locks {
		lock.Discard()
	}
}

// Release gives all locks back, like [Lock.Release]. Those that cannot be given back for as long as a lock lasts run out by themselves.
func (l Locks) Release(ctx context.Context) error {
	held := slices.DeleteFunc(slices.Clone(l), func(lock *Lock) bool { return lock == nil })
	if len(held) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), held[0].duration)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(atOnce)
	errs := make([]error, len(held))
	for i, lock := range held {
		group.Go(func() error {
			errs[i] = lock.release(ctx)
			return nil
		})
	}
	return errors.Join(group.Wait(), errors.Join(errs...))
}

// CheckLocks asks the API server whether it would store a Lease, and changes nothing. Where the user is not allowed to, or the
// cluster has no namespace of this tool, that is not known, and there is no error.
func (c *Cluster) CheckLocks(ctx context.Context) error {
	return c.CheckWrite(ctx, LeaseKind, SystemNamespace)
}

// CheckWrite asks the API server whether it would store an object of a kind in a namespace, and changes nothing. As with
// [Cluster.CheckLocks], what cannot be determined is not an error.
func (c *Cluster) CheckWrite(ctx context.Context, kind kube.GroupVersionKind, namespace string) error {
	_, err := c.Create(ctx, NewObject(kind, namespace, "check"), WriteOptions{DryRun: true})
	if code := report.CodeOf(err); code == report.Forbidden || code == report.NotFound || errors.Is(err, ErrExists) {
		return nil
	}
	return err
}

// Interceptor returns the name of the admission webhook or policy that has refused a request, or that did not answer, by the error of
// the request; "" for other errors.
func Interceptor(err error) string {
	status, refused := errors.AsType[*apierrors.StatusError](err)
	if !refused {
		return ""
	}
	if m := denied.FindStringSubmatch(status.ErrStatus.Message); m != nil {
		return cmp.Or(m[1], m[3])
	}
	if m := webhookOf(status.ErrStatus.Message); m != nil {
		return m[0]
	}
	return ""
}
