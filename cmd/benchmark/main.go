//go:build linux

// Command benchmark measures solutionctl as its users run it, beside what they would use instead, and prints the tables
// of docs/performance.md.
//
//	go run ./cmd/benchmark [-rounds N] [-size MiB] [-large MiB] [build] [memory] [inspect] [read] [sign] [import] [lint] [serve]
//
// Without a name it runs everything. Contestants run in turn, round by round, so that a machine that changes its speed
// changes it for all; figures are medians, and ratios are medians of the ratios within one round. Every contestant ends
// by bringing its result to the medium. Memory is the peak of RssAnon, which leaves out the page cache.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
)

type settings struct {
	rounds int
	size   int64 // bytes of layers in the comparisons
	large  int64 // bytes of layers where memory and inspection are measured
	dir    string
	binary string
}

// benchmarks are run in this order.
var benchmarks = []struct {
	name string
	run  func(context.Context, settings) error
}{
	{"build", benchmarkBuild},
	{"memory", benchmarkMemory},
	{"inspect", benchmarkInspect},
	{"read", benchmarkRead},
	{"sign", benchmarkSign},
	{"import", benchmarkImport},
	{"lint", benchmarkLint},
	{"serve", benchmarkServe},
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == "floor" {
		exit(hashAndWrite(os.Args[2], os.Args[3]))
	}
	s := settings{}
	rounds := flag.Int("rounds", 5, "rounds of each comparison")
	size := flag.Int64("size", 1024, "`MiB` of layers in the comparisons")
	large := flag.Int64("large", 8192, "`MiB` of layers of the large archive")
	flag.Parse()
	s.rounds, s.size, s.large = *rounds, *size<<20, *large<<20
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(run(ctx, s, flag.Args()))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(ctx context.Context, s settings, names []string) (err error) {
	if s.dir, err = os.MkdirTemp("", "solutionctl-benchmark-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir) //nolint:errcheck // a temporary directory
	s.binary = filepath.Join(s.dir, "solutionctl")
	compile := exec.CommandContext(ctx, ".ci/build", s.binary)
	compile.Stderr = os.Stderr
	if err := compile.Run(); err != nil {
		return fmt.Errorf("compile solutionctl: %w", err)
	}
	fmt.Printf("%s, %d processors, %s\n", runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	for _, b := range benchmarks {
		if len(names) > 0 && !slices.Contains(names, b.name) {
			continue
		}
		if err := b.run(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	return nil
}
