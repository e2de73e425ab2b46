//go:build linux

// Command benchmark measures solutionctl as its users run it, beside the tools that they would use instead and beside floors, and
// prints the tables of docs/performance.
//
//	go run ./cmd/benchmark [flags] [NAME...]
//	go run ./cmd/benchmark -base COMMIT [NAME...]
//
// Without names it runs all benchmarks, as far as the time limit allows. Contestants run in turn, round by round, so that a machine
// that changes its speed changes it for all. Figures are medians, and ratios are medians of the ratios within one round. Every
// contestant ends by bringing its result to the medium. Memory is the peak of RssAnon, which leaves out the page cache.
//
// With a base it compares two builds instead: the program of that commit and the one of the working tree. It fails when the latter
// takes more than 1.1 times the time or memory, beyond noise.
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
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

type settings struct {
	rounds       int
	size         int64 // bytes of layers
	environments int
	components   int
	objects      int // of each component
	alone        bool
	helmfile     string
	limit        time.Duration
	deadline     time.Time // the zero time is none
	base, svg    string
	sparse       int64 // bytes
	series       string
	sizes        int // of each series, the largest ones
	layers       layerOptions

	dir, binary string
}

type benchmark struct {
	name, what string
	run        func(context.Context, settings) error
}

// benchmarks are run in this order.
var benchmarks = []benchmark{
	{"start", "the start of the program, beside an empty one", benchmarkStart},
	{"build", "a build, beside skopeo with genisoimage, and beside hashing and writing", benchmarkBuild},
	{"sign", "signing and verifying, beside openssl", benchmarkSign},
	{"import", "an import, beside one hash and a copy", benchmarkImport},
	{"growth", "archives, projects, Solutions and clusters of four sizes", benchmarkGrowth},
	{"lint", "1,000 objects, beside kubeconform", benchmarkLint},
	{"serve", "images pulled over 200 connections, beside nginx", benchmarkServe},
	{"engine", "the engine alone, for many environments, beside the same writes alone", func(ctx context.Context, s settings) error { return measureEngine(ctx, s.environments) }},
	{"rivals", "deploy add in many environments and the engine alone, beside kubectl and Helm", measureRivals},
	{"components", "a Solution of many components, beside the same writes alone", func(ctx context.Context, s settings) error { return measureGraph(ctx, s.components, s.objects) }},
	{"console", "the web console for many environments", measureConsole},
	{"node", "ten components on a node with containers, beside Helm, Helmfile and kubectl", measureNode},
	{"fleet", "the verbs in many environments, and in one of many namespaces", func(ctx context.Context, s settings) error { return measureFleet(ctx, s.environments) }},
	{"scale", "each verb, on sites with few and with many environments and nodes", measureScale},
}

// processes are contestants that this program runs as processes of their own: "benchmark STEP ARGUMENT...".
var processes = map[string]func(ctx context.Context, args []string) error{
	"floor-step": func(_ context.Context, args []string) error { return hashAndWrite(args[0], args[1]) },
	"engine-floor": func(ctx context.Context, args []string) error {
		return writeAlone(ctx, args[0], args[1], args[2] == "true")
	},
	"engine-step": func(ctx context.Context, args []string) error { return deploy(ctx, args[0], args[1], args[2]) },
	"fleet-step": func(ctx context.Context, args []string) error {
		return runStep(ctx, args[0], args[1], args[2], args[3])
	},
	"serve-files": func(ctx context.Context, args []string) error { return serveFiles(ctx, args[0], args[1], args[2]) },
	"graph-step": func(ctx context.Context, args []string) error {
		return runGraphStep(ctx, args[0], args[1], args[2], args[3])
	},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if len(os.Args) > 1 && processes[os.Args[1]] != nil {
		err = processes[os.Args[1]](ctx, os.Args[2:])
	} else {
		err = run(ctx, parse())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		os.Exit(1)
	}
}

// parse reads the flags, whose defaults let everything fit into the limit on two processors.
func parse() settings {
	var s settings
	size := flag.Int64("size", 512, "`MiB` of layers in the archives")
	sparse := flag.Int64("sparse", 0, "growth: measure an archive with `GiB` of holes as well, which needs root and mkfs.btrfs")
	flag.IntVar(&s.rounds, "rounds", 3, "rounds of each comparison")
	flag.IntVar(&s.environments, "environments", 50, "environments of a cluster, with five Solutions each")
	flag.IntVar(&s.components, "components", 200, "components of a Solution")
	flag.IntVar(&s.objects, "objects", 10, "objects of each component")
	flag.BoolVar(&s.alone, "alone", false, "node: leave out the rivals, which compilers take minutes for; growth: leave out the floor")
	flag.StringVar(&s.series, "series", "bytes,images,objects,environments", "growth: measure these")
	flag.IntVar(&s.sizes, "sizes", growthSizes, "growth: measure the largest `N` of the sizes")
	flag.StringVar(&s.helmfile, "helmfile", "", "node: measure this `VERSION` of Helmfile, too: v1.8.0")
	flag.DurationVar(&s.limit, "limit", 15*time.Minute, "start no benchmark after this `TIME`, and no further round of node that would end after it, nor of rivals after half of it; 0 is no limit")
	flag.StringVar(&s.base, "base", "", "compare the working tree with the program of this `COMMIT`")
	flag.StringVar(&s.svg, "svg", "", "growth: draw the times in this `FILE`")
	flag.Usage = func() {
		out := flag.CommandLine.Output()
		fmt.Fprintf(out, "usage: benchmark [flags] [NAME...]\n\n")
		for _, b := range benchmarks {
			fmt.Fprintf(out, "  %-11s %s\n", b.name, b.what)
		}
		fmt.Fprintf(out, "\nflags:\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	s.size, s.sparse, s.layers.largest = *size<<20, *sparse<<30, 32<<20
	return s
}

// isLate reports whether something that takes this long would end after the deadline.
func (s settings) isLate(duration time.Duration) bool {
	return !s.deadline.IsZero() && time.Now().Add(duration).After(s.deadline)
}

func run(ctx context.Context, s settings) (err error) {
	names := flag.Args()
	if s.limit > 0 {
		s.deadline = time.Now().Add(s.limit)
	}
	if s.dir, err = os.MkdirTemp("", "solutionctl-benchmark-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)                                           //nolint:errcheck // a temporary directory
	for _, name := range []string{"GOGC", "GOMEMLIMIT", "GOMAXPROCS"} { // users do not set what a developer sets for compilers
		if err = os.Unsetenv(name); err != nil {
			return err
		}
	}
	s.binary = filepath.Join(s.dir, "solutionctl")
	if err = inModule(ctx, ".ci/build", s.binary); err != nil {
		return fmt.Errorf("build solutionctl: %w", err)
	}
	if err = printHeader(ctx); err != nil {
		return err
	}
	if s.base != "" {
		return checkBuilds(ctx, s, names)
	}
	for _, name := range names {
		if !slices.ContainsFunc(benchmarks, func(b benchmark) bool { return b.name == name }) {
			return fmt.Errorf("there is no benchmark %q; -h lists them", name)
		}
	}
	var left []string
	for _, b := range benchmarks {
		if len(names) > 0 && !slices.Contains(names, b.name) {
			continue
		}
		if s.isLate(0) {
			left = append(left, b.name)
			continue
		}
		begun := time.Now()
		if err := b.run(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		fmt.Fprintf(os.Stderr, "== %s took %d s\n", b.name, int(time.Since(begun).Seconds()))
	}
	if len(left) > 0 {
		fmt.Printf("\nLeft out after %s: %s\n", s.limit, strings.Join(left, ", "))
	}
	return nil
}

// printHeader prints what figures need beside them: date, commit and machine.
func printHeader(ctx context.Context) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	commit, err := exec.CommandContext(ctx, "git", "-C", root, "describe", "--always", "--dirty", "--abbrev=10").Output()
	if err != nil {
		return fmt.Errorf("read the commit of %s: %w", root, err)
	}
	var system unix.Utsname
	if err = unix.Uname(&system); err != nil {
		return err
	}
	extensions := ""
	if slices.Contains(strings.Fields(cpuInfo("flags")), "sha_ni") {
		extensions = ", SHA extensions"
	}
	fmt.Printf("%s, commit %s; %s%s, %d processors, %d GiB, Linux %s, %s, Kubernetes %s; load %s\n",
		time.Now().UTC().Format(time.DateOnly), strings.TrimSpace(string(commit)), cpuInfo("model name"), extensions, runtime.NumCPU(),
		field("/proc/meminfo", "MemTotal:")>>20, unix.ByteSliceToString(system.Release[:]), runtime.Version(), testcluster.KubernetesVersion, load())
	return nil
}

// cpuInfo returns a value of the first processor.
func cpuInfo(key string) string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// load returns the load average of the last minute: other processes are measured as well.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(data))[0]
}
