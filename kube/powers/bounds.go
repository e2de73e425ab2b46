package powers

import (
	"github.com/solutionctl/solutionctl/schema"
)

// maxWork bounds what is judged for one Solution. A unit is one permission of one subject, or one kind of request that a
// webhook is called for; the largest public operators have less than 10,000. Judging all of it takes about a second.
const maxWork = 200_000

// What else costs as much as several permissions.
const (
	workOfPower = 20
	workOfPod   = 20
)

// spend counts work before it is done, and reports whether it is to be done.
func (j *judgement) spend(on schema.ObjectRef, work int) bool {
	if j.tooLarge == nil && work > maxWork-j.work {
		j.tooLarge = &on
	}
	j.work += min(work, maxWork)
	return j.tooLarge == nil
}

// result returns the powers that were found. What was too large to be judged is refused, whatever else was found in it.
func (j *judgement) result() []schema.Power {
	if j.tooLarge == nil {
		return sorted(j.powers)
	}
	return []schema.Power{{
		Name: schema.PowerAllRights, Reach: schema.ReachCluster, Need: schema.NeedRefused, Object: *j.tooLarge,
		Why: "do more than can be reviewed", Effects: []string{"too large"},
	}}
}
