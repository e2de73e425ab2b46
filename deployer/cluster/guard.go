package cluster

import (
	"context"
	"slices"
)

// Guard is asked before every write. A [Lock] is one.
type Guard interface {
	// Check returns an error when nothing may be written any more.
	Check() error
}

type guardKey struct{}

// WithGuard makes every write with the returned context, or one made from it, ask the guard first, and those that the
// context has already.
func WithGuard(ctx context.Context, g Guard) context.Context {
	return context.WithValue(ctx, guardKey{}, append(slices.Clip(guards(ctx)), g))
}

func guards(ctx context.Context) []Guard {
	all, _ := ctx.Value(guardKey{}).([]Guard)
	return all
}

// check asks the guards of the context.
func check(ctx context.Context) error {
	for _, g := range guards(ctx) {
		if err := g.Check(); err != nil {
			return err
		}
	}
	return nil
}
