package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/solutionctl/solutionctl/durable"
)

const (
	packagesDir    = "packages"
	packagesSuffix = ".packages.gz"
	// maxPackages bounds the kept list of the packages of an archive.
	maxPackages = 64 << 20
)

// packagesPath is the file with the packages of an archive, by the digest of the archive. Its name has the edition of the list: the
// packages that another edition of this program has found can be fewer.
func (s *Store) packagesPath(e Entry, edition string) string {
	return filepath.Join(s.dir, packagesDir, e.SHA256+"."+edition+packagesSuffix)
}

// ReadPackages returns the list of the packages of an archive that [Locked.WritePackages] has kept; an error that is [fs.ErrNotExist] without one.
func (s *Store) ReadPackages(e Entry, edition string) ([]byte, error) {
	return readFile(s.packagesPath(e, edition), maxPackages)
}

// WritePackages keeps the list of the packages of an archive, so that a question about all archives reads no layer. The list follows from the
// archive: it can be lost.
func (l *Locked) WritePackages(e Entry, edition string, data []byte) error {
	dir := filepath.Join(l.dir, packagesDir)
	if err := l.step("write packages"); err != nil {
		return err
	}
	if err := errors.Join(durable.MkdirAll(dir, 0o750), allowGroup(dir)); err != nil {
		return err
	}
	path := l.packagesPath(e, edition)
	if err := durable.WriteFile(path, data, 0o440); err != nil {
		return err
	}
	return allowGroup(path)
}

// cleanPackages removes lists of archives that are not in the store.
func (l *Locked) cleanPackages() error {
	dir := filepath.Join(l.dir, packagesDir)
	files, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	entries, err := l.Entries()
	if err != nil {
		return nil //nolint:nilerr // with a record that cannot be read, nothing is known to be needless
	}
	known := map[string]bool{}
	for _, e := range entries {
		known[e.SHA256] = true
	}
	for _, f := range files {
		digest, _, _ := strings.Cut(f.Name(), ".")
		if known[digest] {
			continue
		}
		if err := l.step("clean packages"); err != nil {
			return err
		}
		if err := removeIfThere(filepath.Join(dir, f.Name())); err != nil {
			return err
		}
	}
	return nil
}
