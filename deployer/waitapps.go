package deployer

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
)

// awaitInstances waits until the custom resources of the changed Solutions are ready in the namespaces of an operation.
func awaitInstances(ctx context.Context, d *Deployer, done *schema.Operation, timeout time.Duration) error {
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return err
	}
	var objects []schema.ObjectRef
	for _, part := range done.Parts {
		if part.Namespace == "" {
			continue
		}
		found, _, err := catalog.Find(cmp.Or(part.Solution, done.Solution), cmp.Or(part.Version, done.Version))
		if err != nil {
			return err
		}
		p, err := d.Records.Payload(ctx, found)
		if err != nil {
			return err
		}
		own, err := render.Definitions(p)
		if err != nil {
			return err
		}
		var names []string
		for _, definition := range own {
			names = append(names, definition.GetName())
		}
		live, err := d.Definitions.Existing(ctx, names...)
		if err != nil {
			return err
		}
		list, err := d.Definitions.Instances(ctx, live, part.Namespace)
		if err != nil {
			return err
		}
		for _, one := range list {
			objects = append(objects, records.RefOf(one.Kind, one.Object))
		}
	}
	if len(objects) == 0 {
		return nil
	}
	if err := d.Records.Engine.Await(ctx, objects, cmp.Or(timeout, records.DefaultTimeout)); err != nil {
		return fmt.Errorf("the Solution is deployed, but not all of its custom resources are ready: %w", err)
	}
	return nil
}
