package build

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

// partialSuffix is appended to an archive's name while it is being written.
const partialSuffix = ".partial"

const (
	// copyBufferSize is the size in bytes of what is read, hashed and written at a time: it stays in a processor's cache.
	copyBufferSize = 256 << 10
	// writebackSize is after how many bytes of an extent writing to the medium is begun.
	writebackSize = 8 << 20
	// minTransfer is the size from which copying an extent is worth an event of its own.
	minTransfer = 256 << 10
)

// WriteOptions say how an archive is written. The zero value is ready to use.
type WriteOptions struct {
	Jobs       int         // extents written at once; 0: 4
	ImplantMD5 bool        // implant the checksum of isomd5sum
	Sink       report.Sink // nil: report.Discard

	// Follow is called with the file when its size is known, and may return nil.
	Follow func(f io.ReaderAt, size int64) (Follower, error)
}

// Follower reads a file behind the writing, while its pages are still in memory, in order to hash it.
type Follower interface {
	// Complete reports that n bytes from offset on have their final value, padding included. It must be safe for
	// concurrent use, also for overlapping ranges. The last call is for the whole file.
	Complete(offset, n int64)
	// Wait returns when the follower does not need the file any more. It is not called when the writing fails.
	Wait() error
}

// noFollower follows nothing.
type noFollower struct{}

func (noFollower) Complete(int64, int64) {}
func (noFollower) Wait() error           { return nil }

// Result describes the archive that was written.
type Result struct {
	Path         string        `json:"path"`
	Size         int64         `json:"size"`
	Images       int           `json:"images"`
	Blobs        int           `json:"blobs"`             // distinct configurations, layers and artifact files
	BytesSaved   int64         `json:"bytesSaved"`        // bytes that are stored once instead of several times
	BytesWritten int64         `json:"bytesWritten"`      // 0 to Size; less than Size when an interrupted build was resumed
	BytesResumed int64         `json:"bytesResumed"`      // bytes that an interrupted build had written already
	LeftOut      []string      `json:"leftOut,omitempty"` // as in [Plan]
	Elapsed      time.Duration `json:"elapsedNanoseconds"`
}

// Write writes the archive to path. The bytes go to path + [partialSuffix], which is renamed when it is complete,
// checked and on the medium; whatever happens before that, path is untouched. A partial file that an interrupted Write
// of the same plan left is completed: extents in it that already have the right digest are not read from their sources
// again.
//
// Every extent is hashed on its way and a wrong digest fails with [report.Corrupt]. Cancelling ctx fails with
// [report.Interrupted].
func (p *Plan) Write(ctx context.Context, path string, o WriteOptions) (*Result, error) {
	started := time.Now() //nolint:forbidigo // a duration for the summary, never written into an archive
	o.Sink = cmp.Or(o.Sink, report.Discard)
	out, err := openPartial(path + partialSuffix)
	if err != nil {
		return nil, describeWriteError(path, err)
	}
	w := &writer{plan: p, out: out.file, sink: o.Sink, follower: noFollower{}}
	if err = errors.Join(w.write(ctx, o), out.file.Close()); err == nil {
		err = out.publish(path)
	}
	if err = errors.Join(err, out.lock.Close()); err != nil {
		return nil, describeWriteError(path, err)
	}
	return &Result{
		Path: path, Size: p.image.Size(), Images: len(p.Images), Blobs: p.blobCount(), BytesSaved: p.bytesSaved(),
		BytesWritten: w.written, BytesResumed: w.resumed, LeftOut: p.LeftOut, Elapsed: time.Since(started),
	}, nil
}

// partial is the file under construction, locked against a second build of the same archive.
type partial struct {
	file *os.File
	lock *flock.Flock
}

// openPartial opens the file under construction. What an earlier build gives its final name in the meantime is not it, and a symbolic link, which
// another user of the directory may have made, is refused.
func openPartial(name string) (*partial, error) {
	for {
		p, err := lockPartial(name)
		if err != nil {
			return nil, err
		}
		opened, err := p.file.Stat()
		var there os.FileInfo
		if err == nil {
			there, err = os.Lstat(name)
		}
		if err == nil && !there.Mode().IsRegular() {
			err = refusePartial(name)
		}
		if err == nil && os.SameFile(opened, there) {
			return p, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err = errors.Join(err, p.file.Close(), p.lock.Close()); err != nil {
			return nil, err
		}
	}
}

// lockPartial opens a file, and then takes the lock on what has its name.
func lockPartial(name string) (*partial, error) {
	const flags = os.O_CREATE | os.O_RDWR | durable.NoFollow
	file, err := os.OpenFile(name, flags, 0o644)
	if errors.Is(err, syscall.ELOOP) {
		return nil, refusePartial(name)
	}
	if err != nil {
		return nil, err
	}
	lock := flock.New(name, flock.SetFlag(flags), flock.SetPermissions(0o644))
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = report.Errorf(report.Failure, "another process is writing %s", name).
			WithHint("wait until it has finished, or write to another file with --to")
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &partial{file, lock}, nil
}

func refusePartial(name string) error {
	return report.Errorf(report.Failure, "%s is not a regular file: nothing is written into it", name).
		WithHint("remove it, or write to a directory in which no other user can make files")
}

// publish gives the file its final name while it is locked, so that no other build writes into a finished archive.
func (p *partial) publish(path string) error {
	if runtime.GOOS == "windows" { // where an open file keeps its name
		if err := p.lock.Close(); err != nil {
			return err
		}
	}
	return durable.Rename(p.lock.Path(), path)
}

// writer fills one partial file.
type writer struct {
	plan     *Plan
	out      *os.File
	sink     report.Sink
	follower Follower

	mu               sync.Mutex // guards the fields below
	written, resumed int64
}

func (w *writer) write(ctx context.Context, o WriteOptions) error {
	size := w.plan.image.Size()
	resuming, err := w.prepare(size)
	if err != nil {
		return err
	}
	if !o.ImplantMD5 { // which changes the first bytes at the very end
		if err = w.follow(o, size); err != nil {
			return err
		}
	}
	w.follower.Complete(0, w.plan.image.MetadataSize())
	if err = w.fillExtents(ctx, o.Jobs, resuming); err != nil {
		return err
	}
	if o.ImplantMD5 {
		if err = errors.Join(iso.ImplantMD5(w.out, size), w.follow(o, size)); err != nil {
			return err
		}
	}
	if err = w.check(size); err != nil {
		return err
	}
	w.follower.Complete(0, size)
	return errors.Join(w.out.Sync(), w.follower.Wait())
}

func (w *writer) follow(o WriteOptions, size int64) error {
	if o.Follow == nil {
		return nil
	}
	follower, err := o.Follow(w.out, size)
	if err != nil || follower == nil {
		return err
	}
	w.follower = follower
	return nil
}

// prepare gives the file its size, the space for it, and its metadata. It reports whether the file already had both, so that its extents
// are worth looking at.
func (w *writer) prepare(size int64) (resuming bool, err error) {
	info, err := w.out.Stat()
	if err != nil {
		return false, err
	}
	if info.Size() == size {
		same := &comparingWriter{r: w.out}
		if w.plan.image.WriteMetadata(same) == nil {
			return true, nil
		}
	}
	if err = errors.Join(w.out.Truncate(0), durable.Allocate(w.out, size), w.out.Truncate(size)); err != nil {
		return false, err
	}
	metadata := &progressWriter{w: io.NewOffsetWriter(w.out, 0), progress: func(n int64) { w.written = n }}
	return false, w.plan.image.WriteMetadata(metadata)
}

func (w *writer) fillExtents(ctx context.Context, jobs int, resuming bool) error {
	if jobs <= 0 {
		jobs = 4
	}
	buffers := sync.Pool{New: func() any { return make([]byte, copyBufferSize) }}
	group, groupContext := errgroup.WithContext(ctx)
	group.SetLimit(jobs)
	for _, extent := range w.plan.image.Extents() {
		if groupContext.Err() != nil {
			break
		}
		group.Go(func() error {
			buffer := buffers.Get().([]byte)
			defer buffers.Put(buffer) //nolint:staticcheck // a slice header per extent is nothing beside the extent
			return w.fill(groupContext, extent, resuming, buffer)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// fill brings one extent to its final bytes.
func (w *writer) fill(ctx context.Context, extent iso.Extent, resuming bool, buffer []byte) error {
	blob := w.plan.content[extent.Key]
	if blob.Release != nil {
		defer blob.Release()
	}
	event := report.Event{Step: "write", Name: blob.name, Total: extent.Size}
	if extent.Size >= minTransfer {
		w.emit(event, report.Started, 0)
	}
	if resuming && w.has(extent, blob.Descriptor, buffer) {
		event.Note = "written before"
		w.finish(extent, event, report.Skipped, &w.resumed)
		return nil
	}
	if err := w.copy(ctx, extent, blob, event, buffer); err != nil {
		w.emit(event, report.Failed, 0)
		return fmt.Errorf("%s: %w", blob.name, err)
	}
	w.finish(extent, event, report.Done, &w.written)
	return nil
}

// finish accounts for an extent that has its final bytes.
func (w *writer) finish(extent iso.Extent, event report.Event, state report.State, counter *int64) {
	w.mu.Lock()
	*counter += extent.Size
	w.mu.Unlock()
	if extent.Size >= minTransfer {
		w.emit(event, state, extent.Size)
	}
	w.follower.Complete(extent.Offset, (extent.Size+iso.ExtentAlignment-1)/iso.ExtentAlignment*iso.ExtentAlignment)
}

// has reports whether the extent holds the right bytes already.
func (w *writer) has(extent iso.Extent, d oci.Descriptor, buffer []byte) bool {
	r := oci.VerifyReader(io.NewSectionReader(w.out, extent.Offset, extent.Size), d)
	_, err := io.CopyBuffer(writerOnly{io.Discard}, r, buffer)
	return err == nil
}

func (w *writer) copy(ctx context.Context, extent iso.Extent, blob content, event report.Event, buffer []byte) error {
	source, err := blob.Open(ctx, 0)
	if err != nil {
		return err
	}
	verified := oci.VerifyReader(source, blob.Descriptor)
	var flushed int64
	progress := &progressWriter{w: io.NewOffsetWriter(w.out, extent.Offset), progress: func(n int64) {
		w.follower.Complete(extent.Offset, n) // should the digest be wrong in the end, nothing is published
		if n-flushed >= writebackSize {
			durable.StartWriteback(w.out, extent.Offset+flushed, n-flushed)
			flushed = n
		}
		if extent.Size >= minTransfer {
			w.emit(event, report.Running, n)
		}
	}}
	_, err = io.CopyBuffer(progress, readerOnly{ctx, verified}, buffer)
	return errors.Join(err, source.Close())
}

func (w *writer) emit(e report.Event, state report.State, done int64) {
	e.State, e.Done = state, done
	w.sink.Emit(e)
}

// check examines the finished file with both parsers, as its readers will.
func (w *writer) check(size int64) error {
	findings := append(iso.Check(w.out, size), iso.CompareDiskFS(w.out, size)...)
	for _, f := range findings {
		if f.Severity == report.SeverityError {
			return report.Errorf(report.Corrupt, "the archive just written does not pass its own check: %s", f).
				WithHint("this is a defect of solutionctl or of the medium; please report it")
		}
	}
	return nil
}

// describeWriteError gives an error of writing its code and hint.
func describeWriteError(path string, err error) error {
	var coded *report.Error
	switch {
	case errors.Is(err, context.Canceled):
		return report.Errorf(report.Interrupted, "write %s: interrupted", path).
			WithHint("run the same command again: it completes %s", path+partialSuffix)
	case errors.Is(err, syscall.ENOSPC):
		return report.Errorf(report.NoSpace, "write %s: %w", path, err).
			WithHint("free some space, or name a directory on another device with --to; the same command then completes the work")
	case errors.As(err, &coded):
		return fmt.Errorf("write %s: %w", path, err)
	default:
		return report.Errorf(report.Failure, "write %s: %w", path, err)
	}
}

// errDifferent ends a comparison at the first difference.
var errDifferent = errors.New("contents differ")

// comparingWriter accepts only the bytes of its reader.
type comparingWriter struct {
	r      io.ReaderAt
	offset int64
	buffer []byte
}

func (c *comparingWriter) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if cap(c.buffer) < len(b) {
		c.buffer = make([]byte, len(b))
	}
	have := c.buffer[:len(b)]
	if n, err := c.r.ReadAt(have, c.offset); n < len(b) {
		return 0, err
	}
	if !bytes.Equal(have, b) {
		return 0, errDifferent
	}
	c.offset += int64(len(b))
	return len(b), nil
}

// progressWriter reports how much was written in all after each write.
type progressWriter struct {
	w        io.Writer
	n        int64
	progress func(int64)
}

func (p *progressWriter) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	p.n += int64(n)
	p.progress(p.n)
	return n, err
}

// writerOnly and readerOnly hide methods that would make io.CopyBuffer ignore the buffer; readerOnly also ends a copy
// whose context is done.
type writerOnly struct{ io.Writer }

type readerOnly struct {
	ctx context.Context
	r   io.Reader
}

func (r readerOnly) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}
