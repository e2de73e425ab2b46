package engine

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
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

// TestRanks: the rank of a run is the length of the longest chain that waits for it, in whatever order the plans come.
func TestRanks(t *testing.T) {
	t.Parallel()
	needs := map[string][]string{"web": {"api", "db"}, "api": {"db", "cache"}, "db": {"disk"}, "cache": nil, "disk": nil, "other": nil, "report": {"disk"}}
	want := map[string]int{"web": 0, "api": 1, "db": 2, "cache": 2, "disk": 3, "other": 0, "report": 0}
	for range 10 {
		var plans []*Plan
		for name := range needs { // in any order
			p := &Plan{Resumes: &schema.DeploymentRevision{}, state: &record.State{}, Release: Release{Key: record.Key{Name: name}}}
			for _, need := range needs[name] {
				p.Release.Needs = append(p.Release.Needs, Need{Key: record.Key{Name: need}})
			}
			plans = append(plans, p)
		}
		runs, _, err := new(Engine).queue(plans, ApplyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, r := range runs {
			got[r.plan.Release.Name] = r.rank
		}
		if !maps.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}
