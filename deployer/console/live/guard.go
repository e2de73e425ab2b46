package live

import (
	"context"
	"time"
)

// Guard returns a context that ends when the API server does not answer, for a page that reads more than snapshots. Stop
// releases it, and returns the reason if it has ended for that.
func (f *Feed) Guard(ctx context.Context) (guarded context.Context, stop func() error) {
	guarded, end := context.WithCancelCause(ctx)
	watched := make(chan error, 1)
	go func() {
		err := f.awaitAbsence(guarded)
		if err != nil {
			_ = f.miss(err) // what was seen last is out of date
		}
		end(err)
		watched <- err
	}()
	return guarded, func() error {
		end(nil)
		return <-watched
	}
}

// awaitAbsence checks again and again whether the API server answers, and returns why it does not; nil when ctx ends first.
func (f *Feed) awaitAbsence(ctx context.Context) error {
	for pause := pingAfter; ; pause = pingInterval {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		if err := f.reach(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// LastRead returns when the cluster was last read, and the mark of that state for a page that waits for the next one. The mark
// is "" without a state that the user is allowed to see.
func (f *Feed) LastRead() (at time.Time, mark string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil || f.last.refused != nil {
		return time.Time{}, ""
	}
	return f.last.at, f.last.Mark()
}
