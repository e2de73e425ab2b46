package lint

import (
	"context"
	"sync"

	"github.com/solutionctl/solutionctl/lint/target"
)

// subject is a target that rules check concurrently, with their shared results.
type subject struct {
	*target.Target
	deep    bool     // read every blob
	against *subject // the older version, or nil; rules of GroupUpgrade are for subjects with one
	facts   sync.Map // name of a fact → func() T
}

func newSubject(t *target.Target, o Options) *subject {
	s := &subject{Target: t, deep: o.Deep}
	if o.Against != nil {
		s.against = &subject{Target: o.Against}
	}
	return s
}

// fact is an answer that several rules need about a subject. It is found out once, when it is first asked for.
func fact[T any](find func(context.Context, *subject) T) func(context.Context, *subject) T {
	name := new(byte)
	return func(ctx context.Context, s *subject) T {
		value, _ := s.facts.LoadOrStore(name, sync.OnceValue(func() T { return find(ctx, s) }))
		return value.(func() T)() // only this function stores under this name
	}
}
