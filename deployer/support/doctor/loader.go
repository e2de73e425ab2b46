package doctor

import (
	"github.com/solutionctl/solutionctl/deployer/loader"
	"github.com/solutionctl/solutionctl/schema"
)

// loader checks the last run of the loader, its objects, and repairs.
func (x *examination) loader() {
	now := x.Now().Add(x.server)
	state, err := loader.ReadState(x.ctx, x.Deployer.Cluster, now)
	if err != nil {
		x.failed("loader", "run", err)
		x.unread("loader", "repairs", err)
		x.unread("loader", "image", err)
		return
	}
	if state.IsUnused() {
		x.skip("loader", "run", "the loader has never run on this cluster")
		return
	}
	found, err := state.Examine(x.ctx, x.Deployer, now)
	if err != nil {
		x.failed("loader", "image", err)
	}
	for _, one := range found {
		result := schema.CheckWarning
		if one.Problem {
			result = schema.CheckProblem
		}
		x.add(result, "loader", one.About, one.What, one.Cure)
	}
	if len(found) == 0 && err == nil {
		x.ok("loader", "run", "the last run of the loader succeeded or is in progress, and so are repairs")
	}
}
