package plan

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/schema"
)

// TestHazardNames: documents can accept all that has an effect, and nothing else.
func TestHazardNames(t *testing.T) {
	want := slices.Sorted(maps.Keys(hazardPowers))
	want = append(want, HazardForeignImages)
	slices.Sort(want)
	if diff := cmp.Diff(want, schema.HazardNames()); diff != "" {
		t.Error(diff)
	}
}
