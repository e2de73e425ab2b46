package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/schema/report"
)

// LockOptions name the holder of a lock and limit its waiting.
type LockOptions struct {
	Identity string        // for other people: user@host; a random part is added, so that no two processes share one
	Wait     time.Duration // how long to wait for another holder to finish
	Duration time.Duration // for how long a holder that is silent keeps the lock, in whole seconds; 0 means 15
	Sink     report.Sink   // receives the name of the holder that is waited for; nil is that of the cluster
	// Ended, if it is set, is asked about a holder, user@host: a process that has certainly ended keeps no one waiting. Processes of
	// this host need no such question: see [Lock].
	Ended func(ctx context.Context, holder string) bool
	free  bool // take it only when no process holds it
	// meanwhile is called before each poll of a process that waits.
	meanwhile func(context.Context) error
}

// leaseDuration is for how long a holder that is silent keeps the lock.
const leaseDuration = 15 * time.Second

// pollInterval is the time between two polls of a process that waits.
const pollInterval = 500 * time.Millisecond

// settleTime is for how long a process must have ended before its lock is taken: its last requests have been carried out by then, or were
// given up by the API server, because their connection was closed.
const settleTime = pollInterval

// Lock prevents two operations from changing the same things at once. It is a Lease in [SystemNamespace] that is renewed in the
// background until it is released or its context ends.
//
// A process that was stopped, or whose machine slept, may resume after another one took the lock. Check finds that before a write:
// the lease has expired on the boot clock, which continues during sleep. The Lease names the process of its holder, so a holder
// on this host that has ended is detected at once.
//
// A lock that another process has held since stays lost. Otherwise the next renewal restores it: the API server may have been
// unavailable for longer than the lease lasts.
type Lock struct {
	cluster  *Cluster
	name     string
	identity string
	duration time.Duration
	token    int64

	deadline atomic.Int64 // on the boot clock, in nanoseconds: until then the lock is certainly ours
	lost     atomic.Bool  // another process has held it
	stop     context.CancelFunc
	stopped  chan struct{}
	released bool
	discard  bool                       // Release deletes the Lease
	lease    *unstructured.Unstructured // as last written; belongs to renew until stopped is closed
}

// Lock takes the lock of a name, such as "env-demo". It waits for another holder; one that does not renew the lock for the
// duration of its lease, by the clock of this process, or that has ended, has lost it. The error has the code Locked and
// names the holder: it comes when the time to wait is over and the holder has given a sign of life.
func (c *Cluster) Lock(ctx context.Context, name string, o LockOptions) (*Lock, error) {
	return c.lock(ctx, name, o, newObserver())
}

// lock takes a lock that was watched before, perhaps.
func (c *Cluster) lock(ctx context.Context, name string, o LockOptions, watch *observer) (*Lock, error) {
	if o.Sink == nil {
		o.Sink = c.options.Sink
	}
	l := &Lock{
		cluster: c, name: name, identity: strings.TrimSpace(o.Identity + " " + rand.Text()[:8] + " " + thisProcess()), duration: cmp.Or(o.Duration, leaseDuration),
		stopped: make(chan struct{}),
	}
	if err := l.acquire(ctx, o, watch); err != nil {
		return nil, err
	}
	ctx, l.stop = context.WithCancel(ctx)
	go l.renew(ctx)
	return l, nil
}

// Check returns an error with the code Interrupted when the lock is no longer certainly ours. See [WithGuard].
func (l *Lock) Check() error {
	if int64(bootTime()) < l.deadline.Load() {
		return nil
	}
	reason := errSilent
	if l.lost.Load() {
		reason = errTaken
	}
	return report.Errorf(report.Interrupted, "the lock %q %w", l.name, reason).WithHint("run the same command again: it finishes the work")
}

var (
	// errSilent is temporary: the lock may be renewed before another process takes it.
	errSilent = errors.New("was not renewed in time; another operation may be running now")
	errTaken  = errors.New("was taken by another process")
)

// Token is a number that grows whenever the lock changes hands: a smaller one belongs to a holder that has lost the lock. It starts again when the Lease was deleted, see [Lock.Discard].
func (l *Lock) Token() int64 { return l.token }

// Name is the name of the lock.
func (l *Lock) Name() string { return l.name }

// Discard makes Release delete the Lease, because what the lock protects is gone. A process that waits for the lock creates
// the Lease again. Without the permission to delete it, the Lease stays and is free.
func (l *Lock) Discard() { l.discard = true }

// Release gives the lock back and stops renewing it. It works even when ctx has ended; it may be called twice. A lock that cannot be
// given back in time, because the API server does not answer, runs out by itself.
func (l *Lock) Release(ctx context.Context) error { return l.release(context.WithoutCancel(ctx)) }

func (l *Lock) release(ctx context.Context) error {
	l.stop()
	<-l.stopped
	certain := l.deadline.Swap(0) > int64(bootTime())
	if l.released || l.lost.Load() {
		return nil
	}
	l.released = true
	ctx, cancel := context.WithTimeout(ctx, l.margin())
	defer cancel()
	if err := l.giveBack(ctx); certain && ctx.Err() == nil {
		return err
	}
	return nil // it runs out by itself
}

// giveBack removes the holder from the Lease, or deletes the Lease, while this process holds it.
func (l *Lock) giveBack(ctx context.Context) error {
	for lease := l.lease; l.holds(lease); {
		err := l.free(ctx, lease)
		if !errors.Is(err, ErrChanged) {
			return err
		}
		// Changed by another process, or by a renewal whose answer was not awaited: then the lock is still ours.
		if lease, err = l.cluster.Get(ctx, LeaseKind, SystemNamespace, l.name); err != nil {
			return err
		}
	}
	return nil
}

// free deletes the Lease that was read where it is not needed any more, or else removes its holder. Both fail with [ErrChanged]
// when it is no longer in that state.
func (l *Lock) free(ctx context.Context, lease *unstructured.Unstructured) error {
	if l.discard {
		r, err := l.cluster.deleteRequest(ctx, lease, DeleteOptions{})
		if err != nil {
			return err
		}
		r.write = false // see write
		if _, err = l.cluster.deleteObject(ctx, r); report.CodeOf(err) != report.Forbidden {
			return err
		}
	}
	spec := specOf(lease)
	spec["holderIdentity"] = ""
	freed, err := l.write(ctx, lease, spec)
	if err == nil {
		l.cluster.freed.keep(freed)
	}
	return err
}

// margin is the time before the end of its lease at which a holder stops writing: for a request that is on its way, and
// for clocks that do not run equally fast.
func (l *Lock) margin() time.Duration { return l.duration / 3 }

// acquire takes the lock, or waits for its holder as long as the options allow.
func (l *Lock) acquire(ctx context.Context, o LockOptions, watch *observer) error {
	defer func() {
		if watch.announced {
			o.Sink.Emit(report.Event{Step: "lock", Name: l.name, State: report.Done})
		}
	}()
	if lease := l.cluster.freed.take(l.name); lease != nil { // changed only if it is still as this process left it
		if err := l.take(ctx, lease); err == nil || ctx.Err() != nil || report.CodeOf(err) == report.Unavailable {
			return err
		}
	}
	for {
		lease, err := l.cluster.Get(ctx, LeaseKind, SystemNamespace, l.name)
		if err != nil {
			return err
		}
		watch.look(lease)
		switch {
		case lease == nil || holder(lease) == "" || l.holds(lease) || watch.silence() > promise(lease) || watch.settled() || o.Ended != nil && o.Ended(ctx, person(lease)):
			err = l.take(ctx, lease)
			if err == nil || !errors.Is(err, ErrChanged) && !errors.Is(err, ErrExists) {
				return err
			}
			continue // another process was quicker
		case o.free:
			return errHeld
		case watch.alive && watch.ended == 0 && bootTime()-watch.started >= o.Wait:
			return l.locked(lease)
		}
		watch.announce(o.Sink, l.name, lease)
		if o.meanwhile != nil {
			err = o.meanwhile(ctx)
		}
		if err == nil {
			err = Sleep(ctx, pollInterval)
		}
		if err != nil {
			return fmt.Errorf("wait for the lock %q: %w", l.name, err)
		}
	}
}

// holds reports whether a Lease that was read names this process. It does not show when it was written, if the answer to that attempt was lost, and
// others count from then on. So the Lease is written again before the lock counts as ours.
func (l *Lock) holds(lease *unstructured.Unstructured) bool {
	return lease != nil && holder(lease) == l.identity
}

// take makes the lock ours: it creates the Lease or changes the one that was read.
func (l *Lock) take(ctx context.Context, lease *unstructured.Unstructured) error {
	before := bootTime()
	now := l.cluster.options.Now().UTC().Format(metav1.RFC3339Micro)
	changes := transitions(lease)
	if !l.holds(lease) {
		changes++
	}
	spec := map[string]any{
		"holderIdentity": l.identity, "leaseDurationSeconds": int64(l.duration / time.Second),
		"acquireTime": now, "renewTime": now, "leaseTransitions": changes,
	}
	var err error
	if lease, err = l.write(ctx, lease, spec); err != nil {
		return err
	}
	if !l.holds(lease) {
		return ErrChanged // created by another process while our answer was lost
	}
	l.hold(lease, before)
	return nil
}

// hold takes note that the lock is ours, as the lease was written at a time that is not before the given one.
func (l *Lock) hold(lease *unstructured.Unstructured, since time.Duration) {
	l.lease, l.token = lease, transitions(lease)
	l.deadline.Store(int64(since + l.duration - l.margin()))
}

// renew extends the Lease until ctx ends or the lock is lost.
func (l *Lock) renew(ctx context.Context) {
	defer close(l.stopped)
	for Sleep(ctx, l.duration/5) == nil {
		before := bootTime()
		lease, err := l.renewOnce(ctx, max(time.Duration(l.deadline.Load())-before, l.margin()))
		switch {
		case err == nil:
			l.lease = lease
			l.deadline.Store(int64(before + l.duration - l.margin()))
		case errors.Is(err, ErrChanged):
			l.lost.Store(true)
			l.deadline.Store(0)
			return
		}
	}
}

func (l *Lock) renewOnce(ctx context.Context, left time.Duration) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	select {
	case l.cluster.renewals <- struct{}{}:
		defer func() { <-l.cluster.renewals }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for lease := l.lease; ; {
		spec := specOf(lease)
		spec["renewTime"] = l.cluster.options.Now().UTC().Format(metav1.RFC3339Micro)
		renewed, err := l.write(ctx, lease, spec)
		if !errors.Is(err, ErrChanged) {
			return renewed, err
		}
		read, readErr := l.cluster.Get(ctx, LeaseKind, SystemNamespace, l.name)
		if readErr != nil {
			return nil, readErr
		}
		if !l.holds(read) {
			return nil, err
		}
		lease = read // changed by an attempt whose answer was lost
	}
}

// locked is the error that names the holder.
func (l *Lock) locked(lease *unstructured.Unstructured) error {
	spec := specOf(lease)
	since, _ := spec["acquireTime"].(string)
	if t, err := time.Parse(time.RFC3339Nano, since); err == nil {
		since = t.UTC().Format(time.RFC3339)
	}
	return report.Errorf(report.Locked, "%s is at work since %s; nothing was changed", person(lease), since).
		WithHint("wait for them with --lock-wait 5m")
}

// write stores a spec in the Lease that was read, or creates the Lease. It is neither guarded, being the guard itself, nor
// a change of what people deploy.
func (l *Lock) write(ctx context.Context, lease *unstructured.Unstructured, spec map[string]any) (*unstructured.Unstructured, error) {
	verb, method := "update", http.MethodPut
	if lease == nil {
		if err := l.cluster.ensureSystemNamespace(ctx); err != nil {
			return nil, err
		}
		verb, method = "create", http.MethodPost
		lease = NewObject(LeaseKind, SystemNamespace, l.name)
	}
	lease = lease.DeepCopy()
	lease.Object["spec"] = spec
	r, err := l.cluster.writeRequest(ctx, verb, method, lease, WriteOptions{})
	if err != nil {
		return nil, err
	}
	r.write = false
	written, _, err := l.cluster.exchange(ctx, r)
	return written, err
}

// ensureSystemNamespace creates the namespace of the tool if it is not there.
func (c *Cluster) ensureSystemNamespace(ctx context.Context) error {
	found, err := c.Get(ctx, NamespaceKind, "", SystemNamespace)
	if err != nil || found != nil {
		return err
	}
	if _, err = c.Create(ctx, NewObject(NamespaceKind, "", SystemNamespace), WriteOptions{}); errors.Is(err, ErrExists) {
		return nil
	}
	return err
}

// observer watches a Lease for renewals. It uses only its own clock: the times in the Lease come from another machine.
type observer struct {
	started   time.Duration
	version   string        // of the lease when it was last looked at
	since     time.Duration // when that version was first seen
	alive     bool          // it has changed while we were looking
	ended     time.Duration // when the process of its holder was first seen to have ended; 0 while it was not
	announced bool
}

func newObserver() *observer { return &observer{started: bootTime()} }

func (o *observer) look(lease *unstructured.Unstructured) {
	if lease == nil {
		o.version, o.ended = "", 0
		return
	}
	version := lease.GetResourceVersion()
	if ended := hasEnded(process(lease)); !ended {
		o.ended = 0
	} else if o.ended == 0 || version != o.version {
		o.ended = bootTime()
	}
	if version == o.version {
		return
	}
	o.alive = o.version != ""
	o.version, o.since = version, bootTime()
}

func (o *observer) silence() time.Duration { return bootTime() - o.since }

// settled reports whether the process of the holder has ended, and its last requests with it.
func (o *observer) settled() bool { return o.ended > 0 && bootTime()-o.ended >= settleTime }

func (o *observer) announce(sink report.Sink, name string, lease *unstructured.Unstructured) {
	state := report.Running
	if !o.announced {
		o.announced, state = true, report.Started
	}
	note := "held by " + person(lease)
	switch {
	case o.ended > 0:
		note += ", whose process has ended"
	case o.silence() > promise(lease)/2:
		note += ", who gives no sign of life"
	}
	sink.Emit(report.Event{Step: "lock", Name: name, State: state, Note: note})
}

// specOf returns a copy of the spec of a Lease.
func specOf(lease *unstructured.Unstructured) map[string]any {
	spec, _, _ := unstructured.NestedMap(lease.Object, "spec") // one of another type is as good as none
	if spec == nil {
		spec = map[string]any{}
	}
	return spec
}

func holder(lease *unstructured.Unstructured) string {
	identity, _ := specOf(lease)["holderIdentity"].(string)
	return identity
}

// person is the holder without the part that is only for programs.
func person(lease *unstructured.Unstructured) string {
	name, _, _ := strings.Cut(holder(lease), " ")
	return name
}

// process is the part of the holder for [hasEnded].
func process(lease *unstructured.Unstructured) string {
	all := holder(lease)
	return all[strings.LastIndexByte(all, ' ')+1:]
}

func transitions(lease *unstructured.Unstructured) int64 {
	if lease == nil {
		return 0
	}
	n, _ := specOf(lease)["leaseTransitions"].(int64)
	return n
}

// promise is for how long the holder may be silent.
func promise(lease *unstructured.Unstructured) time.Duration {
	seconds, _ := specOf(lease)["leaseDurationSeconds"].(int64)
	if seconds <= 0 {
		return leaseDuration
	}
	return time.Duration(seconds) * time.Second
}
