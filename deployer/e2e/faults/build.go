//go:build linux

package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build builds the program as it is released out of the checkout at source, with a sabotage unless that is nil. The file depends
// only on what is compiled: it holds no commit.
func Build(ctx context.Context, source, program string, sabotage *Sabotage) error {
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", program}
	if sabotage != nil {
		overlay, err := sabotage.overlay(source, filepath.Dir(program))
		if err != nil {
			return err
		}
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/solutionctl")...)
	cmd.Dir, cmd.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build solutionctl: %w\n%s", err, out)
	}
	return nil
}
