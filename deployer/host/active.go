package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
)

// Active decides which versions are active: in a cluster and, on a host that has it, in MetalK8s' configuration.
type Active struct {
	Verbs         ActiveVerbs
	Configuration string // MetalK8s' file, such as [store.DefaultConfiguration]
}

// ActiveVerbs activate and deactivate Solutions in a cluster. [deployer.Deployer] implements them.
type ActiveVerbs interface {
	Activate(ctx context.Context, o deployer.ActivateOptions) (*schema.Operation, error)
	Deactivate(ctx context.Context, o deployer.DeactivateOptions) (*schema.Operation, error)
}

// Activate makes an imported version the active one. With "latest", the configuration requests it as well.
func (a Active) Activate(ctx context.Context, o deployer.ActivateOptions) (*schema.Operation, error) {
	work := func() (*schema.Operation, error) { return a.Verbs.Activate(ctx, o) }
	return a.around(ctx, o.DryRun, work, func(active map[string]string, done *schema.Operation) {
		active[done.Solution] = done.Version
		if o.Version == schema.ActiveLatest {
			active[done.Solution] = schema.ActiveLatest
		}
	})
}

// Deactivate makes no version of a Solution the active one.
func (a Active) Deactivate(ctx context.Context, o deployer.DeactivateOptions) (*schema.Operation, error) {
	work := func() (*schema.Operation, error) { return a.Verbs.Deactivate(ctx, o) }
	return a.around(ctx, o.DryRun, work, func(active map[string]string, _ *schema.Operation) { delete(active, o.Solution) })
}

// around does the work between a look at the configuration and the change of it.
func (a Active) around(ctx context.Context, dryRun bool, work func() (*schema.Operation, error), change func(map[string]string, *schema.Operation)) (*schema.Operation, error) {
	if _, err := os.Lstat(a.Configuration); dryRun || errors.Is(err, fs.ErrNotExist) {
		return work()
	}
	configuration := &store.Configuration{Path: a.Configuration, Identify: archive.Identify}
	if err := configuration.Check(); err != nil {
		return nil, err
	}
	done, err := work()
	if err != nil {
		return nil, err
	}
	edited, err := configuration.Edit(ctx, func(c *schema.SolutionsConfiguration) { change(c.Active, done) })
	if err != nil {
		return nil, fmt.Errorf("the cluster is changed, but not its configuration: %w", err)
	}
	done.Notices = append(done.Notices, edited.Notes...)
	return done, nil
}
