package media_test

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestRuns(t *testing.T) {
	whole := strings.NewReader("..onetwo three")
	runs := media.Runs{
		{ReaderAt: whole, Name: "a", At: 0, Size: 3, From: 2},
		{ReaderAt: whole, Name: "b", At: 3, Size: 3, From: 5},
		{ReaderAt: strings.NewReader("four"), Name: "c", At: 6, Size: 4},
	}
	if err := iotest.TestReader(io.NewSectionReader(runs, 0, 10), []byte("onetwofour")); err != nil {
		t.Error(err)
	}
	if n, err := runs.ReadAt(make([]byte, 4), 8); n != 2 || err != io.EOF { //nolint:errorlint // a ReaderAt returns it bare
		t.Errorf("at the end: %d, %v", n, err)
	}
	if _, err := runs.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("a negative offset is no error")
	}
	runs[2].Size = 5
	if n, err := runs.ReadAt(make([]byte, 5), 6); n != 4 || report.CodeOf(err) != report.Corrupt || !strings.Contains(err.Error(), "c ends earlier") {
		t.Errorf("a run that is too short: %d, %v", n, err)
	}
}
