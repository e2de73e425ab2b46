package iso

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/solutionctl/solutionctl/schema/report"
)

// WriteMetadata writes everything before the first extent, MetadataSize bytes: volume descriptors, path tables,
// directories. It renders one directory after the other, so that memory does not grow with their number.
func (m *Image) WriteMetadata(w io.Writer) error {
	buffer := bufio.NewWriterSize(w, 1<<16)
	out := &sink{w: buffer}
	for range systemArea {
		out.write(zeros[:sectorSize])
	}
	out.write(m.volumeDescriptor(primaryTree))
	out.write(m.volumeDescriptor(jolietTree))
	out.write(terminator())
	for t := range m.pathTables {
		m.writePathTable(out, tree(t), binary.LittleEndian)
		m.writePathTable(out, tree(t), binary.BigEndian)
	}
	for t := range m.directories {
		m.writeDirectories(out, tree(t))
	}
	if out.err == nil {
		out.write(zeros[:m.MetadataSize()-out.n])
		if err := buffer.Flush(); out.err == nil {
			out.err = err
		}
	}
	if out.err != nil {
		return fmt.Errorf("write image: %w", out.err)
	}
	return nil
}

func (m *Image) writePathTable(out *sink, t tree, order binary.AppendByteOrder) {
	var record []byte
	for _, d := range m.directories[t] {
		record = appendPathRecord(record[:0], order, d, t)
		out.write(record)
	}
	out.write(padding(m.pathTables[t].size))
}

func (m *Image) writeDirectories(out *sink, t tree) {
	r := m.newRenderer(t, out)
	for _, d := range m.directories[t] {
		if out.err != nil {
			return
		}
		if out.n != int64(d.lba[t])*sectorSize {
			panic(fmt.Sprintf("iso: directory %s of tree %d is at byte %d instead of sector %d", d.path, t, out.n, d.lba[t]))
		}
		r.render(d)
	}
}

// WriteTo writes the image from its first byte to its last, so w may be a pipe. A source with fewer or more bytes than
// its File has is an error with [report.Corrupt]. The caller syncs.
func (m *Image) WriteTo(w io.Writer) (int64, error) {
	out := &sink{w: w}
	if err := m.WriteMetadata(out); err != nil {
		return out.n, err
	}
	buffer := make([]byte, 1<<18)
	for _, e := range m.extents {
		f := &m.files[e.file]
		if err := out.copyFile(f, buffer); err != nil {
			return out.n, err
		}
		used := sectorsFor(f.Size)
		out.write(padding(f.Size))
		out.write(zeros[:(alignExtent(used)-used)*sectorSize])
	}
	if out.err != nil {
		return out.n, fmt.Errorf("write image: %w", out.err)
	}
	return out.n, nil
}

// sink counts written bytes and keeps the first error.
type sink struct {
	w   io.Writer
	n   int64
	err error
}

func (s *sink) Write(b []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(b)
	if n < len(b) && err == nil {
		err = io.ErrShortWrite
	}
	s.n, s.err = s.n+int64(n), err
	return n, err
}

func (s *sink) write(b []byte) {
	_, _ = s.Write(b) // the error is kept
}

// copyFile writes the content of one file.
func (s *sink) copyFile(f *File, buffer []byte) (err error) {
	if f.Open == nil {
		return report.Errorf(report.Failure, "write image: %s has no source", f.Path)
	}
	source, err := f.Open()
	if err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	defer func() {
		if closeErr := source.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("write image: close the source of %s: %w", f.Path, closeErr)
		}
	}()
	// Neither side may bypass the buffer: errors of the destination and of the source have to be distinguished.
	n, err := io.CopyBuffer(struct{ io.Writer }{s}, io.LimitReader(source, f.Size), buffer)
	switch {
	case s.err != nil:
		return fmt.Errorf("write image: %w", s.err)
	case err != nil:
		return fmt.Errorf("write image: read the source of %s: %w", f.Path, err)
	case n < f.Size:
		return wrongSize(f, fmt.Sprintf("only %d bytes", n))
	}
	return expectEnd(f, source, buffer[:1])
}

// expectEnd reads past the last byte of a source: content that has grown would be cut without a word.
func expectEnd(f *File, source io.Reader, one []byte) error {
	switch n, err := io.ReadFull(source, one); {
	case n > 0:
		return wrongSize(f, "more")
	case errors.Is(err, io.EOF):
		return nil
	default:
		return fmt.Errorf("write image: read the source of %s: %w", f.Path, err)
	}
}

func wrongSize(f *File, got string) error {
	return report.Errorf(report.Corrupt, "write image: the source of %s has %s, want %d bytes", f.Path, got, f.Size).
		WithHint("the source changed since the image was laid out; start again")
}
