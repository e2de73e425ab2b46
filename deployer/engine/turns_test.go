package engine

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(1)
		turns.take(0)
		var mu sync.Mutex
		var got []int
		var group sync.WaitGroup
		for i, rank := range []int{lastRank, 1, 3, 1, 2} {
			group.Go(func() {
				turns.take(rank)
				defer turns.give()
				mu.Lock()
				defer mu.Unlock()
				got = append(got, i)
			})
			synctest.Wait() // it waits for its turn
		}
		if len(got) > 0 {
			t.Fatalf("%v had a turn while there was none", got)
		}
		turns.give()
		group.Wait()
		if want := []int{2, 4, 1, 3, 0}; !slices.Equal(got, want) {
			t.Errorf("%v had their turns, want %v", got, want)
		}
		turns.take(0)
		turns.give()
	})
	var unlimited *turns
	unlimited.take(0)
	unlimited.take(0)
	unlimited.give()
}
