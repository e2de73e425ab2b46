package host

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
)

// ActiveVersions is the list of active versions in the configuration with this path, such as [store.DefaultConfiguration], on a host that has the file.
// It implements [deployer.ActiveVersions].
type ActiveVersions string

// file returns the configuration; nil on a host that does not have it.
func (a ActiveVersions) file() *store.Configuration {
	if _, err := os.Lstat(string(a)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return &store.Configuration{Path: string(a), Identify: archive.Identify}
}

// Check is [store.Configuration.Check].
func (a ActiveVersions) Check() error {
	if c := a.file(); c != nil {
		return c.Check()
	}
	return nil
}

// Read returns the active versions by Solution; nil on a host without the file.
func (a ActiveVersions) Read() (map[string]string, error) {
	c := a.file()
	if c == nil {
		return nil, nil //nolint:nilnil // there is no file
	}
	configuration, err := c.Load()
	if err != nil {
		return nil, err
	}
	flat, _, err := configuration.Flat(c.Identify)
	if err != nil {
		return nil, err
	}
	return flat.Active, nil
}

// Edit is [store.Configuration.Edit] of the active versions.
func (a ActiveVersions) Edit(ctx context.Context, edit func(active map[string]string)) ([]string, error) {
	c := a.file()
	if c == nil {
		return nil, nil
	}
	edited, err := c.Edit(ctx, func(c *schema.SolutionsConfiguration) { edit(c.Active) })
	if err != nil {
		return nil, err
	}
	return edited.Notes, nil
}
