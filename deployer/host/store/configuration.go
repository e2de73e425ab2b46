package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/solutionctl/solutionctl/schema"
)

// DefaultConfiguration is MetalK8s' file of imported archives and active versions.
const DefaultConfiguration = "/etc/metalk8s/solutions.yaml"

// backupSuffix is appended to the name of a file in the older form before it is converted.
const backupSuffix = ".older-form"

// Configuration is MetalK8s' configuration file on this host.
type Configuration struct {
	Path string
	// Identify returns the manifest of an archive. It is asked when a file in the older form has to be converted.
	Identify func(archive string) (*schema.Solution, error)

	// step is called before everything that changes the disk; tests make it fail.
	step func(name string) error
}

func (c *Configuration) file() sharedFile {
	return sharedFile{path: c.Path, step: c.step, elsewhere: "name another file with --solutions-file"}
}

// Edited describes the changes by [Configuration.Edit].
type Edited struct {
	Changed bool
	Notes   []string // for the user: a conversion and its backup, lost comments
}

// Load reads the file as it is, in either form. A file that does not exist is an empty configuration.
func (c *Configuration) Load() (*schema.SolutionsConfiguration, error) {
	configuration, _, err := c.read()
	return configuration, err
}

func (c *Configuration) read() (*schema.SolutionsConfiguration, current, error) {
	now, err := c.file().read()
	if err != nil || now.info == nil {
		return schema.NewSolutionsConfiguration(), now, err
	}
	configuration, _, err := schema.ParseSolutionsConfiguration(c.Path, now.data)
	return configuration, now, err
}

// Check fails when the file could not be changed, so that this is known before anything else is.
func (c *Configuration) Check() error {
	configuration, _, err := c.read()
	if err != nil {
		return err
	}
	if _, _, err = c.flat(configuration); err != nil {
		return err
	}
	return c.file().check()
}

// flat returns a configuration in the flat form, with notes about a conversion.
func (c *Configuration) flat(configuration *schema.SolutionsConfiguration) (*schema.SolutionsConfiguration, []string, error) {
	if !configuration.IsOlder() {
		return configuration, nil, nil
	}
	flat, notes, err := configuration.Flat(c.Identify)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.Path, err)
	}
	return flat, notes, nil
}

// Edit changes the file atomically: it is the old or the new one at any time, with the same owner and mode. Nothing is
// written when edit changes nothing. A file in the older form, which MetalK8s refuses, is converted and a copy of it
// kept. Two processes that edit wait for each other. A write by another program fails the edit with [report.Conflict]; it is
// lost only if it falls between the last comparison and the rename that follows at once.
func (c *Configuration) Edit(ctx context.Context, edit func(*schema.SolutionsConfiguration)) (*Edited, error) {
	unlock, err := c.file().lock(ctx)
	if err != nil {
		return nil, err
	}
	edited, err := c.edit(edit)
	return edited, errors.Join(err, unlock())
}

func (c *Configuration) edit(edit func(*schema.SolutionsConfiguration)) (*Edited, error) {
	configuration, before, err := c.read()
	if err != nil {
		return nil, err
	}
	flat, notes, err := c.flat(configuration)
	if err != nil {
		return nil, err
	}
	edited := Edited{Notes: notes}
	unedited, err := flat.Marshal()
	if err != nil {
		return nil, err
	}
	edit(flat)
	data, err := flat.Marshal()
	if err != nil {
		return nil, err
	}
	if bytes.Equal(data, unedited) {
		return &Edited{}, nil
	}
	edited.Changed = true
	if configuration.IsOlder() {
		backup, err := c.backup(before)
		if err != nil {
			return nil, err
		}
		edited.Notes = append(edited.Notes, fmt.Sprintf("%s was in the older form, which MetalK8s refuses: it is converted, and what it was is %s", c.Path, backup))
	} else if hasComments(before.data) {
		edited.Notes = append(edited.Notes, fmt.Sprintf("the comments in %s are gone", c.Path))
	}
	return &edited, c.file().replace(before, data)
}

// backup keeps the file as it was. A copy that is there already is not made again.
func (c *Configuration) backup(before current) (string, error) {
	for n := 0; ; n++ {
		name := c.Path + backupSuffix
		if n > 0 {
			name += fmt.Sprintf(".%d", n)
		}
		if have, err := readFile(name, maxShared); err == nil && bytes.Equal(have, before.data) {
			return name, nil
		}
		if _, err := os.Lstat(name); err == nil {
			continue // another one
		}
		return name, c.file().write(name, before, before.data, func() error { return nil })
	}
}

func hasComments(data []byte) bool {
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return false
	}
	return commented(&root)
}

func commented(n *yaml.Node) bool {
	return n.HeadComment+n.LineComment+n.FootComment != "" || slices.ContainsFunc(n.Content, commented)
}

// ListArchive puts an entry into a configuration: under the path that is mounted, which is the only one that MetalK8s
// recognizes, in place of the one that it was imported from.
func ListArchive(c *schema.SolutionsConfiguration, e Entry) {
	place := slices.IndexFunc(c.Archives, func(path string) bool { return path == e.Path || path == e.Original })
	if place < 0 {
		c.Archives = append(c.Archives, e.Path)
		return
	}
	c.Archives[place] = e.Path
	rest := slices.DeleteFunc(c.Archives[place+1:], func(path string) bool { return path == e.Path || path == e.Original })
	c.Archives = c.Archives[:place+1+len(rest)]
}

// UnlistArchive takes an entry out of a configuration.
func UnlistArchive(c *schema.SolutionsConfiguration, e Entry) {
	c.Archives = slices.DeleteFunc(c.Archives, func(path string) bool { return path == e.Path || path == e.Original })
}
