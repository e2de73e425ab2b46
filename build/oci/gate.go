package oci

import (
	"context"
	"sync"
)

// gate bounds how many uploads run at once. A registry that cannot keep up halves the number; each ten that succeed give
// one back.
type gate struct {
	mu      sync.Mutex
	freed   *sync.Cond
	most    int
	limit   int
	running int
	good    int // uploads that succeeded since the last change
}

// recovery is how many uploads have to succeed before one more runs at once.
const recovery = 10

func newGate(most int) *gate {
	g := &gate{most: most, limit: most}
	g.freed = sync.NewCond(&g.mu)
	return g
}

// enter waits for a place.
func (g *gate) enter(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.freed.Broadcast()
	})
	defer stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.running >= g.limit && ctx.Err() == nil {
		g.freed.Wait()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	g.running++
	return nil
}

// leave gives a place back.
func (g *gate) leave(succeeded bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if succeeded {
		g.good++
	}
	if g.good >= recovery && g.limit < g.most {
		g.limit, g.good = g.limit+1, 0
	}
	g.freed.Broadcast()
}

// halve leaves half of the places.
func (g *gate) halve() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit, g.good = max(1, g.limit/2), 0
}
