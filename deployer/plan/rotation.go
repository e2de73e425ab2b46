package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/render"
)

// restart makes the pods of the Solution start again that read passwords and certificates which its charts generate again. Notices name them,
// and what the user has to start again.
func (t *target) restart(parts []engine.Release) {
	rotations := render.Rotations{}
	for _, c := range t.charts {
		maps.Copy(rotations, c.Rotations)
	}
	var started, left []string
	for _, release := range append([]engine.Release{t.release}, parts...) {
		rolling, others := rotations.Restart(release.Objects, t.rotated)
		started, left = append(started, rolling...), append(left, others...)
	}
	if len(t.rotated) == 0 {
		return
	}
	slices.Sort(t.rotated)
	text := fmt.Sprintf("new values are generated for %s", strings.Join(t.rotated, ", "))
	if len(started) > 0 {
		text += fmt.Sprintf("; the pods of %s start again, as they read them", strings.Join(started, ", "))
	}
	t.notice(text)
	if len(left) > 0 {
		t.notice(fmt.Sprintf("%s: pods that read the old values keep them until you delete them", strings.Join(left, ", ")))
	}
	t.notice("restart workloads outside the Solution that read " + strings.Join(t.rotated, ", "))
}
