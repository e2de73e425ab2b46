package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
)

// Bundle is the content of a file with a signature of an archive.
type Bundle struct {
	Data []byte
	// Accepted bundles counted at the import. When there are too many bundles they are kept first, then those of the
	// store, then the others.
	Accepted bool
}

// Bounds of the bundles of one archive. `solutionctl verify` reads at least as many.
const (
	maxBundles     = 64
	maxBundleBytes = 16 * bundle.MaxSize
)

// bundleDigest is how many hexadecimal digits of a digest are in the name of a bundle.
const bundleDigest = 16

// bundleNames matches <archive>.<digest of the archive>-<digest of the bundle>.sigstore.json. The first digest separates
// the bundles of an archive from those of the one that it replaces, the second one those of several signers. So no file
// ever gets other content, and files that a user has signed beside an archive are left alone.
var bundleNames = lazyregexp.New(`^(.+)\.iso\.([0-9a-f]{16})-([0-9a-f]{16})\.sigstore\.json$`)

// bundleFile is a file of the store with a bundle.
type bundleFile struct {
	path            string
	id              string
	archive, digest string // the first digits of the digests of the archive and of the bundle
}

func (s *Store) bundleFile(id, archive string, data []byte) bundleFile {
	sum := sha256.Sum256(data)
	b := bundleFile{id: id, archive: archive[:bundleDigest], digest: hex.EncodeToString(sum[:])[:bundleDigest]}
	b.path = s.archivePath(id) + "." + b.archive + "-" + b.digest + bundle.Suffix
	return b
}

// belongsTo reports whether the bundle is of exactly this archive.
func (b bundleFile) belongsTo(e Entry) bool {
	return b.id == e.ID() && b.archive == e.SHA256[:bundleDigest]
}

// bundleFiles returns the files with bundles, of all archives, in the order of their names.
func (s *Store) bundleFiles() ([]bundleFile, error) {
	names, err := os.ReadDir(s.Dir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, explainAccess(err)
	}
	var files []bundleFile
	for _, name := range names {
		if m := bundleNames.FindStringSubmatch(name.Name()); m != nil {
			files = append(files, bundleFile{path: filepath.Join(s.Dir(), name.Name()), id: m[1], archive: m[2], digest: m[3]})
		}
	}
	return files, nil
}

// recordID returns the id of the archive whose record has this name, if it is the name of a record.
func recordID(name string) (id string, ok bool) {
	id, ok = strings.CutSuffix(name, recordSuffix)
	return id, ok && !strings.HasSuffix(name, bundle.Suffix)
}

// checkID refuses an archive whose record would have the name of a bundle.
func checkID(source Source) error {
	if _, ok := recordID(source.ID() + recordSuffix); ok {
		return nil
	}
	return report.Errorf(report.Refused, "version %s of %s ends like the name of a file with a signature", source.Version, source.Name).
		WithHint("ask the vendor for the same archive with another version")
}

// Bundles returns the bundles of an entry, in the order of their names. Nothing in them was verified, unless an import
// did it. A damaged one is left out; it is written again when it is imported again.
func (s *Store) Bundles(e Entry) ([][]byte, error) {
	var bundles [][]byte
	files, err := s.bundleFiles()
	if err != nil {
		return nil, err
	}
	for _, b := range files {
		if !b.belongsTo(e) {
			continue
		}
		data, err := readFile(b.path, bundle.MaxSize)
		switch {
		case errors.Is(err, fs.ErrNotExist) || report.CodeOf(err) == report.Corrupt:
			continue // removed meanwhile, or grown
		case err != nil:
			return nil, explainAccess(err)
		case s.bundleFile(b.id, e.SHA256, data) == b:
			bundles = append(bundles, data)
		}
	}
	return bundles, nil
}

// AddedBundles returns those of the given bundles that an import would add to the ones of an entry.
func (s *Store) AddedBundles(e Entry, given []Bundle) ([][]byte, error) {
	present, err := s.Bundles(e)
	return slices.DeleteFunc(selectBundles(given, present), func(b []byte) bool { return hasBundle(present, b) }), err
}

func hasBundle(list [][]byte, wanted []byte) bool {
	return slices.ContainsFunc(list, func(b []byte) bool { return string(b) == string(wanted) })
}

// keepBundles adds the bundles of an import to those of the same archive, and removes those beyond the bounds.
func (g *Staged) keepBundles() error {
	if len(g.bundles) == 0 {
		return nil
	}
	present, err := g.store.Bundles(g.entry)
	if err != nil {
		return err
	}
	kept := map[bundleFile]bool{}
	for _, b := range selectBundles(g.bundles, present) {
		file := g.store.bundleFile(g.entry.ID(), g.entry.SHA256, b)
		kept[file] = true
		if hasBundle(present, b) {
			continue
		}
		if err = g.store.step("write bundle"); err != nil {
			return err
		}
		if err = writeShared(file.path, b); err != nil {
			return err
		}
	}
	return g.store.removeBundles(func(b bundleFile) bool { return b.belongsTo(g.entry) && !kept[b] })
}

// selectBundles returns the bundles to keep: first those that were accepted, then those in the store, then the others.
func selectBundles(given []Bundle, present [][]byte) [][]byte {
	var candidates, others [][]byte
	for _, b := range given {
		if b.Accepted {
			candidates = append(candidates, b.Data)
		} else {
			others = append(others, b.Data)
		}
	}
	var selected [][]byte
	total, seen := 0, map[string]bool{}
	for _, data := range slices.Concat(candidates, present, others) {
		if seen[string(data)] || len(selected) == maxBundles || len(data) > bundle.MaxSize || total+len(data) > maxBundleBytes {
			continue
		}
		seen[string(data)] = true
		selected, total = append(selected, data), total+len(data)
	}
	return selected
}

// isStale reports whether a bundle is of an archive that is not in the store: one that was removed, replaced or not
// committed. While a record cannot be read, its bundles stay.
func (l *Locked) isStale(b bundleFile) bool {
	entry, err := l.entry(b.id)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !b.belongsTo(entry)
}

func (l *Locked) removeBundles(selected func(bundleFile) bool) error {
	files, err := l.bundleFiles()
	if err != nil {
		return err
	}
	for _, b := range files {
		if !selected(b) {
			continue
		}
		if err = l.step("remove bundle"); err != nil {
			return err
		}
		if err = durable.Remove(b.path); err != nil {
			return err
		}
	}
	return nil
}
