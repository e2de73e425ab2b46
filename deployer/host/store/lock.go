package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Locked is a store whose lock this process holds.
type Locked struct {
	*Store
	lock *flock.Flock
}

// Lock takes the lock of the store, creates its directories, and removes the remains of a killed process. It fails with
// [report.Locked] when another process holds the lock.
func (s *Store) Lock() (*Locked, error) { return s.LockWithin(context.Background(), 0, nil) }

// LockWithin is like [Store.Lock], but waits for another process to release the lock, and reports that to the sink
// unless it is nil.
func (s *Store) LockWithin(ctx context.Context, wait time.Duration, sink report.Sink) (*Locked, error) {
	if err := s.prepare(); err != nil {
		return nil, explainAccess(err)
	}
	lock := flock.New(filepath.Join(s.dir, lockFile), flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	if err == nil && !locked && wait > 0 {
		if sink != nil {
			sink.Emit(report.Event{Step: "lock", Name: s.dir, State: report.Started, Note: "another process is changing the store"})
		}
		waiting, stop := context.WithTimeout(ctx, wait)
		defer stop()
		if locked, err = lock.TryLockContext(waiting, lockPause); waiting.Err() != nil {
			locked, err = false, ctx.Err()
		}
		if locked && sink != nil {
			sink.Emit(report.Event{Step: "lock", Name: s.dir, State: report.Done})
		}
	}
	if err != nil {
		return nil, errors.Join(explainAccess(err), lock.Close())
	}
	if !locked {
		return nil, report.Errorf(report.Locked, "another process is changing the store %s", s.dir).
			WithHint("wait until the other import or unimport has finished, with --lock-wait 5m for instance, then run the command again")
	}
	l := &Locked{Store: s, lock: lock}
	if err := l.clean(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return l, nil
}

// lockPause is the time between two looks at the lock.
const lockPause = 100 * time.Millisecond

// Tidy removes the remains of a killed process, for a caller that changes nothing else. It waits like
// [Store.LockWithin].
func (s *Store) Tidy(ctx context.Context, wait time.Duration, sink report.Sink) error {
	locked, err := s.LockWithin(ctx, wait, sink)
	if err != nil {
		return err
	}
	return locked.Unlock()
}

// Unlock gives the lock back. It may be called again.
func (l *Locked) Unlock() error { return l.lock.Close() }

// prepare creates the directories of a store, for root and the users with permission to read it.
func (s *Store) prepare() error {
	for _, dir := range []string{s.dir, s.Dir()} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			continue
		}
		if err := s.step("make " + filepath.Base(dir)); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return err
		}
		if err := errors.Join(os.Chmod(dir, 0o750), allowGroup(dir)); err != nil {
			return err
		}
		if err := durable.SyncDirectory(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	return nil
}

// clean finishes interrupted replacements, and removes the remains of interrupted additions and removals: unfinished
// files, archives without a record, and bundles of archives that are not in the store.
func (l *Locked) clean() error {
	names, err := os.ReadDir(l.Dir())
	if err != nil {
		return err
	}
	for _, entry := range names {
		if id, ok := strings.CutSuffix(entry.Name(), recordSuffix+nextSuffix); ok {
			if err := l.settle(id); err != nil {
				return err
			}
		}
	}
	for _, entry := range names {
		name := entry.Name()
		id, isArchive := strings.CutSuffix(name, archiveSuffix)
		leftover := strings.HasSuffix(name, partialSuffix)
		if isArchive {
			_, err := os.Lstat(l.recordPath(id))
			leftover = errors.Is(err, fs.ErrNotExist)
		}
		if !leftover {
			continue
		}
		if err := l.step("clean"); err != nil {
			return err
		}
		if err := os.Remove(filepath.Join(l.Dir(), name)); err != nil {
			return err
		}
	}
	if err := l.removeBundles(l.isStale); err != nil {
		return err
	}
	return l.cleanPackages()
}

// settle ends a replacement that has its record: forward when the new archive has its name, else back.
func (l *Locked) settle(id string) error {
	if err := l.step("settle"); err != nil {
		return err
	}
	if l.replacing(id) {
		return durable.Rename(l.nextPath(id), l.recordPath(id))
	}
	if err := removeIfThere(l.nextPath(id)); err != nil {
		return err
	}
	// Without its archive the record would count, so the medium has to lose it first.
	return durable.SyncDirectory(l.Dir())
}
