package oci

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

// maxSpool bounds the expanded size of a compressed tar, in bytes.
const maxSpool = 256 << 30

// tarball is an opened tar file: the file itself when it is uncompressed and seekable, else a temporary copy.
type tarball struct {
	*tarFile
	closers []func() error
}

func (t *tarball) Close() error {
	var errs []error
	for _, closer := range t.closers {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}

// openTarball indexes a tar file on disk, spooling it into dir first when it is compressed or cannot seek.
func openTarball(ctx context.Context, name, dir string) (*tarball, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return os.Open(name) }
	if !info.Mode().IsRegular() {
		return spoolTarball(ctx, open, dir)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	var head [8]byte
	n, err := f.ReadAt(head[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, f.Close())
	}
	if compressionOf(head[:n]) == uncompressed {
		return newTarball(ctx, f, info.Size(), f.Close)
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return spoolTarball(ctx, open, dir)
}

// stream reads from a source that may block for ever, even when it is opened: a FIFO, or standard input. It ends with
// its context, and then leaves the blocked goroutine behind.
func stream(ctx context.Context, open func() (io.ReadCloser, error)) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		source, err := open()
		if err == nil {
			_, err = io.CopyBuffer(w, struct{ io.Reader }{source}, make([]byte, 1<<18))
			err = errors.Join(err, source.Close())
		}
		_ = w.CloseWithError(err) // the reader gets it
	}()
	stop := context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
	return closing{r, func() error {
		stop()
		return r.Close()
	}}
}

type closing struct {
	io.Reader
	close func() error
}

func (c closing) Close() error { return c.close() }

// spoolTarball copies a stream, decompressed, to a temporary file in dir and indexes that.
func spoolTarball(ctx context.Context, open func() (io.ReadCloser, error), dir string) (*tarball, error) {
	r := stream(ctx, open)
	defer func() { _ = r.Close() }()
	plain, err := decompress(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = plain.Close() }()
	tmp, err := durable.NewScratch(dir)
	if err != nil {
		return nil, err
	}
	n, err := io.Copy(tmp, io.LimitReader(contextReader{ctx, plain}, maxSpool+1))
	switch {
	case errors.Is(err, syscall.ENOSPC):
		err = report.Errorf(report.NoSpace, "spool tar file: %w", err).WithHint("free space in %s", filepath.Dir(tmp.Name()))
	case ctx.Err() != nil:
		err = ctx.Err()
	case err != nil:
		err = report.Errorf(report.Corrupt, "read tar file: %w", err)
	case n > maxSpool:
		err = report.Errorf(report.Invalid, "tar file has more than %d GiB", maxSpool>>30)
	}
	if err != nil {
		return nil, errors.Join(err, tmp.Close())
	}
	return newTarball(ctx, tmp, n, tmp.Close)
}

func newTarball(ctx context.Context, r io.ReaderAt, size int64, closer func() error) (*tarball, error) {
	t, err := indexTar(ctx, r, size)
	if err != nil {
		return nil, errors.Join(err, closer())
	}
	return &tarball{t, []func() error{closer}}, nil
}

// compression is the format of a stream, recognized by its first bytes.
type compression string

const (
	uncompressed compression = ""
	gzipped      compression = "gzip"
	zstandard    compression = "zstd"
	bzipped      compression = "bzip2"
	xzipped      compression = "xz"
)

func compressionOf(head []byte) compression {
	for _, c := range []struct {
		magic string
		kind  compression
	}{{"\x1f\x8b", gzipped}, {"\x28\xb5\x2f\xfd", zstandard}, {"BZh", bzipped}, {"\xfd7zXZ\x00", xzipped}} {
		if bytes.HasPrefix(head, []byte(c.magic)) {
			return c.kind
		}
	}
	return uncompressed
}

// decompress returns the plain form of a stream.
func decompress(r io.Reader, zstandardOptions ...zstd.DOption) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	head, err := buffered.Peek(8)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch kind := compressionOf(head); kind {
	case gzipped:
		return gzip.NewReader(buffered)
	case zstandard:
		d, err := zstd.NewReader(buffered, append(zstandardOptions, zstd.WithDecoderMaxWindow(128<<20))...)
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	case bzipped:
		return io.NopCloser(bzip2.NewReader(buffered)), nil
	case xzipped:
		return nil, report.Errorf(report.Invalid, "the tar file is compressed with xz").WithHint("decompress it first: `unxz FILE`")
	default:
		return io.NopCloser(buffered), nil
	}
}

// decompressLayer is decompress for what container runtimes unpack: gzip and zstandard.
func decompressLayer(r io.Reader, zstandardOptions ...zstd.DOption) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	if head, _ := buffered.Peek(8); compressionOf(head) == bzipped { // decompress reports why it cannot be read
		return nil, report.Errorf(report.Invalid, "it is compressed with bzip2, which container runtimes do not unpack")
	}
	return decompress(buffered, zstandardOptions...)
}

// contextReader stops a long copy when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
