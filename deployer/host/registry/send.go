package registry

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/solutionctl/solutionctl/build/iso"
)

// sender sends a large blob. [http.ServeContent] copies a range of content to it with [io.CopyN], which calls ReadFrom,
// which turns it into sendfile: the bytes go from the file of the archive to the socket without passing through here.
type sender struct {
	*recorder
	transfers *transfers
	blob      *blob
	content   io.ReadSeeker
	damaged   bool // the archive could not be read
}

// piece is the number of bytes after which the deadline of the client is set again, and which are read into the page cache at once.
const piece = 8 << 20

// ReadFrom sends a range of the blob, or whatever else it is given: the parts of several ranges come through a pipe.
func (s *sender) ReadFrom(r io.Reader) (sent int64, err error) {
	limited, ok := r.(*io.LimitedReader)
	if !ok || limited.R != io.Reader(s.content) || len(s.blob.sections) == 0 {
		return s.copy(r)
	}
	at, err := s.content.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	// A descriptor of its own, because sendfile moves the position of the file. Without one, the blob is copied.
	own, err := os.Open(s.blob.archive.file.self)
	if err != nil {
		return s.copy(r)
	}
	defer own.Close() //nolint:errcheck // read only
	for section := range parts(s.blob.sections, at, limited.N) {
		if _, err = own.Seek(section.Offset, io.SeekStart); err != nil {
			return sent, err
		}
		n, err := s.sendFile(own, section)
		sent += n
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// sendFile sends a section of a file, which is at its start, piece by piece. Less than a piece does not make more be read than was asked for.
func (s *sender) sendFile(f *os.File, section iso.Section) (sent int64, err error) {
	for sent < section.Size {
		at, want := section.Offset+sent, min(piece, section.Size-sent)
		if section.Size >= piece {
			s.blob.archive.file.load(at, want)
			s.blob.archive.file.loadAhead(at+want, min(piece, section.Size-sent-want))
		}
		s.transfers.pace(s.recorder, want)
		n, err := s.recorder.ReadFrom(&io.LimitedReader{R: f, N: want})
		sent += n
		if err == nil && n < want {
			err = fmt.Errorf("%s ends early: %w", s.blob.path, io.ErrUnexpectedEOF)
		}
		if err != nil {
			s.note(err)
			return sent, err
		}
	}
	return sent, nil
}

// copy sends content that cannot go through sendfile.
func (s *sender) copy(r io.Reader) (sent int64, err error) {
	for {
		s.transfers.pace(s.recorder, piece)
		n, err := io.CopyN(struct{ io.Writer }{s.recorder}, r, piece)
		sent += n
		if errors.Is(err, io.EOF) {
			return sent, nil
		}
		if err != nil {
			s.note(err)
			return sent, err
		}
	}
}

// note remembers why the sending ended early, and whether that is the archive's fault rather than the client's.
func (s *sender) note(err error) {
	s.reason = err
	s.damaged = errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EIO)
}
