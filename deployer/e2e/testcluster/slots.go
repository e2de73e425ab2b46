package testcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// slots is how many clusters that tests have for themselves run at once on this machine, in all processes: one for each processor. The
// clusters that packages share are not counted: 'go test -p' bounds them, and a test that waits for a slot may keep one of those.
func slots() int { return max(runtime.NumCPU(), 2) }

// takeSlot waits until one of the slots is free, and takes it until the file is closed or the process ends.
func takeSlot(ctx context.Context) (*os.File, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("solutionctl-test-slots-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for {
		for n := range slots() {
			file, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(n)), os.O_CREATE|os.O_RDWR, 0o600)
			if err != nil {
				return nil, err
			}
			err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
			if err == nil {
				return file, nil
			}
			if err = errors.Join(file.Close(), err); !errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for one of %d slots for clusters: %w", slots(), context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
	}
}
