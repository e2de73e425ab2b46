package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

// Source is an archive on its way into the store.
type Source struct {
	// Content is the archive as it was opened and verified.
	Content io.ReaderAt
	// File is the file that is the archive; nil where there is none, as for an archive in parts.
	File *os.File
	// Chunks are the trusted digests of its pieces, and SHA256 is that of the whole. Nothing else proves that they belong
	// together: the archive is compared with both.
	Chunks *chunk.List
	SHA256 string
	// Zeros were read while the archive was examined. They are confirmed on the way into the store.
	Zeros *chunk.Zeros
	// Path is where the archive was found, absolute; only a name for one that another process has opened.
	Path          string
	Name, Version string
	Payload       string   // see [schema.StoredArchive]
	Signers       []string // see [schema.StoredArchive]
	// Bundles are signatures of exactly this archive. The store adds them to those that it has.
	Bundles []Bundle
}

// ID is <name>-<version>.
func (a *Source) ID() string { return a.Name + "-" + a.Version }

// StageOptions say how an archive is brought into the store.
type StageOptions struct {
	// InPlace leaves the archive where it is, which must be a read-only medium that belongs to root.
	InPlace   bool
	Now       time.Time
	WrittenBy string // the version of the program
	Sink      report.Sink
}

// Method is the way by which an archive came into the store.
type Method string

// The methods. Only copying writes the bytes of the archive.
const (
	Copied    Method = "copied"
	Reflinked Method = "reflinked" // shares its blocks with the original
	Linked    Method = "linked"    // is the file that was pulled
	InPlace   Method = "in-place"  // stays where it is
	Present   Method = "present"   // was there before
)

// Staged is a complete archive in the store that is invisible until it is committed.
type Staged struct {
	Method Method
	// Replaces is the digest of the archive whose place this one takes, "" where there is none.
	Replaces string
	// next: there is an entry with another file, whose record stays until the archive has its name.
	next bool
	// Damage is the fault of the same archive in the store, which this one replaces; nil without a fault.
	Damage error
	store  *Locked
	entry  Entry
	// bundles were given with the import.
	bundles []Bundle
}

// Stage brings an archive into the store: it shares the blocks of the original where the file system can, and copies
// otherwise; a pulled file is linked. Each byte is compared with its digest once, as it is in the store. If the archive is in
// the store already, its bytes are compared instead, and a damaged one is replaced. One that is in place comes into the store, so
// that its medium can be removed, if the source is a file of this host. Other content under its name and version fails with
// [report.Replaced], but replaces a pre-release, which stays until the commit.
func (l *Locked) Stage(ctx context.Context, source Source, o StageOptions) (*Staged, error) {
	if o.Sink == nil {
		o.Sink = report.Discard
	}
	o.Sink = report.Named(o.Sink, source.ID())
	if err := checkID(source); err != nil {
		return nil, err
	}
	staged := &Staged{store: l, entry: source.entry(l.Store, o), bundles: source.Bundles}
	present, err := l.present(ctx, source, o)
	switch {
	case err != nil:
		return nil, err
	case present != nil && present.SHA256 != source.SHA256:
		staged.Replaces, staged.next = present.SHA256, true
	case present != nil && present.InPlace && !o.InPlace && filepath.IsAbs(source.Path):
		staged.entry.Original, staged.next = present.Original, true // mounts and MetalK8s' configuration name it
	case present != nil:
		if staged.Damage, err = l.damage(ctx, *present, source, o); err != nil {
			return nil, err
		}
		if staged.Damage == nil {
			staged.Method, staged.entry = Present, *present
			return staged, nil
		}
	}
	if o.InPlace {
		staged.Method, err = InPlace, verifyInPlace(ctx, source, o)
	} else {
		staged.Method, err = l.bring(ctx, source, o)
	}
	if err != nil {
		return nil, explainWrite(source.ID(), err)
	}
	return staged, nil
}

func (a *Source) entry(s *Store, o StageOptions) Entry {
	signers := a.Signers
	if signers == nil {
		signers = []string{}
	}
	e := Entry{Path: s.archivePath(a.ID()), StoredArchive: schema.StoredArchive{
		Stamp: schema.NewStamp("archive", o.WrittenBy), Name: a.Name, Version: a.Version, SHA256: a.SHA256, Size: a.Chunks.Size,
		Chunks:   schema.ArchiveChunks{ChunkSize: a.Chunks.ChunkSize, Algorithm: a.Chunks.Algorithm, Digests: a.Chunks.Digests},
		Original: resolve(a.Path), InPlace: o.InPlace, Payload: a.Payload, Signers: signers, ImportedAt: o.Now.UTC().Truncate(time.Second),
	}}
	if o.InPlace {
		e.Path = e.Original
	}
	return e
}

// present returns the entry with the same content, or the one with other content that may be replaced.
func (l *Locked) present(ctx context.Context, source Source, o StageOptions) (*Entry, error) {
	entry, err := l.entry(source.ID())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if entry.SHA256 != source.SHA256 && schema.Replaceable(source.Version) {
		return &entry, nil
	}
	if entry.SHA256 != source.SHA256 {
		return nil, report.Errorf(report.Replaced, "%s is in the store with other content (sha256:%s)", entry.ID(), entry.SHA256).
			WithHint("a released version never changes, a pre-release such as %s-rc.1 may: ask the vendor which of the two is genuine", source.Version)
	}
	if !entry.chunks().Equal(source.Chunks) {
		// The list may have other pieces. The bytes were compared with this one, so it has to be correct.
		if err = verifyContent(ctx, source.Content, source, o); err != nil {
			return nil, err
		}
	}
	return &entry, nil
}

// damage checks the file of an entry: it must exist, be the recorded one, be readable, and have the signed bytes. err
// is that of a check that could not be done.
func (l *Locked) damage(ctx context.Context, entry Entry, source Source, o StageOptions) (damage, err error) {
	f, err := l.Open(entry)
	if err != nil {
		return err, nil //nolint:nilerr // that is the damage
	}
	bad, err := chunk.Verify(ctx, f.File, source.Chunks, runtime.GOMAXPROCS(0), o.Sink)
	closed := f.Close()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return err, nil //nolint:nilerr // the medium cannot be read
	case len(bad) > 0:
		return fmt.Errorf("bytes %d to %d were not those that were signed", bad[0].From, bad[0].To-1), nil
	}
	return nil, closed
}

func verifyInPlace(ctx context.Context, source Source, o StageOptions) error {
	if source.File == nil {
		return report.Errorf(report.Usage, "%s cannot be used in place: it is not one file with the archive", source.Path).
			WithHint("import it without --in-place, which copies it")
	}
	if err := checkReadOnlyMedium(source.File, source.Path); err != nil {
		return err
	}
	return verifyContent(ctx, source.Content, source, o)
}

// verifyContent compares the content with all its signed digests.
func verifyContent(ctx context.Context, r io.ReaderAt, source Source, o StageOptions) error {
	whole, err := chunk.Check(ctx, r, source.Chunks, source.Zeros, o.Sink)
	if err != nil {
		return err
	}
	return source.compareWhole(whole)
}

// compareWhole refuses an archive with signed chunks but another digest of the whole file.
func (a *Source) compareWhole(digest [sha256.Size]byte) error {
	if whole := hex.EncodeToString(digest[:]); whole != a.SHA256 {
		return report.Errorf(report.Mismatch, "the digest sha256:%s was signed, the archive has sha256:%s", a.SHA256, whole).
			WithHint("the signature is not one of this archive, although its pieces are: do not use it, and inform the vendor")
	}
	return nil
}

// bring fills the partial file, which no other process can open for writing.
func (l *Locked) bring(ctx context.Context, source Source, o StageOptions) (method Method, err error) {
	if err = l.step("create partial"); err != nil {
		return "", err
	}
	name := l.partialPath(source.ID())
	linked := l.link(source, name)
	flags := os.O_RDWR
	if !linked {
		flags |= os.O_CREATE | os.O_EXCL
	}
	out, err := os.OpenFile(name, flags, 0o600)
	if err != nil {
		return "", err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			err = errors.Join(err, os.Remove(name))
		}
	}()
	if err = l.step("fill partial"); err != nil {
		return "", err
	}
	if linked {
		method, err = Linked, verifyContent(ctx, out, source, o)
	} else if clone, failed := readCloned(out, source.File); failed == nil {
		method, err = Reflinked, verifyContent(ctx, clone, source, o)
		clone.close()
		if err == nil {
			err = out.Truncate(source.Chunks.Size) // the original may have grown since it was opened
		}
	} else {
		method, err = Copied, l.copy(ctx, out, source, o)
	}
	if err != nil {
		return "", err
	}
	if err = l.step("sync partial"); err != nil {
		return "", err
	}
	return method, errors.Join(out.Chmod(0o440), allowGroup(name), out.Sync())
}

// link gives an archive of [Store.PulledDir], where nothing else writes, a further name, if it is the file that was opened and nothing else.
func (l *Locked) link(source Source, name string) bool {
	if source.File == nil || filepath.Dir(source.Path) != resolve(l.PulledDir()) {
		return false
	}
	info, err := source.File.Stat()
	if err != nil || info.Size() != source.Chunks.Size || os.Link(source.Path, name) != nil {
		return false
	}
	linked, err := os.Lstat(name)
	if err == nil && os.SameFile(info, linked) {
		return true
	}
	_ = os.Remove(name)
	return false
}

// copy writes nothing but chunks that were signed.
func (l *Locked) copy(ctx context.Context, out *os.File, source Source, o StageOptions) error {
	if err := durable.Allocate(out, source.Chunks.Size); err != nil {
		return err
	}
	direct := durable.NewDirect(out)
	defer direct.Close()
	whole, err := chunk.Copy(ctx, stepWriter{direct, l.step}, source.Content, source.Chunks, source.Zeros, o.Sink)
	if err != nil {
		return err
	}
	return source.compareWhole(whole)
}

// stepWriter is a writer whose writes can be made to fail, see [Locked].
type stepWriter struct {
	io.WriterAt
	step func(string) error
}

func (w stepWriter) WriteAt(p []byte, offset int64) (int, error) {
	if err := w.step("write"); err != nil {
		return 0, err
	}
	return w.WriterAt.WriteAt(p, offset)
}

// Commit makes the archive an entry of the store, with its bundles. Those of an archive that it replaces are removed.
func (g *Staged) Commit() (Entry, error) {
	l, id := g.store, g.entry.ID()
	err := g.keepBundles() // an entry never lacks its bundles; without an entry they count for nothing
	if err == nil && g.Method != Present {
		if err = g.commit(); err == nil {
			err = l.removeBundles(func(b bundleFile) bool { return b.id == id && l.isStale(b) })
		}
	}
	if err == nil {
		return g.entry, nil
	}
	if _, missing := os.Lstat(l.recordPath(id)); errors.Is(missing, fs.ErrNotExist) {
		if !g.entry.InPlace {
			err = errors.Join(err, removeIfThere(l.archivePath(id))) // without a record it counts for nothing
		}
		err = errors.Join(err, l.removeBundles(func(b bundleFile) bool { return b.id == id }))
	}
	return Entry{}, explainWrite(id, err)
}

func (g *Staged) commit() error {
	l, id := g.store, g.entry.ID()
	data, err := schema.MarshalStored(g.entry.StoredArchive)
	if err != nil {
		return err
	}
	switch {
	case g.entry.InPlace:
		if err = l.writeRecord(l.recordPath(id), data); err != nil {
			return err
		}
		return removeIfThere(l.archivePath(id)) // the one that it replaces
	case !g.next:
		if err = l.nameArchive(id); err != nil {
			return err
		}
		return l.writeRecord(l.recordPath(id), data)
	}
	if err = l.writeRecord(l.nextPath(id), data); err != nil {
		return err
	}
	if err = l.nameArchive(id); err != nil {
		return err
	}
	return l.settle(id)
}

func (l *Locked) nameArchive(id string) error {
	if err := l.step("rename archive"); err != nil {
		return err
	}
	return durable.Rename(l.partialPath(id), l.archivePath(id))
}

func (l *Locked) writeRecord(path string, data []byte) error {
	if err := l.step("write record"); err != nil {
		return err
	}
	return writeShared(path, data)
}

// Discard removes an archive that will not be committed.
func (g *Staged) Discard() error {
	if g.Method == Present || g.Method == InPlace {
		return nil
	}
	if g.next {
		if err := g.store.settle(g.entry.ID()); err != nil {
			return err // the next holder of the lock removes the rest
		}
	}
	return removeIfThere(g.store.partialPath(g.entry.ID()))
}

// Entry returns the entry that Commit makes.
func (g *Staged) Entry() Entry { return g.entry }

// Add stages and commits one archive.
func (l *Locked) Add(ctx context.Context, source Source, o StageOptions) (Entry, Method, error) {
	staged, err := l.Stage(ctx, source, o)
	if err != nil {
		return Entry{}, "", err
	}
	entry, err := staged.Commit()
	if err != nil {
		return Entry{}, "", errors.Join(err, staged.Discard())
	}
	return entry, staged.Method, nil
}

// Remove takes an entry out of the store: its record first, then the archive, unless that is in place, and its bundles.
// An archive that still is open stays readable for those who have it open.
func (l *Locked) Remove(id string) error {
	for _, part := range []struct{ step, path string }{{"remove record", l.recordPath(id)}, {"remove archive", l.archivePath(id)}} {
		if err := l.step(part.step); err != nil {
			return err
		}
		if err := removeIfThere(part.path); err != nil {
			return fmt.Errorf("remove %s from the store: %w", id, err)
		}
		if err := l.step("sync after " + part.step); err != nil {
			return err
		}
		if err := durable.SyncDirectory(l.Dir()); err != nil {
			return err
		}
	}
	if err := l.removeBundles(func(b bundleFile) bool { return b.id == id }); err != nil {
		return err
	}
	return l.cleanPackages()
}

// explainWrite gives an error of bringing an archive its code and hint.
func explainWrite(id string, err error) error {
	coded := &report.Error{}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return report.Errorf(report.NoSpace, "import %s: %w", id, err).
			WithHint("free some space, or leave an archive on a read-only medium where it is with --in-place")
	case report.CodeOf(err) == report.Corrupt && len(report.Hints(err)) == 0:
		return report.Errorf(report.Corrupt, "import %s: %w", id, err).WithHint("copy the archive again; '%s' lists everything that differs", report.Run("verify"))
	case errors.As(err, &coded), errors.Is(err, context.Canceled):
		return fmt.Errorf("import %s: %w", id, err)
	default:
		return report.Errorf(report.Failure, "import %s: %w", id, err)
	}
}
