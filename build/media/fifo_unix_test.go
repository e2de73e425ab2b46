//go:build unix

package media_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestOpenDoesNotWaitForAFIFO(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.iso")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := media.OpenNoFollow(name); report.CodeOf(err) != report.Invalid {
		t.Errorf("got %v", err)
	}
}
