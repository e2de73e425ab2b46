package engine

import (
	"slices"
	"sync"
)

// lastRank is that of writes for which no other run waits.
const lastRank = -1

// turns lets a number of goroutines work at once. Of those that wait, the one with the highest rank is next; of the same rank, the one that
// came first. A nil value does not limit anything.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting []turn // in the order in which they came
}

type turn struct {
	rank  int
	begin chan struct{}
}

func newTurns(n int) *turns { return &turns{free: n} }

// take waits for a turn. It does not end with a context: those that have a turn give it back soon then.
func (t *turns) take(rank int) {
	if t == nil {
		return
	}
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return
	}
	next := turn{rank, make(chan struct{})}
	t.waiting = append(t.waiting, next)
	t.mu.Unlock()
	<-next.begin
}

// give passes the turn on.
func (t *turns) give() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.free++
		return
	}
	at := 0
	for i, w := range t.waiting {
		if w.rank > t.waiting[at].rank {
			at = i
		}
	}
	close(t.waiting[at].begin)
	t.waiting = slices.Delete(t.waiting, at, at+1)
}
