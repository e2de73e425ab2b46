//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// starts is the number of pairs in which the start is measured: it is short, and the machine disturbs it most.
const starts = 20

// benchmarkStart compares the start of the program with that of an empty Go program.
func benchmarkStart(ctx context.Context, s settings) error {
	source, empty := filepath.Join(s.dir, "empty.go"), filepath.Join(s.dir, "empty")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", empty, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build an empty program: %w: %s", err, out)
	}
	contestants := []contestant{
		{"an empty Go program (floor)", []string{empty}, nil},
		{"solutionctl version", []string{s.binary, "version"}, nil},
	}
	samples, err := compare(ctx, starts, contestants...)
	if err != nil {
		return err
	}
	fmt.Printf("\nStart\n\n| | wall | to the first | CPU | to the first | peak RssAnon |\n|---|---|---|---|---|---|\n")
	for i, c := range contestants {
		walls, cpus := seconds(samples[i], wall), seconds(samples[i], cpu)
		fmt.Printf("| %s | %.1f ms | %.1f | %.1f ms | %.1f | %.1f MiB |\n", c.name,
			median(walls)*1e3, median(ratios(walls, seconds(samples[0], wall))),
			median(cpus)*1e3, median(ratios(cpus, seconds(samples[0], cpu))), median(anon(samples[i])))
	}
	return nil
}
