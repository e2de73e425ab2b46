package deployer

import (
	"context"

	"github.com/solutionctl/solutionctl/schema"
)

// Imports lists the imported versions, as [Deployer.Catalog] knows them.
func (d *Deployer) Imports(ctx context.Context) ([]schema.Import, error) {
	catalog, err := d.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	return catalog.Imports(), nil
}
