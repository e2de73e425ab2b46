package trust

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
)

// names of keys and roots: they are shown, typed and used as file names.
var validName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// directory reads a trust directory. Being an os.Root, it refuses every path that a symbolic link leads outside.
type directory struct {
	path   string
	root   *os.Root
	opened fs.FileInfo
}

// attempts bounds how often a store is read again that another process exchanges meanwhile.
const attempts = 5

// retry reads a store again when it was exchanged during the reading; see [directory.finish].
func retry[T any](read func() (T, error)) (result T, err error) {
	for range attempts {
		if result, err = read(); report.CodeOf(err) != report.Conflict {
			break
		}
	}
	return result, err
}

// openDirectory returns nil when there is no such directory.
func openDirectory(path string) (*directory, error) {
	root, err := os.OpenRoot(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cmp.Or(checkReplaced(path), checkAbsent(path))
	}
	if err != nil {
		return nil, report.Errorf(report.TrustStore, "trust store: %w", err)
	}
	d := &directory{path: path, root: root}
	if d.opened, err = root.Stat("."); err != nil {
		return nil, d.finish(d.fail(".", err))
	}
	if err := errors.Join(d.check("."), d.checkNames()); err != nil {
		return nil, d.finish(err)
	}
	return d, nil
}

// finish closes the directory and returns the error of its reader. The error is errChanged when another directory has its place: the one
// that was read is being removed, and a file that is missing there was not missing in the store.
func (d *directory) finish(err error) error {
	if now, missing := os.Stat(d.path); missing != nil || !os.SameFile(d.opened, now) {
		err = errChanged(d.path)
	}
	return errors.Join(err, d.root.Close())
}

// checkAbsent refuses a link whose target is missing: its author intended a file to be there.
func checkAbsent(path string) error {
	for at := path; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
			continue
		}
		if _, err := os.Stat(at); errors.Is(err, fs.ErrNotExist) {
			return report.Errorf(report.TrustStore, "%s is a link to nothing", at).
				WithHint("restore the target of the link, or remove the link")
		}
		return nil
	}
}

// checkNames refuses a file whose name is probably a misspelling of one that is read. Without it more would be trusted.
func (d *directory) checkNames() error {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return d.fail(".", err)
	}
	read := []string{policyFile, rootKeyFile, revocationsFile, revocationsFile + bundle.Suffix, localFile}
	for _, entry := range entries {
		name := strings.ToLower(entry.Name())
		if name == "policy.yml" || name == "policy.json" || name == "policy" {
			name = policyFile
		}
		if slices.Contains(read, name) && entry.Name() != name {
			return report.Errorf(report.TrustStore, "trust store: %s/%s: a file of this name is not read, want %s", d.path, entry.Name(), name).
				WithHint("rename it, or move it out of the trust store")
		}
	}
	return nil
}

// check refuses a file or directory that another user could have written.
func (d *directory) check(name string) error {
	info, err := d.root.Stat(name)
	if err != nil {
		return d.fail(name, err)
	}
	return d.checkInfo(name, info)
}

func (d *directory) checkInfo(name string, info fs.FileInfo) error {
	if err := checkProtected(info); err != nil {
		return report.Errorf(report.TrustStore, "trust store: %s/%s: %w", d.path, name, err).
			WithHint("make it writable by its owner only, who must be root or you: chown -R root: %s; chmod -R go-w %s", report.ShellFile(d.path), report.ShellFile(d.path))
	}
	return nil
}

func (d *directory) fail(name string, err error) error {
	return report.Errorf(report.TrustStore, "trust store: %s/%s: %w", d.path, name, err)
}

// read returns the content of a file; the error wraps fs.ErrNotExist when there is none.
func (d *directory) read(name string, limit int64) ([]byte, error) {
	info, err := d.root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = cmp.Or(checkAbsent(filepath.Join(d.path, name)), err)
	}
	if err != nil {
		return nil, d.fail(name, err)
	}
	if !info.Mode().IsRegular() { // looked at before opening: opening a FIFO would wait for a writer
		return nil, d.fail(name, errors.New("not a regular file"))
	}
	f, err := d.root.Open(name)
	if err != nil {
		return nil, d.fail(name, err)
	}
	defer f.Close() //nolint:errcheck // opened for reading
	if info, err = f.Stat(); err != nil {
		return nil, d.fail(name, err)
	}
	if err = d.checkInfo(name, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, d.fail(name, err)
	}
	if int64(len(data)) > limit {
		return nil, d.fail(name, fmt.Errorf("larger than %d bytes", limit))
	}
	return data, nil
}

// list returns the names in a subdirectory that end in suffix, without it; none when there is no such directory.
func (d *directory) list(name, suffix string) ([]string, error) {
	f, err := d.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, checkAbsent(filepath.Join(d.path, name))
	}
	if err != nil {
		return nil, d.fail(name, err)
	}
	defer f.Close() //nolint:errcheck // opened for reading
	if err = d.check(name); err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, d.fail(name, err)
	}
	var names []string
	for _, entry := range entries {
		base, ok := strings.CutSuffix(entry.Name(), suffix)
		if !ok || strings.HasPrefix(base, ".") {
			continue
		}
		if !validName.MatchString(base) {
			return nil, d.fail(name, fmt.Errorf("%q is not a valid name", base))
		}
		names = append(names, base)
	}
	return names, nil
}
