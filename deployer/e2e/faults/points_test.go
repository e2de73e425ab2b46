//go:build linux

package faults

import (
	"fmt"
	"slices"
	"testing"
)

// TestSample: a sample has points of every rank, is the same for a seed, and is part of what a full run begins with.
func TestSample(t *testing.T) {
	verb := &Verb{Name: "upgrade", back: []string{"rollback"}}
	clean := &Clean{Files: 3}
	for n := range 30 {
		method := "GET"
		if n%3 == 0 {
			method = "PATCH"
		}
		clean.Calls = append(clean.Calls, fmt.Sprintf("%s /api/v1/namespaces/demo/configmaps/%d", method, n))
	}
	all := clean.Ordered(verb, 1)
	for _, n := range []int{1, 4, 30, len(all) - 1} {
		sample := clean.Sample(verb, 1, n)
		if len(sample) != n || !slices.Equal(sample, clean.Sample(verb, 1, n)) {
			t.Errorf("%d points: got %d", n, len(sample))
		}
		seen, ranks := map[Point]bool{}, map[int]int{}
		for _, p := range sample {
			if seen[p] || !slices.Contains(all, p) {
				t.Errorf("%+v is there twice, or is no point", p)
			}
			seen[p] = true
			ranks[clean.Rank(p)]++
		}
		if n == 30 && (ranks[0] < 15 || ranks[1] < 7 || ranks[2] < 3 || ranks[3] < 3) {
			t.Errorf("of the ranks there are %v", ranks)
		}
	}
	if slices.Equal(clean.Sample(verb, 1, 30), clean.Sample(verb, 2, 30)) {
		t.Error("the seed makes no difference")
	}
	if got := clean.Sample(verb, 1, 0); !slices.Equal(got, all) {
		t.Errorf("0 is %d of %d points", len(got), len(all))
	}
}
