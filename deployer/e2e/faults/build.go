package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// Build builds the program as it is released, with build tags, out of the checkout at source. What does not change the program
// does not change the file either: no commit is in it.
func Build(ctx context.Context, source, program, tags string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-tags", tags, "-o", program, "./cmd/solutionctl")
	cmd.Dir, cmd.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build solutionctl: %w\n%s", err, out)
	}
	return nil
}
