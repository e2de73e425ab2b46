package plan

import (
	"context"
	"fmt"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/preflight"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// checkCluster adds to a plan whether what it deploys can run in the cluster. It asks nothing for a plan that changes nothing, and refuses
// nothing.
func (r *Run) checkCluster(ctx context.Context) error {
	var objects []engine.Object
	changes := false
	for _, p := range r.Plans {
		changes = changes || !p.Empty()
		if p.Release.Version != "" {
			objects = append(objects, p.Objects()...)
		}
	}
	if !changes || len(objects) == 0 {
		return nil
	}
	if version, err := r.Cluster.Version(ctx); err == nil {
		r.Preflight = append(r.Preflight, preflight.Kubernetes(version))
	}
	r.Preflight = append(r.Preflight, r.images...)
	more, err := preflight.Examine(ctx, r.Cluster, preflight.LoadOf(objects))
	r.Preflight = append(r.Preflight, more...)
	return err
}

// imagesVerdict is the check for the answers of the registry.
func imagesVerdict(answers []records.Answer, wrong, silent []string) schema.PreflightCheck {
	check := schema.PreflightCheck{Name: schema.PreflightImages, Result: schema.PreflightPass}
	switch bad := append(append([]string{}, wrong...), silent...); {
	case len(bad) == 0:
		check.Message = fmt.Sprintf("%d of %d endpoints serve the images", len(answers), len(answers))
	default:
		check.Result = schema.PreflightWarning
		check.Message = fmt.Sprintf("%d of %d endpoints serve the images: %s", len(answers)-len(bad), len(answers), strings.Join(bad, "; "))
		check.Hint = report.Run("deploy doctor").String()
	}
	return check
}
