package cluster

import "context"

// Guard is asked before every write. A [Lock] is one.
type Guard interface {
	// Check returns an error when nothing may be written any more.
	Check() error
}

type guardKey struct{}

// WithGuard makes every write with the returned context, or one made from it, ask the guard first.
func WithGuard(ctx context.Context, g Guard) context.Context {
	return context.WithValue(ctx, guardKey{}, g)
}

// check asks the guard of the context, if it has one.
func check(ctx context.Context) error {
	if g, ok := ctx.Value(guardKey{}).(Guard); ok {
		return g.Check()
	}
	return nil
}
