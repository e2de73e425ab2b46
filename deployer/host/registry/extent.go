package registry

import (
	"errors"
	"io"
	"iter"

	"github.com/solutionctl/solutionctl/build/iso"
)

// extent reads a blob from the file of an archive.
type extent struct {
	r        io.ReaderAt
	sections []iso.Section
	size     int64
	at       int64
}

func (e *extent) Read(p []byte) (int, error) {
	if e.at >= e.size {
		return 0, io.EOF
	}
	for part := range parts(e.sections, e.at, int64(len(p))) {
		n, err := e.r.ReadAt(p[:part.Size], part.Offset)
		e.at += int64(n)
		switch {
		case n == int(part.Size):
			return n, nil
		case err == nil || errors.Is(err, io.EOF):
			err = io.ErrUnexpectedEOF // the file has become shorter
		}
		return n, err
	}
	return 0, nil // nothing was asked for
}

func (e *extent) Seek(offset int64, whence int) (int64, error) {
	at, err := seek(offset, whence, e.at, e.size)
	if err != nil {
		return 0, err
	}
	e.at = at
	return at, nil
}

// seek returns the place in a blob that an offset means, see [io.Seeker].
func seek(offset int64, whence int, at, size int64) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += at
	case io.SeekEnd:
		offset += size
	}
	if offset < 0 {
		return 0, errors.New("seek in front of the blob")
	}
	return offset, nil
}

// Close does nothing: the file belongs to the archive.
func (e *extent) Close() error { return nil }

// parts yields the runs of the file that hold size bytes of a blob, starting at offset. Runs that follow each other are
// one.
func parts(sections []iso.Section, offset, size int64) iter.Seq[iso.Section] {
	return func(yield func(iso.Section) bool) {
		var run iso.Section
		for _, section := range sections {
			if offset >= section.Size {
				offset -= section.Size
				continue
			}
			next := iso.Section{Offset: section.Offset + offset, Size: min(section.Size-offset, size)}
			offset, size = 0, size-next.Size
			switch {
			case run.Size > 0 && run.Offset+run.Size == next.Offset:
				run.Size += next.Size
			case run.Size > 0 && !yield(run):
				return
			default:
				run = next
			}
			if size == 0 {
				break
			}
		}
		if run.Size > 0 {
			yield(run)
		}
	}
}
