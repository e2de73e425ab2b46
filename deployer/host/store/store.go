// Package store keeps the imported archives of a host: /var/lib/solutionctl/archives.
//
// [Open] opens a store and [Store.Entries] lists its archives; [Store.Find] finds one by any of its names, [Store.Open]
// opens one for reading. A change takes the lock first, with [Store.Lock]: [Locked.Stage] brings an archive into the
// store invisibly, [Staged.Commit] makes it an entry, [Locked.Remove] removes one. An archive on a read-only medium can
// stay in place.
//
// Every archive of a store was compared with its signed digests when it was read, and its record keeps them for later
// comparisons. A record is written last and removed first, so a killed process leaves nothing that counts; the next
// holder of the lock removes the remains. When an archive replaces another one, its record is written beside the old
// one before; it counts from the moment when the archive has its name.
//
// Beside an archive lie the signature bundles that it was imported with, under names by which `solutionctl verify` finds
// them, so that others can judge it by their own policy. They are written before the record and removed after it.
//
// Lists of the packages of archives, which follow from these, are kept in a directory of their own; they go with their archives.
//
// Beside the store, the package knows the other places of a host that name imported archives: MetalK8s' configuration
// file ([Configuration]), mounts below /srv/scality with their lines in /etc/fstab ([Mounts]) and the files that make
// MetalK8s' nginx serve images ([Nginx]).
//
// Package store never talks to Kubernetes and verifies no signatures.
package store

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

// DefaultDir is the directory of a host's store.
const DefaultDir = "/var/lib/solutionctl"

// Group is the group that may read a store, where the system has it: the one that the registry runs as.
const Group = "solutionctl"

const (
	pulledDir     = "pulled"
	archivesDir   = "archives"
	archiveSuffix = ".iso"
	recordSuffix  = ".json"
	partialSuffix = ".partial"
	nextSuffix    = ".next"
	lockFile      = "store.lock"
)

// maxRecord bounds a record: the digests of an archive of 1 TB take 11 MB.
const maxRecord = 64 << 20

// Store is the imported archives of a host. It may be used by several goroutines and processes at once.
type Store struct {
	dir string
	// step is called before everything that changes the disk; tests make it fail or end the process.
	step func(name string) error
}

// Open opens the store in a directory, /var/lib/solutionctl by default. A directory that does not exist is a store
// without entries; the first import makes it.
func Open(dir string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, report.Errorf(report.Usage, "%s is not a directory, so it cannot be a store", dir)
	}
	return &Store{dir: dir, step: func(string) error { return nil }}, nil
}

// Dir is the directory of the archives and their records. It changes whenever an entry comes or goes.
func (s *Store) Dir() string { return filepath.Join(s.dir, archivesDir) }

// PulledDir is the directory beside the archives for those that come from registries and are not imported yet.
func (s *Store) PulledDir() string { return filepath.Join(s.dir, pulledDir) }

func (s *Store) archivePath(id string) string { return filepath.Join(s.Dir(), id+archiveSuffix) }

func (s *Store) recordPath(id string) string { return filepath.Join(s.Dir(), id+recordSuffix) }

func (s *Store) nextPath(id string) string { return s.recordPath(id) + nextSuffix }

func (s *Store) partialPath(id string) string { return s.archivePath(id) + partialSuffix }

// replacing reports whether a replacement archive has its final name already, while its record has not.
func (s *Store) replacing(id string) bool {
	if _, err := os.Lstat(s.nextPath(id)); err != nil {
		return false
	}
	_, err := os.Lstat(s.partialPath(id))
	return errors.Is(err, fs.ErrNotExist)
}

// readRecord reads the record that counts.
func (s *Store) readRecord(id string) (data []byte, path string, err error) {
	if s.replacing(id) {
		path = s.nextPath(id)
		if data, err = readFile(path, maxRecord); !errors.Is(err, fs.ErrNotExist) {
			return data, path, err
		}
	}
	path = s.recordPath(id)
	data, err = readFile(path, maxRecord)
	return data, path, err
}

// Entry is an imported archive.
type Entry struct {
	schema.StoredArchive
	// Path is the path of the archive, in the store or in place. This path is mounted, and is the one in MetalK8s'
	// configuration.
	Path string
}

// chunks returns the digests of the archive's pieces.
func (e Entry) chunks() *chunk.List {
	return &chunk.List{Size: e.Size, ChunkSize: e.Chunks.ChunkSize, Algorithm: e.Chunks.Algorithm, Digests: e.Chunks.Digests}
}

// Entries returns the imported archives, by name and version.
func (s *Store) Entries() ([]Entry, error) {
	names, err := os.ReadDir(s.Dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, explainAccess(err)
	}
	var entries []Entry
	for _, name := range names {
		id, ok := recordID(name.Name())
		if !ok {
			continue
		}
		entry, err := s.entry(id)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), schema.CompareVersions(a.Version, b.Version))
	})
	return entries, nil
}

// entry reads the record of an archive; the error is [fs.ErrNotExist] when there is none.
func (s *Store) entry(id string) (Entry, error) {
	data, path, err := s.readRecord(id)
	if err != nil {
		return Entry{}, explainAccess(err)
	}
	record, err := schema.ParseStored[schema.StoredArchive]("archive", path, data)
	if err != nil {
		return Entry{}, err
	}
	entry := Entry{StoredArchive: *record, Path: s.archivePath(id)}
	if entry.InPlace {
		entry.Path = entry.Original
	}
	if entry.ID() != id {
		return Entry{}, report.Errorf(report.Corrupt, "%s is the record of %s", path, entry.ID()).
			WithHint("records are not renamed: move it back to %s%s", entry.ID(), recordSuffix)
	}
	if err := entry.chunks().Validate(); err != nil {
		return Entry{}, report.Errorf(report.Corrupt, "%s: %w", path, err)
	}
	return entry, nil
}

// Find returns an entry by the name of the Solution and the version, or, without a version, by its id, its path, or the
// path it was imported from. It fails with [report.NotFound].
func (s *Store) Find(name, version string) (Entry, error) {
	entries, err := s.Entries()
	if err != nil {
		return Entry{}, err
	}
	for _, e := range entries {
		if e.is(name, version) {
			return e, nil
		}
	}
	return Entry{}, s.notFound(entries, name, version)
}

func (e Entry) is(name, version string) bool {
	if version != "" {
		return e.Name == name && e.Version == version
	}
	path := resolve(name)
	return e.ID() == name || e.Path == path || e.Original == path
}

func (s *Store) notFound(entries []Entry, name, version string) error {
	err := report.Errorf(report.NotFound, "%s was not imported on this host", strings.TrimSpace(name+" "+version))
	var same, all []string
	near, distance := "", 3
	for _, e := range entries {
		all = append(all, e.ID())
		if e.Name == name {
			same = append(same, e.Version)
		}
		if d := report.EditDistance(strings.TrimSuffix(filepath.Base(name), archiveSuffix), e.ID()); d < distance {
			near, distance = e.ID(), d
		}
	}
	switch {
	case len(same) > 0:
		return err.WithHint("versions of %s that were: %s", name, strings.Join(same, ", "))
	case near != "":
		return err.WithHint("did you mean %s?", near)
	case len(all) > 0:
		return err.WithHint("imported here: %s", strings.Join(all, ", "))
	default:
		return err.WithHint("%s is empty: run the command on the host with the imported archives", s.Dir())
	}
}

// resolve makes a path absolute and follows its links, for the part that exists.
func resolve(path string) string {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if resolved, err := filepath.EvalSymlinks(absolute); err == nil {
		return resolved
	}
	// The file may be gone; the directories in front of it may still be links.
	if dir, err := filepath.EvalSymlinks(filepath.Dir(absolute)); err == nil {
		return filepath.Join(dir, filepath.Base(absolute))
	}
	return absolute
}

// File is an archive of the store that was opened once: later reads see the same file.
type File struct {
	*os.File
	Entry Entry
	// Verified reads the archive and fails where it differs from the imported digests.
	Verified *chunk.Reader

	opened fs.FileInfo
}

// Open opens the archive of an entry.
func (s *Store) Open(e Entry) (*File, error) {
	f, err := durable.OpenNoFollow(e.Path)
	if errors.Is(err, durable.ErrLink) {
		return nil, report.Errorf(report.Corrupt, "%s is a symbolic link", e.Path).WithHint("import the archive again")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, report.Errorf(report.Corrupt, "archive %s: %w", e.ID(), err).WithHint("import the archive again")
	}
	if err != nil {
		return nil, explainAccess(err)
	}
	opened, err := newFile(f, e)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return opened, nil
}

func newFile(f *os.File, e Entry) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	device := info.Mode()&fs.ModeDevice != 0 && info.Mode()&fs.ModeCharDevice == 0
	switch {
	case !info.Mode().IsRegular() && (!device || !e.InPlace):
		return nil, report.Errorf(report.Corrupt, "archive %s: %s is not a file", e.ID(), e.Path)
	case !device && info.Size() != e.Size:
		return nil, report.Errorf(report.Corrupt, "archive %s: %s has %d bytes, %d were imported", e.ID(), e.Path, info.Size(), e.Size).
			WithHint("it was changed: import the archive again")
	}
	reader, err := chunk.NewReader(f, e.chunks())
	if err != nil {
		return nil, err
	}
	return &File{File: f, Entry: e, Verified: reader, opened: info}, nil
}

// Unchanged fails when the file was written since it was opened.
func (f *File) Unchanged() error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() != f.opened.Size() || !info.ModTime().Equal(f.opened.ModTime()) {
		return report.Errorf(report.Corrupt, "archive %s: %s was written while it was in use", f.Entry.ID(), f.Entry.Path).
			WithHint("unimport it and import the original archive again")
	}
	return nil
}

// explainAccess adds to an error of permission which user can read the store.
func explainAccess(err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return report.As(report.Failure, err).WithHint("run the command as root; members of the group %s may read", Group)
}

// Space returns how many bytes are free for archives, and how many the file system of the store has.
func (s *Store) Space() (free, total int64, err error) {
	for dir := s.Dir(); ; dir = filepath.Dir(dir) { // the first import creates missing directories
		free, total, err = space(dir)
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return free, total, err
		}
	}
}
