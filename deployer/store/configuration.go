package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"go.yaml.in/yaml/v3"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// DefaultConfiguration is the file that tells MetalK8s which archives are imported and which versions active.
const DefaultConfiguration = "/etc/metalk8s/solutions.yaml"

const (
	maxConfiguration = 4 << 20
	backupSuffix     = ".older-form"
	// patience is how long a change waits for another one, which takes milliseconds.
	patience = 10 * time.Second
)

// Configuration is MetalK8s' configuration file on this host.
type Configuration struct {
	Path string
	// Identify returns the manifest of an archive. It is asked when a file in the older form has to be converted.
	Identify func(archive string) (*schema.Solution, error)

	// step is called before everything that changes the disk; tests make it fail.
	step func(name string) error
}

// Edited tells what [Configuration.Edit] did.
type Edited struct {
	Changed bool
	Notes   []string // what a person should know: a conversion and its backup, comments that are gone
}

// Load reads the file as it is, in either form. A file that does not exist is an empty configuration.
func (c *Configuration) Load() (*schema.SolutionsConfiguration, error) {
	configuration, _, err := c.read()
	return configuration, err
}

// current is the file as it was read.
type current struct {
	data []byte
	info fs.FileInfo // nil: there is none
}

func (c *Configuration) read() (*schema.SolutionsConfiguration, current, error) {
	info, err := os.Lstat(c.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return schema.NewSolutionsConfiguration(), current{}, nil
	case err != nil:
		return nil, current{}, err
	case info.Mode()&fs.ModeSymlink != 0:
		target, _ := os.Readlink(c.Path)
		return nil, current{}, report.Errorf(report.Refused, "%s is a symbolic link, which a change would replace", c.Path).
			WithHint("name the file that it points to: --solutions-file %s", target)
	case !info.Mode().IsRegular():
		return nil, current{}, report.Errorf(report.Usage, "%s is not a file", c.Path)
	}
	data, err := readFile(c.Path, maxConfiguration)
	if err != nil {
		return nil, current{}, err
	}
	configuration, _, err := schema.ParseSolutionsConfiguration(c.Path, data)
	return configuration, current{data, info}, err
}

// Check fails when the file could not be changed, so that this is known before anything else is.
func (c *Configuration) Check() error {
	if _, _, err := c.read(); err != nil {
		return err
	}
	dir := filepath.Dir(c.Path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return c.explain(err)
	}
	f, err := os.CreateTemp(dir, c.temporary())
	if err != nil {
		return c.explain(err)
	}
	return c.explain(errors.Join(f.Close(), os.Remove(f.Name())))
}

// Edit changes the file in one go: it is the old or the new one at any time, with the same owner and mode. Nothing is
// written when edit changes nothing. A file in the older form, which MetalK8s refuses, is converted and a copy of it
// kept. Two processes that edit wait for each other; what a third one writes meanwhile is not lost, but fails the edit
// with [report.Conflict].
func (c *Configuration) Edit(ctx context.Context, edit func(*schema.SolutionsConfiguration)) (*Edited, error) {
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o755); err != nil {
		return nil, c.explain(err)
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	edited, err := c.edit(edit)
	return edited, c.explain(errors.Join(err, unlock()))
}

// lock takes a lock on the directory, so that no other file is needed.
func (c *Configuration) lock(ctx context.Context) (unlock func() error, err error) {
	lock := flock.New(filepath.Dir(c.Path), flock.SetFlag(os.O_RDONLY))
	waiting, stop := context.WithTimeout(ctx, patience)
	defer stop()
	_, err = lock.TryLockContext(waiting, 20*time.Millisecond)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return nil, report.Errorf(report.Locked, "another process is changing %s", c.Path).WithHint("run the command again when it has finished")
	case err != nil:
		return nil, c.explain(err)
	}
	return lock.Close, nil
}

func (c *Configuration) edit(edit func(*schema.SolutionsConfiguration)) (*Edited, error) {
	configuration, before, err := c.read()
	if err != nil {
		return nil, err
	}
	var edited Edited
	flat := configuration
	if configuration.IsOlder() {
		if flat, edited.Notes, err = configuration.Flat(c.Identify); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Path, err)
		}
	}
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
	return &edited, c.replace(before, data)
}

// backup keeps the file as it was. A copy that is there already is not made again.
func (c *Configuration) backup(before current) (string, error) {
	for n := 0; ; n++ {
		name := c.Path + backupSuffix
		if n > 0 {
			name += fmt.Sprintf(".%d", n)
		}
		if have, err := readFile(name, maxConfiguration); err == nil && bytes.Equal(have, before.data) {
			return name, nil
		}
		if _, err := os.Lstat(name); err == nil {
			continue // another one
		}
		return name, c.write(name, before, before.data)
	}
}

// replace writes the file unless it is not what was read any more.
func (c *Configuration) replace(before current, data []byte) error {
	_, now, err := c.read()
	if err != nil {
		return err
	}
	if (now.info == nil) != (before.info == nil) || !bytes.Equal(now.data, before.data) {
		return report.Errorf(report.Conflict, "%s was changed by somebody else at the same moment", c.Path).WithHint("run the command again")
	}
	return c.write(c.Path, before, data)
}

// write makes a file appear at once, with the owner and the mode of what is there.
func (c *Configuration) write(name string, before current, data []byte) error {
	if err := c.at("create " + filepath.Base(name)); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), c.temporary())
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	mode := fs.FileMode(0o644)
	if before.info != nil {
		mode = before.info.Mode().Perm()
		err = errors.Join(err, keepOwner(f, before.info))
	}
	if err = errors.Join(err, c.at("sync "+filepath.Base(name)), f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = c.at("rename " + filepath.Base(name))
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(f.Name()))
	}
	return syncDirectory(filepath.Dir(name))
}

func (c *Configuration) at(step string) error {
	if c.step == nil {
		return nil
	}
	return c.step(step)
}

// temporary is a pattern of names that nobody takes for the file.
func (c *Configuration) temporary() string { return "." + filepath.Base(c.Path) + ".*" }

func (c *Configuration) explain(err error) error {
	switch {
	case errors.Is(err, syscall.EROFS):
		return report.Errorf(report.Failure, "%w", err).WithHint("%s is on a read-only file system: make it writable, or name another file with --solutions-file", c.Path)
	case errors.Is(err, fs.ErrPermission):
		return report.Errorf(report.Failure, "%w", err).WithHint("run the command as root; if you do, lsattr tells whether the file or its directory is immutable")
	default:
		return err
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
