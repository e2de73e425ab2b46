//go:build linux

package faults_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/e2e/faults"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{FakeNodes: 1, ReadyAtOnce: true})
}

func build(t *testing.T, sabotage *faults.Sabotage) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "solutionctl")
	if err := faults.Build(t.Context(), "../../..", program, sabotage); err != nil {
		t.Fatal(err)
	}
	return program
}

// TestFaults kills the short verbs at some of their steps; "make faults" kills every verb at every step. Then it does the
// same to builds that have a fault on purpose, which must be found.
func TestFaults(t *testing.T) {
	const seed = 1
	lane := faults.SharedLane(t)
	for _, verb := range faults.Verbs {
		if verb.Short > 0 {
			t.Run(verb.Name, func(t *testing.T) { kill(t, lane, verb, seed) })
		}
	}
	for _, sabotage := range faults.Sabotages {
		t.Run(sabotage.Name, func(t *testing.T) {
			testcluster.Long(t, "nothing: what finds faults is proven by 'make check' and 'make faults'")
			lane.Use(build(t, sabotage))
			t.Cleanup(func() { lane.Use(filepath.Join(testcluster.Shared(t).Dir, "solutionctl")) })
			found, err := lane.Finds(t.Context(), sabotage)
			if err != nil {
				t.Fatal(err)
			}
			if found == "" {
				t.Fatalf("no kill of %q finds that %s", sabotage.Verb, sabotage.Fault)
			}
			t.Log(found)
		})
	}
}

func kill(t *testing.T, lane *faults.Lane, verb *faults.Verb, seed uint64) {
	t.Helper()
	each, most := 3, math.MaxInt // of its steps, with the same command afterwards
	if testing.Short() {
		each, most = 1, verb.Short
	}
	clean, err := lane.Clean(t.Context(), verb)
	if err != nil {
		t.Fatal(err)
	}
	tried, outcomes := map[faults.Then]int{}, map[faults.Outcome]int{}
	for _, point := range clean.Ordered(verb, seed) {
		tried[point.Then]++
		if tried[point.Then] > each || point.Then != faults.Again && tried[point.Then] > 1 || outcomes[faults.Good]+outcomes[faults.Bad] == most {
			continue
		}
		result, err := lane.Kill(t.Context(), verb, point)
		if err != nil {
			t.Fatalf("%+v: %v", point, err)
		}
		outcomes[result.Outcome]++
		switch result.Outcome {
		case faults.Bad:
			t.Errorf("%s\n%s", result, result.Detail)
		case faults.Unreached: // the run had fewer steps this time: the next point takes the place of this one
			if tried[point.Then]--; outcomes[faults.Unreached] > 3 {
				t.Fatalf("%d runs were not killed, the last one at %+v", outcomes[faults.Unreached], point)
			}
		}
	}
	if outcomes[faults.Good] == 0 {
		t.Errorf("no kill proves anything: %v of %d points", outcomes, len(clean.Points(verb)))
	}
}
