package delta

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// The files of a delta, in this order.
const (
	documentName = "delta.json"
	bundlesDir   = "bundles/"
	frameName    = "frame.zst"
	blobsDir     = "blobs/sha256/"
	patchesDir   = "patches/sha256/"
)

// tarBlock is the unit of tar files in bytes; two blocks of zeros end one.
const tarBlock = 512

// maxDocument bounds delta.json.
const maxDocument = 4 << 20

// maxBundles bounds the bytes of all signatures, which are in memory together.
const maxBundles = 512 << 20

// header is the one block before the content of a file. A file of a size and a name has exactly this one.
func header(name string, size int64) []byte {
	var b bytes.Buffer
	err := tar.NewWriter(&b).WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatGNU,
	})
	if err != nil || b.Len() != tarBlock {
		panic(fmt.Sprintf("header of %s: %d bytes, %v", name, b.Len(), err))
	}
	return b.Bytes()
}

// padding is the number of zeros after a file.
func padding(size int64) int64 { return -size & (tarBlock - 1) }

// tarWriter writes the files of a delta.
type tarWriter struct {
	ctx context.Context //nolint:containedctx // it lives as long as one call of Create
	w   io.Writer
}

func (t tarWriter) file(name string, size int64, content io.Reader) error {
	if _, err := t.w.Write(header(name, size)); err != nil {
		return err
	}
	if err := layout.Copy(t.ctx, t.w, content); err != nil {
		return err
	}
	_, err := t.w.Write(make([]byte, padding(size)))
	return err
}

func (t tarWriter) end() error {
	_, err := t.w.Write(make([]byte, 2*tarBlock))
	return err
}

// tarReader reads the headers of a delta in their order.
type tarReader struct {
	r        io.ReaderAt
	at, size int64
}

func (t *tarReader) read(p []byte, at int64) error {
	if at > t.size-int64(len(p)) {
		return t.cutOff()
	}
	if n, err := t.r.ReadAt(p, at); n < len(p) {
		return fmt.Errorf("read the delta at byte %d: %w", at, err)
	}
	return nil
}

func (t *tarReader) cutOff() error {
	return report.Errorf(report.Corrupt, "the delta ends at byte %d, earlier than expected", t.size).WithHint("copy it again from its source")
}

// peek returns the name and the header of the next file; both are empty at the end of the delta.
func (t *tarReader) peek() (name string, block []byte, err error) {
	block = make([]byte, tarBlock)
	if err = t.read(block, t.at); err != nil {
		return "", nil, err
	}
	if len(bytes.Trim(block, "\x00")) > 0 {
		return string(bytes.TrimRight(block[:100], "\x00")), block, nil
	}
	if err = t.read(block, t.at+tarBlock); err == nil && len(bytes.Trim(block, "\x00")) > 0 {
		err = unexpected(t.at)
	}
	if rest := t.size - t.at - 2*tarBlock; err == nil && rest != 0 {
		err = report.Errorf(report.Corrupt, "the delta is followed by %d bytes that do not belong to it", rest).WithHint("copy it again from its source")
	}
	return "", nil, err
}

// next takes the next file, which must have this name and size, and returns the offset of its content.
func (t *tarReader) next(name string, size int64) (int64, error) {
	_, block, err := t.peek()
	if err != nil {
		return 0, err
	}
	if !bytes.Equal(block, header(name, size)) {
		return 0, unexpected(t.at)
	}
	content := t.at + tarBlock
	if size > t.size-content {
		return 0, t.cutOff()
	}
	zeros := make([]byte, padding(size))
	if err = t.read(zeros, content+size); err != nil {
		return 0, err
	}
	if len(bytes.Trim(zeros, "\x00")) > 0 {
		return 0, unexpected(content + size)
	}
	t.at = content + size + int64(len(zeros))
	return content, nil
}

func unexpected(at int64) error {
	return report.Errorf(report.Invalid, "the delta has something else at byte %d than its layout requires", at).WithHint("get the delta again from its source")
}

// document reads delta.json.
func (t *tarReader) document() (*schema.ArchiveDelta, error) {
	notDelta := report.Errorf(report.Invalid, "this is not a delta").WithHint("a delta is made with: solutionctl delta create OLD.iso NEW.iso")
	if !IsDelta(t.r) {
		return nil, notDelta
	}
	block := make([]byte, tarBlock)
	if err := t.read(block, 0); err != nil {
		return nil, err
	}
	size, err := strconv.ParseInt(strings.Trim(string(block[124:136]), "\x00 "), 8, 64)
	if err != nil || size < 1 || size > maxDocument {
		return nil, notDelta
	}
	at, err := t.next(documentName, size)
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	if err = t.read(data, at); err != nil {
		return nil, err
	}
	return schema.ParseArchiveDelta(data)
}

// IsDelta reports whether a file begins as a delta does.
func IsDelta(r io.ReaderAt) bool {
	start := make([]byte, len(documentName)+1)
	n, _ := r.ReadAt(start, 0) // a file that cannot be read is none
	return n == len(start) && string(start) == documentName+"\x00"
}
