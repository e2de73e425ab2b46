// Package upload receives archives from browsers, in pieces, each of which is compared with its signed digest when it
// arrives.
//
// A [Spool] is a directory of uploads. An upload begins with the signed digests of the archive ([Offer]);
// [Upload.Append] takes pieces of it in order, and writes only verified chunks. The file is the whole state: an upload
// continues where its file ends, even if the connection or the program was lost. It has one writer at a time.
//
// A spool is bounded: by the signed size, by the number of uploads of a user, by the free space, and by time.
package upload

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

const (
	// Lifetime is for how long an upload is kept.
	Lifetime = 24 * time.Hour

	maxEach  = 2        // uploads of one person
	maxAll   = 32       // of everybody
	maxChunk = 16 << 20 // is in memory while it arrives
	maxState = 32 << 20

	stateSuffix = ".json"
	dataSuffix  = ".part"
)

// Offer describes an archive to send, as it was signed.
type Offer struct {
	Owner    string // as the API server knows the person
	Name     string // of the file, for people
	Solution string
	Version  string
	Chunks   *chunk.List
	Bundles  []sign.NamedBundle
}

// Upload is an archive on its way.
type Upload struct {
	ID      string
	Offer   Offer
	Created time.Time

	spool *Spool
}

// state is an upload on the disk.
type state struct {
	Owner    string             `json:"owner"`
	Name     string             `json:"name"`
	Solution string             `json:"solution"`
	Version  string             `json:"version"`
	Size     int64              `json:"size"`
	Chunks   chunk.List         `json:"chunks"`
	Bundles  []sign.NamedBundle `json:"bundles"`
	Created  time.Time          `json:"created"`
}

// Spool is a directory of uploads. Its methods may be called by several goroutines at once.
type Spool struct {
	dir  string
	now  func() time.Time
	free func(dir string) (int64, error)

	mu       sync.Mutex
	verified map[string]int64 // bytes that this process has compared, by upload
}

// Open opens a spool, whose directory is made for this user alone.
func Open(dir string, now func() time.Time) (*Spool, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err = os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, report.Errorf(report.Usage, "%s is not a directory", dir)
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows", !mine(info):
		return nil, report.Errorf(report.Refused, "other users can read %s", dir).WithHint("give it to the user of the console alone: chmod 0700 %s", report.ShellWord(dir))
	}
	return &Spool{dir: dir, now: now, free: space, verified: map[string]int64{}}, nil
}

func (s *Spool) path(id, suffix string) string { return filepath.Join(s.dir, id+suffix) }

// Create begins an upload, or finds the one of the same person and archive that was begun before.
func (s *Spool) Create(o Offer) (*Upload, error) {
	if err := o.Chunks.Validate(); err != nil {
		return nil, err
	}
	if o.Chunks.ChunkSize > maxChunk {
		return nil, report.Errorf(report.Refused, "the archive was signed in pieces of %s, which are too large to be uploaded", report.Bytes(o.Chunks.ChunkSize)).
			WithHint("import it on the host: %s", report.Run("deploy import", "FILE.iso"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.sweep()
	var own []*Upload
	var missing int64
	for _, u := range all {
		if u.Offer.Owner == o.Owner {
			if u.Offer.Chunks.Size == o.Chunks.Size && u.Offer.Chunks.Equal(o.Chunks) {
				return u, nil
			}
			own = append(own, u)
		}
		missing += u.Offer.Chunks.Size - u.Length()
	}
	if len(own) >= maxEach || len(all) >= maxAll {
		return nil, report.Errorf(report.Refused, "%s under way already", report.Count(len(own), "upload")).WithHint("finish or discard one of them first")
	}
	free, err := s.free(s.dir)
	if err != nil {
		return nil, err
	}
	if left := free - free/10 - missing; o.Chunks.Size > left {
		return nil, report.Errorf(report.Refused, "the archive has %s, and there is room for %s", report.Bytes(o.Chunks.Size), report.Bytes(max(left, 0))).
			WithHint("make room in %s, or import the archive on the host: %s", s.dir, report.Run("deploy import", "FILE.iso"))
	}
	u := &Upload{ID: rand.Text(), Offer: o, Created: s.now().UTC(), spool: s}
	return u, u.write()
}

// write creates a new upload on the disk: an empty file, then its offer.
func (u *Upload) write() error {
	f, err := os.OpenFile(u.spool.path(u.ID, dataSuffix), os.O_WRONLY|os.O_CREATE|os.O_EXCL|noFollow, 0o600)
	if err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	u.spool.verified[u.ID] = 0
	o := u.Offer
	data, err := json.Marshal(state{o.Owner, o.Name, o.Solution, o.Version, o.Chunks.Size, *o.Chunks, o.Bundles, u.Created})
	if err != nil {
		return err
	}
	return durable.WriteNewFile(u.spool.path(u.ID, stateSuffix), data, 0o600)
}

// Find returns an upload of a person.
func (s *Spool) Find(owner, id string) (*Upload, error) {
	u, err := s.read(id)
	if err != nil || u.Offer.Owner != owner { // uploads of other users are not shown
		return nil, report.Errorf(report.NotFound, "there is no such upload of yours").WithHint("one that is older than a day is gone")
	}
	return u, nil
}

// Of lists the uploads of a person, the oldest first.
func (s *Spool) Of(owner string) []*Upload {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(s.sweep(), func(u *Upload) bool { return u.Offer.Owner != owner })
}

// Sweep removes old uploads, and files without an upload.
func (s *Spool) Sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
}

// sweep returns the remaining uploads, the oldest first. The caller holds s.mu.
func (s *Spool) sweep() []*Upload {
	entries, _ := os.ReadDir(s.dir) // an unreadable entry is not removed
	fresh := map[string]bool{}      // by upload, or remainder of one
	for _, entry := range entries {
		name := strings.TrimSuffix(strings.TrimPrefix(entry.Name(), "."), ".partial") // as durable.Partial has it
		for _, suffix := range []string{stateSuffix, dataSuffix} {
			if id, ok := strings.CutSuffix(name, suffix); ok {
				fresh[id] = fresh[id] || !s.old(entry)
			}
		}
	}
	var list []*Upload
	for id, isFresh := range fresh {
		u, err := s.read(id)
		if err == nil && s.now().Sub(u.Created) < Lifetime {
			list = append(list, u)
			continue
		}
		if err != nil && isFresh {
			continue // it may be about to begin
		}
		_ = s.remove(id)
	}
	slices.SortFunc(list, func(a, b *Upload) int { return a.Created.Compare(b.Created) })
	return list
}

func (s *Spool) old(entry fs.DirEntry) bool {
	info, err := entry.Info()
	return err == nil && s.now().Sub(info.ModTime()) >= Lifetime
}

func (s *Spool) remove(id string) error {
	delete(s.verified, id)
	var failed error
	for _, name := range []string{s.path(id, stateSuffix), durable.Partial(s.path(id, stateSuffix)), s.path(id, dataSuffix)} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// read reads an upload. An id comes from a browser: it is nothing but letters and digits.
func (s *Spool) read(id string) (*Upload, error) {
	if len(id) != 26 || strings.ContainsFunc(id, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') }) {
		return nil, fs.ErrNotExist
	}
	if _, err := os.Lstat(s.path(id, dataSuffix)); err != nil { // the power went when one of the two had its name
		return nil, err
	}
	f, err := os.OpenFile(s.path(id, stateSuffix), os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // opened for reading
	data, err := io.ReadAll(io.LimitReader(f, maxState))
	if err != nil {
		return nil, err
	}
	var on state
	if err = json.Unmarshal(data, &on); err != nil {
		return nil, err
	}
	on.Chunks.Size = on.Size
	if err = on.Chunks.Validate(); err != nil {
		return nil, err
	}
	return &Upload{ID: id, Created: on.Created, spool: s, Offer: Offer{on.Owner, on.Name, on.Solution, on.Version, &on.Chunks, on.Bundles}}, nil
}

// Length is how much has arrived.
func (u *Upload) Length() int64 {
	info, err := os.Lstat(u.spool.path(u.ID, dataSuffix))
	if err != nil {
		return 0
	}
	return info.Size()
}

// Changed is when the last piece came.
func (u *Upload) Changed() time.Time {
	info, err := os.Lstat(u.spool.path(u.ID, dataSuffix))
	if err != nil {
		return u.Created
	}
	return info.ModTime()
}

// Complete reports whether all bytes have arrived.
func (u *Upload) Complete() bool { return u.Length() == u.Offer.Chunks.Size }

// Received is the offset at which the upload continues. Bytes that another run of the program has written are verified
// first.
func (u *Upload) Received(ctx context.Context) (int64, error) {
	f, err := u.lock()
	if report.CodeOf(err) == report.Locked { // the writer continues from its own offset
		size := u.Offer.Chunks.ChunkSize
		return u.Length() / size * size, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	return u.settle(ctx, f)
}

// lock opens the file as its only writer.
func (u *Upload) lock() (*os.File, error) {
	f, err := os.OpenFile(u.spool.path(u.ID, dataSuffix), os.O_RDWR|noFollow, 0)
	if err != nil {
		return nil, err
	}
	if !only(f) {
		return nil, errors.Join(report.Errorf(report.Locked, "another connection is sending this archive").WithHint("wait until that connection has ended"), f.Close())
	}
	return f, nil
}

// settle returns the length of the verified part of the file, and truncates the rest, which may be incomplete if the
// program or the power failed.
func (u *Upload) settle(ctx context.Context, f *os.File) (int64, error) {
	u.spool.mu.Lock()
	good, known := u.spool.verified[u.ID]
	u.spool.mu.Unlock()
	if !known {
		var err error
		if good, err = u.compare(ctx, f); err != nil {
			return 0, err
		}
	}
	info, err := f.Stat()
	if err == nil && info.Size() < good {
		good, err = 0, report.Errorf(report.Corrupt, "the spooled file was cut off").WithHint("discard the upload, and begin again")
	}
	if err == nil && info.Size() > good {
		err = f.Truncate(good)
	}
	if err == nil {
		u.remember(good)
	}
	return good, err
}

func (u *Upload) remember(good int64) {
	u.spool.mu.Lock()
	defer u.spool.mu.Unlock()
	u.spool.verified[u.ID] = good
}

func (u *Upload) compare(ctx context.Context, f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	all := u.Offer.Chunks
	whole := int(info.Size() / all.ChunkSize)
	if info.Size() >= all.Size {
		whole = all.Len()
	}
	if whole == 0 {
		return 0, nil
	}
	part := &chunk.List{
		Size: all.Range(whole - 1).To, ChunkSize: all.ChunkSize, Algorithm: all.Algorithm, Digests: all.Digests[:whole*sha256.Size],
	}
	bad, err := chunk.Verify(ctx, f, part, runtime.GOMAXPROCS(0), report.Discard)
	if err != nil || len(bad) == 0 {
		return part.Size, err
	}
	return bad[0].From, nil
}

// Append writes the bytes after offset, until r ends, and returns the next offset. Only complete and verified chunks
// count. A chunk with another digest has the code [report.Corrupt], a wrong offset [report.Conflict], and a second
// writer [report.Locked].
func (u *Upload) Append(ctx context.Context, offset int64, r io.Reader) (at int64, err error) {
	f, err := u.lock()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if at, err = u.settle(ctx, f); err != nil {
		return at, err
	}
	if at != offset {
		return at, report.Errorf(report.Conflict, "the upload continues at byte %d, not at %d", at, offset)
	}
	list := u.Offer.Chunks
	if at == list.Size {
		return at, nil
	}
	buffer := make([]byte, min(list.ChunkSize, list.Size-at))
	for at < list.Size {
		n := int(at / list.ChunkSize)
		piece := buffer[:list.Range(n).Len()]
		if _, err = io.ReadFull(r, piece); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = nil // this was all, or the rest of the chunk is sent again
			}
			break
		}
		if sum := sha256.Sum256(piece); !slices.Equal(sum[:], list.Digests[n*sha256.Size:][:sha256.Size]) {
			err = report.Errorf(report.Corrupt, "bytes %d to %d (%s) differ from those that were signed", at, at+int64(len(piece))-1, hex.EncodeToString(sum[:4])).
				WithHint("the file on your computer is damaged, or is not the one that was signed: get it again from the vendor")
			break
		}
		if _, err = f.WriteAt(piece, at); err != nil {
			err = explain(err)
			break
		}
		at += int64(len(piece))
		u.remember(at)
	}
	return at, errors.Join(err, f.Sync())
}

func explain(err error) error {
	return report.Errorf(report.Unavailable, "the piece could not be written: %w", err).WithHint("the received part is kept; free some space, then continue")
}

// Open opens the archive for reading, which has arrived as a whole.
func (u *Upload) Open() (*os.File, error) {
	if !u.Complete() {
		return nil, report.Errorf(report.Usage, "%s has not arrived as a whole", u.Offer.Name)
	}
	f, err := durable.OpenNoFollow(u.spool.path(u.ID, dataSuffix))
	if err != nil {
		return nil, fmt.Errorf("open the upload: %w", err)
	}
	return f, nil
}

// Discard removes an upload. A missing one is not an error.
func (u *Upload) Discard() error {
	u.spool.mu.Lock()
	defer u.spool.mu.Unlock()
	return errors.Join(u.spool.remove(u.ID), durable.SyncDirectory(u.spool.dir))
}
