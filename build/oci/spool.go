package oci

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/solutionctl/solutionctl/schema/report"
)

// maxSpool bounds what a compressed tar may expand to.
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
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	var head [8]byte
	if info.Mode().IsRegular() {
		n, err := f.ReadAt(head[:], 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, errors.Join(err, f.Close())
		}
		if compressionOf(head[:n]) == uncompressed {
			return newTarball(ctx, f, info.Size(), f.Close)
		}
	}
	defer func() { _ = f.Close() }()
	return spoolTarball(ctx, f, dir)
}

// spoolTarball copies a stream, decompressed, to a temporary file in dir and indexes that.
func spoolTarball(ctx context.Context, r io.Reader, dir string) (*tarball, error) {
	plain, err := decompress(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = plain.Close() }()
	tmp, err := os.CreateTemp(dir, "spool-*")
	if err != nil {
		return nil, err
	}
	remove := func() error { return errors.Join(tmp.Close(), os.Remove(tmp.Name())) }
	n, err := io.Copy(tmp, io.LimitReader(contextReader{ctx, plain}, maxSpool+1))
	switch {
	case errors.Is(err, syscall.ENOSPC):
		err = report.Errorf(report.NoSpace, "spool tar file: %w", err).WithHint("free space in %s, or choose another cache directory", dir)
	case err != nil && ctx.Err() == nil:
		err = report.Errorf(report.Corrupt, "read tar file: %w", err)
	case n > maxSpool:
		err = report.Errorf(report.Invalid, "tar file has more than %d GiB", maxSpool>>30)
	}
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	return newTarball(ctx, tmp, n, remove)
}

func newTarball(ctx context.Context, r io.ReaderAt, size int64, closer func() error) (*tarball, error) {
	t, err := indexTar(ctx, r, size)
	if err != nil {
		return nil, errors.Join(err, closer())
	}
	return &tarball{t, []func() error{closer}}, nil
}

// compression is how a stream is compressed, told by its first bytes.
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
func decompress(r io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	head, err := buffered.Peek(8)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch kind := compressionOf(head); kind {
	case gzipped:
		return gzip.NewReader(buffered)
	case zstandard:
		d, err := zstd.NewReader(buffered, zstd.WithDecoderMaxWindow(128<<20))
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
