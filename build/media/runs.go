package media

import (
	"errors"
	"io"
	"slices"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Run is a run of bytes of a whole that lies somewhere else.
type Run struct {
	io.ReaderAt
	Name     string // of what is read, for messages
	At, Size int64  // in the whole
	From     int64  // in the reader
}

// Runs are the runs of a whole in their order, without gaps. They may be read by several goroutines at once.
type Runs []Run

// ReadAt implements [io.ReaderAt]. It fails with [report.Corrupt] where a reader ends before its run does.
func (r Runs) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 {
		return 0, errors.New("read at a negative offset")
	}
	i, _ := slices.BinarySearchFunc(r, offset, func(run Run, offset int64) int {
		switch {
		case run.At+run.Size <= offset:
			return -1
		case run.At > offset:
			return 1
		}
		return 0
	})
	n := 0
	for ; n < len(p) && i < len(r); i++ {
		run := r[i]
		inside := offset - run.At
		part := p[n:min(int64(len(p)), int64(n)+run.Size-inside)]
		m, err := run.ReadAt(part, run.From+inside)
		n, offset = n+m, offset+int64(m)
		if m < len(part) {
			if err == nil || errors.Is(err, io.EOF) {
				err = report.Errorf(report.Corrupt, "%s ends earlier than expected", run.Name)
			}
			return n, err
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
