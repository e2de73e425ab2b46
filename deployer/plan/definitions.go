package plan

import (
	"context"

	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/engine"
)

// prepareDefinitions plans changes of CRDs and of their objects before anything is applied: CRDs lose a webhook that is removed, and objects are
// stored in another version where theirs is removed.
func (r *Run) prepareDefinitions(ctx context.Context, plan *engine.Plan, migrations []definitions.Migration) error {
	orphans, notices, err := r.Definitions.Orphans(ctx, plan)
	if err != nil {
		return err
	}
	r.Notice(notices...)
	for _, object := range orphans {
		r.Needs = append(r.Needs, definitions.MayMigrate(object)...)
	}
	for _, m := range migrations {
		r.Needs = append(r.Needs, definitions.MayMigrate(m.Definition)...)
	}
	r.Before = func(ctx context.Context) error {
		if err := r.Definitions.StandAlone(ctx, orphans); err != nil {
			return err
		}
		return r.Definitions.Migrate(ctx, migrations)
	}
	return nil
}
