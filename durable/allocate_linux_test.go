package durable_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/solutionctl/solutionctl/durable"
)

// TestAllocate reserves the space of a file, and takes none where there is too little.
func TestAllocate(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only a test
	blocks := func() int64 {
		var stat unix.Stat_t
		if failure := unix.Fstat(int(f.Fd()), &stat); failure != nil {
			t.Fatal(failure)
		}
		return stat.Blocks
	}
	if err = durable.Allocate(f, 1<<50); !errors.Is(err, unix.ENOSPC) || blocks() != 0 {
		t.Errorf("%v, %d blocks", err, blocks())
	}
	if err = durable.Allocate(f, 1<<20); err != nil || blocks() < 1<<20/512 {
		t.Errorf("%v, %d blocks", err, blocks())
	}
}
