package deployer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/render"
)

// restart makes the pods of a Solution in a namespace start anew that read passwords and certificates which its charts have drawn anew.
// The notices name them, and what the user has to start anew.
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
	text := fmt.Sprintf("new values are drawn for %s", strings.Join(o.rotated, ", "))
	if len(started) > 0 {
		text += fmt.Sprintf("; the pods of %s start anew, as they read them", strings.Join(started, ", "))
	}
	notices = append(notices, text)
	if len(left) > 0 {
		notices = append(notices, fmt.Sprintf("%s: pods that read the old values keep them until you delete them", strings.Join(left, ", ")))
	}
	return append(notices, "what is not part of the Solution and reads "+strings.Join(o.rotated, ", ")+" has to be started anew by you"), nil
}
