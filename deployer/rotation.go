package deployer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/render"
)

// restart makes the pods of a Solution in a namespace start again that read passwords and certificates which its charts have generated again.
// The notices name them, and what the user has to start again.
func (o *placement) restart(releases []engine.Release) (notices []string, err error) {
	rotations := render.Rotations{}
	for _, m := range o.memories {
		maps.Copy(rotations, m.Rotations)
	}
	var started, left []string
	for _, release := range releases {
		rolling, others, err := rotations.Restart(release.Objects, o.rotated)
		if err != nil {
			return nil, err
		}
		started, left = append(started, rolling...), append(left, others...)
	}
	if len(o.rotated) == 0 {
		return nil, nil
	}
	slices.Sort(o.rotated)
	text := fmt.Sprintf("new values are generated for %s", strings.Join(o.rotated, ", "))
	if len(started) > 0 {
		text += fmt.Sprintf("; the pods of %s start again, as they read them", strings.Join(started, ", "))
	}
	notices = append(notices, text)
	if len(left) > 0 {
		notices = append(notices, fmt.Sprintf("%s: pods that read the old values keep them until you delete them", strings.Join(left, ", ")))
	}
	return append(notices, "restart workloads outside the Solution that read "+strings.Join(o.rotated, ", ")), nil
}
