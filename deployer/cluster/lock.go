package cluster

import (
	"context"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

// LockOptions says who takes a lock and how patient they are.
type LockOptions struct {
	Identity string        // for other people: user@host; a random part is added, so that two processes never share one
	Wait     time.Duration // for how long to wait for somebody else to finish; 0 does not wait
	Sink     report.Sink   // told who is waited for; nil is that of the cluster
}

// Lock keeps two people from changing the same things at once. It is a Lease in [SystemNamespace] that is renewed in the
// background until it is released or its context ends.
type Lock struct{}

// Lock takes the lock of a name, such as "env-demo". Somebody else who holds it is waited for; when they stop renewing it,
// for as long as they promised and as seen by this process, it is taken over. The error has the code Locked and names the
// holder.
func (c *Cluster) Lock(ctx context.Context, name string, o LockOptions) (*Lock, error) {
	panic("TODO")
}

// Check returns an error with the code Interrupted when the lock is no longer certainly ours. See [WithGuard].
func (l *Lock) Check() error { panic("TODO") }

// Token is a number that grows whenever the lock changes hands: what was written with a smaller one is from somebody who
// lost the lock.
func (l *Lock) Token() int64 { panic("TODO") }

// Release gives the lock back and stops renewing it. It works even when ctx has ended; it may be called twice.
func (l *Lock) Release(ctx context.Context) error { panic("TODO") }
