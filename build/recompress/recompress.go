package recompress

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	klauspost "github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/klauspost/pgzip"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Codec names a compressor and its level. Its zero value is none.
type Codec string

// codec is a compressor at a level.
type codec struct {
	name  Codec
	magic string // its first bytes
	open  func(w io.Writer) (io.WriteCloser, error)
}

const (
	gzipMagic = "\x1f\x8b\x08"
	zstdMagic = "\x28\xb5\x2f\xfd"
)

// maxWindow bounds the memory for zstandard, in bytes: the window of its common levels.
const maxWindow = 8 << 20

// codecs are all codecs, those that are found most often first.
func codecs() []codec {
	var list []codec
	for _, level := range []int{6, 1, 5, 9, 4, 3, 2, 7, 8} {
		list = append(list,
			codec{Codec(fmt.Sprintf("gzip-go-%d", level)), gzipMagic, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriterLevel(w, level) }},
			codec{Codec(fmt.Sprintf("pgzip-%d", level)), gzipMagic, func(w io.Writer) (io.WriteCloser, error) { return newPgzip(w, level) }},
		)
	}
	for _, level := range []zstd.EncoderLevel{zstd.SpeedDefault, zstd.SpeedFastest, zstd.SpeedBetterCompression} {
		list = append(list, codec{Codec("zstd-klauspost-" + level.String()), zstdMagic, func(w io.Writer) (io.WriteCloser, error) {
			return zstd.NewWriter(w, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
		}})
	}
	return append(list, codec{"none", "", func(w io.Writer) (io.WriteCloser, error) { return plain{w}, nil }})
}

// newPgzip returns a pgzip.Writer with the blocks of 1 MiB that every tool uses; their number changes nothing but the memory.
func newPgzip(w io.Writer, level int) (io.WriteCloser, error) {
	z, err := pgzip.NewWriterLevel(w, level)
	if err == nil {
		err = z.SetConcurrency(1<<20, 1)
	}
	return z, err
}

type plain struct{ io.Writer }

func (plain) Close() error { return nil }

// NewWriter returns a writer that compresses. It fails with [report.Mismatch] for a codec that this program does not have.
func (c Codec) NewWriter(w io.Writer) (io.WriteCloser, error) {
	for _, known := range codecs() {
		if known.name == c {
			return known.open(w)
		}
	}
	return nil, report.Errorf(report.Mismatch, "this program does not have the codec %q", string(c))
}

// Memory is how many bytes a writer of the codec takes, with its garbage.
func (c Codec) Memory() int64 {
	switch {
	case strings.HasPrefix(string(c), "gzip-go"):
		return 2 << 20
	case c == "none":
		return 0
	}
	return 14 << 20
}

// Find returns the codec that compresses the second reader to exactly the bytes of the first one; "" when there is none.
func Find(ctx context.Context, compressed, content *io.SectionReader) (Codec, error) {
	magic := make([]byte, len(zstdMagic))
	n, err := compressed.ReadAt(magic, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	kind := kindOf(magic[:n])
	for _, known := range codecs() {
		if known.magic != kind {
			continue
		}
		same, err := known.makes(ctx, compressed, content)
		if same || err != nil {
			return known.name, err
		}
	}
	return "", nil
}

// kindOf returns the magic bytes with which data begins, "" for any others.
func kindOf(data []byte) string {
	for _, magic := range []string{gzipMagic, zstdMagic} {
		if bytes.HasPrefix(data, []byte(magic)) {
			return magic
		}
	}
	return ""
}

// makes compresses content until the first byte that differs.
func (k codec) makes(ctx context.Context, compressed, content *io.SectionReader) (bool, error) {
	expected := &comparison{r: bufio.NewReader(io.NewSectionReader(compressed, 0, compressed.Size()))}
	w, err := k.open(expected)
	if err != nil {
		return false, err
	}
	// In pieces of 32 KiB: an Encoder's own ReadFrom would not notice the end of the context.
	_, err = io.Copy(struct{ io.Writer }{w}, contextReader{ctx, io.NewSectionReader(content, 0, content.Size())})
	if failed := w.Close(); err == nil {
		err = failed
	}
	switch {
	case errors.Is(err, errDiffers):
		return false, nil
	case err != nil:
		return false, err
	}
	return expected.done == compressed.Size(), nil
}

// errDiffers ends a comparison.
var errDiffers = errors.New("the bytes differ")

// comparison is a writer that compares its input with the bytes of r.
type comparison struct {
	r      *bufio.Reader
	done   int64
	buffer []byte
}

func (c *comparison) Write(p []byte) (int, error) {
	if len(c.buffer) < len(p) {
		c.buffer = make([]byte, len(p))
	}
	want := c.buffer[:len(p)]
	if _, err := io.ReadFull(c.r, want); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, err
	} else if err != nil || !bytes.Equal(p, want) {
		return 0, errDiffers
	}
	c.done += int64(len(p))
	return len(p), nil
}

// NewReader decompresses gzip and zstandard, and returns any other content as it is.
func NewReader(r io.Reader) (io.ReadCloser, error) {
	b := bufio.NewReader(r)
	magic, err := b.Peek(len(zstdMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch kindOf(magic) {
	case gzipMagic:
		return klauspost.NewReader(b)
	case zstdMagic:
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return io.NopCloser(b), nil
}

type contextReader struct {
	ctx context.Context //nolint:containedctx // it lives as long as one copy
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}
