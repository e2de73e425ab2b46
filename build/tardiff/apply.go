package tardiff

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/solutionctl/solutionctl/schema/report"
)

// bufferSize is the size in bytes of the pieces in which data is read.
const bufferSize = 64 << 10

// Apply writes the tar file of size bytes that a patch makes from an old one. It fails with [report.Invalid] for a patch that
// does not make exactly as many, reads anything but the files of the old tar file, or has more operations than these bytes need.
func Apply(ctx context.Context, w io.Writer, patch io.Reader, old Tar, size int64) error {
	start := make([]byte, len(header))
	if _, err := io.ReadFull(patch, start); err != nil || string(start) != header {
		return report.Errorf(report.Invalid, "it does not begin as a patch does")
	}
	a := &applier{ctx: ctx, w: w, old: old, left: size, seed: maphash.MakeSeed(), files: map[uint64]extent{}, buffer: make([]byte, bufferSize)}
	if err := a.index(); err != nil {
		return err
	}
	z, err := zstd.NewReader(patch, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(2*window))
	if err != nil {
		return err
	}
	defer z.Close()
	// Each byte that is made may cost two of the stream: an honest writer needs little more than one.
	a.r = bufio.NewReaderSize(&bounded{z, 2*size + 1<<20}, bufferSize)
	return a.run()
}

// extent is where the content of a file is in its tar file.
type extent struct{ at, size int64 }

// applier is a patch on its way.
type applier struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one call of Apply
	w      io.Writer
	r      *bufio.Reader
	old    Tar
	seed   maphash.Seed
	files  map[uint64]extent // by the hash of the name: two names with one are found out by the digest of the result
	open   extent
	at     int64 // in the open file
	left   int64 // bytes of the result
	buffer []byte
}

// index finds the files that the patch may open. The last of several with one name counts, as when a tar file is unpacked.
func (a *applier) index() error {
	err := a.old.walk(a.ctx, func(f file) {
		a.files[maphash.String(a.seed, f.name)] = extent{f.at, f.size}
	}, func(name string) { delete(a.files, maphash.String(a.seed, name)) })
	if report.CodeOf(err) == report.Invalid {
		return report.Errorf(report.Invalid, "the file that the patch changes: %w", err)
	}
	return err
}

func (a *applier) run() error {
	for {
		if a.ctx.Err() != nil {
			return context.Cause(a.ctx)
		}
		op, err := a.r.ReadByte()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return damaged(err)
		}
		size, err := binary.ReadUvarint(a.r)
		if err != nil {
			return damaged(err)
		}
		if err = a.do(operation(op), size); err != nil {
			return err
		}
	}
	if a.left > 0 {
		return report.Errorf(report.Invalid, "the patch ends %d bytes before the end of its result", a.left)
	}
	return nil
}

func (a *applier) do(op operation, size uint64) error {
	switch op {
	case opOpen:
		return a.openFile(size)
	case opSeek:
		if size > uint64(a.open.size) { //nolint:gosec // not negative
			return report.Errorf(report.Invalid, "the patch reads behind the end of a file")
		}
		a.at = int64(size) //nolint:gosec // compared before
		return nil
	case opData, opCopy, opAdd:
		if size > uint64(a.left) { //nolint:gosec // not negative
			return report.Errorf(report.Invalid, "the patch makes more bytes than expected")
		}
		if op != opData && size > uint64(a.open.size-a.at) { //nolint:gosec // not negative
			return report.Errorf(report.Invalid, "the patch reads behind the end of a file")
		}
		return a.make(op, int64(size)) //nolint:gosec // compared before
	}
	return report.Errorf(report.Invalid, "the patch has the unknown operation %d", op)
}

func (a *applier) openFile(size uint64) error {
	if size > maxName {
		return report.Errorf(report.Invalid, "the patch opens a file whose name has %d bytes", size)
	}
	name := a.buffer[:size]
	if _, err := io.ReadFull(a.r, name); err != nil {
		return damaged(err)
	}
	found, ok := a.files[maphash.String(a.seed, cleanName(string(name)))]
	if !ok {
		return report.Errorf(report.Invalid, "the patch opens %q, which the old tar file does not have", name)
	}
	a.open, a.at = found, 0
	return nil
}

// make makes size bytes of the result.
func (a *applier) make(op operation, size int64) error {
	half := a.buffer[:bufferSize/2]
	for size > 0 {
		if a.ctx.Err() != nil {
			return context.Cause(a.ctx)
		}
		piece := half[:min(size, int64(len(half)))]
		if op == opData {
			if _, err := io.ReadFull(a.r, piece); err != nil {
				return damaged(err)
			}
		} else if err := a.readOld(op, piece); err != nil {
			return err
		}
		if _, err := a.w.Write(piece); err != nil {
			return err
		}
		size, a.left = size-int64(len(piece)), a.left-int64(len(piece))
	}
	return nil
}

// readOld reads the next bytes of the open file, and adds those of the patch.
func (a *applier) readOld(op operation, piece []byte) error {
	if n, err := a.old.ReadAt(piece, a.open.at+a.at); n < len(piece) {
		return err
	}
	a.at += int64(len(piece))
	if op == opCopy {
		return nil
	}
	added := a.buffer[bufferSize/2:][:len(piece)]
	if _, err := io.ReadFull(a.r, added); err != nil {
		return damaged(err)
	}
	for i, b := range added {
		piece[i] += b
	}
	return nil
}

// damaged is the error of a stream of operations that cannot be read.
func damaged(err error) error {
	if report.CodeOf(err) == report.Invalid {
		return err
	}
	return report.Errorf(report.Corrupt, "the operations of the patch cannot be read: %w", err)
}

// bounded reads at most left bytes.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, report.Errorf(report.Invalid, "the patch has more operations than its result needs")
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
