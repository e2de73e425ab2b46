//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestSecondSignalEndsTheProcess runs the program with a configuration that never ends: a pipe that is open for writing.
// It survives the first signal, because it may have something to finish, and not the next ones.
func TestSecondSignalEndsTheProcess(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "config.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "solutionctl", "--config", pipe, "version")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns once the program reads, which is after it waits for signals
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := writer.Close(); err != nil {
			t.Error(err)
		}
	})
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for signals := 0; ; {
		select {
		case err := <-ended:
			status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if !ok || status.Signal() != syscall.SIGTERM || signals < 2 {
				t.Errorf("after %d signals: %v", signals, err)
			}
			return
		case <-again.C:
			signal := syscall.SIGTERM
			if signals == 1000 {
				signal = syscall.SIGKILL // it will never end; the test can only report that
			}
			if err := cmd.Process.Signal(signal); err == nil {
				signals++
			}
		}
	}
}
