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

// Active carries out requests. Which versions are active then is noted in MetalK8s' configuration as well, on a host that has it.
type Active struct {
	Verbs         Performer
	Configuration string // MetalK8s' file, such as [store.DefaultConfiguration]; "" where no host has one
}

// Performer carries out requests in a cluster. [deployer.Deployer] implements it.
type Performer interface {
	Perform(ctx context.Context, r deployer.Request) (*schema.Operation, error)
}

// Perform carries out a request. After an activation of "latest" the configuration requests the latest version as well.
func (a Active) Perform(ctx context.Context, r deployer.Request) (*schema.Operation, error) {
	work := func() (*schema.Operation, error) { return a.Verbs.Perform(ctx, r) }
	switch r.Verb {
	case schema.VerbActivate:
		return a.around(ctx, r.DryRun, work, func(active map[string]string, done *schema.Operation) {
			active[done.Solution] = done.Version
			if r.Version == schema.ActiveLatest {
				active[done.Solution] = schema.ActiveLatest
			}
		})
	case schema.VerbDeactivate:
		return a.around(ctx, r.DryRun, work, func(active map[string]string, _ *schema.Operation) { delete(active, r.Solution) })
	default:
		return work()
	}
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
