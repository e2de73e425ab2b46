//go:build unix

package sign_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
)

func TestReadBundleDoesNotWaitForAFIFO(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.iso.sigstore.json")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sign.ReadBundle(name); report.CodeOf(err) != report.BadBundle {
		t.Errorf("got %v", err)
	}
}
