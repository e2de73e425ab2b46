//go:build linux

// Command benchmark measures how fast the engine of solutionctl deploys, beside kubectl and Helm, and prints the tables of
// docs/performance.md.
//
//	go run ./cmd/benchmark [-environments N] [-rivals N]
//	go run ./cmd/benchmark fleet [-namespaces N]
//	go run ./cmd/benchmark console [-environments N]
//	go run ./cmd/benchmark components [-components N] [-objects N]
//	go run ./cmd/benchmark node [-rounds N] [-alone | -helmfile VERSION]
//
// It starts a control plane without nodes. Every environment is a namespace with five Solutions, each of them what an
// operator needs: account, role, binding, configuration and a deployment without replicas, so that the API server is
// measured and not its controllers. Each contestant is a process of its own, in a cluster of its own, and gets the objects
// as files. Memory is the peak of RssAnon, which leaves out the page cache.
//
// With fleet it measures the verbs instead, which lock, judge, record and wait as well: on nodes that pretend to run pods,
// in as many environments as namespaces, eight at a time and without waiting, and in one environment of all of them.
//
// With console it measures the web console on such environments: what a browser loads, how soon it shows something, what open
// browsers cost the console and the API server, and how soon they learn of a change.
//
// With components it measures a Solution of many components that need each other, without nodes: what a plan takes, what it takes
// until everything is applied, and what it takes to find that nothing is to be done.
//
// With node it measures how soon ten components that need each other are ready on a node that runs containers, beside Helm, Helmfile
// and kubectl, and what the loader takes.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case len(os.Args) == 5 && os.Args[1] == "engine":
		err = deploy(ctx, os.Args[2], os.Args[3], os.Args[4])
	case len(os.Args) == 6 && os.Args[1] == "fleet-step":
		err = runStep(ctx, os.Args[2], os.Args[3], os.Args[4], os.Args[5])
	case len(os.Args) > 1 && os.Args[1] == "fleet":
		flags := flag.NewFlagSet("fleet", flag.ExitOnError)
		namespaces := flags.Int("namespaces", 200, "namespaces that Solutions are deployed to")
		_ = flags.Parse(os.Args[2:]) // it exits itself
		err = measureFleet(ctx, *namespaces)
	case len(os.Args) > 1 && os.Args[1] == "console":
		flags := flag.NewFlagSet("console", flag.ExitOnError)
		environments := flags.Int("environments", 200, "environments that the console shows")
		_ = flags.Parse(os.Args[2:]) // it exits itself
		err = measureConsole(ctx, *environments)
	case len(os.Args) == 6 && os.Args[1] == "graph-step":
		err = runGraphStep(ctx, os.Args[2], os.Args[3], os.Args[4], os.Args[5])
	case len(os.Args) > 1 && os.Args[1] == "components":
		flags := flag.NewFlagSet("components", flag.ExitOnError)
		components := flags.Int("components", 200, "components of a Solution")
		objects := flags.Int("objects", 10, "objects of each")
		_ = flags.Parse(os.Args[2:]) // it exits itself
		err = measureGraph(ctx, *components, *objects)
	case len(os.Args) > 1 && os.Args[1] == "node":
		flags, o := flag.NewFlagSet("node", flag.ExitOnError), nodeOptions{}
		flags.IntVar(&o.rounds, "rounds", 3, "how often each contestant brings up everything")
		flags.BoolVar(&o.alone, "alone", false, "measure nobody else, for whom compilers take minutes")
		flags.StringVar(&o.helmfile, "helmfile", "", "measure this `VERSION` of Helmfile, too, which is built for it: v1.8.0")
		_ = flags.Parse(os.Args[2:]) // it exits itself
		err = measureNode(ctx, o)
	default:
		environments := flag.Int("environments", 200, "environments that the engine deploys to")
		rivals := flag.Int("rivals", 20, "environments in the comparison with kubectl and Helm")
		flag.Parse()
		err = run(ctx, *environments, *rivals)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, environments, rivals int) error {
	fmt.Printf("%s, %d processors, %s, Kubernetes %s\n\n", runtime.GOARCH, runtime.NumCPU(), runtime.Version(), testcluster.KubernetesVersion)
	if err := measureEngine(ctx, environments); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	if rivals == 0 {
		return nil
	}
	return compare(ctx, rivals)
}

// measureEngine prints what the engine takes for the objects of all environments.
func measureEngine(ctx context.Context, environments int) error {
	return inCluster(ctx, environments, func(b bed) error {
		objects := 0
		for _, file := range b.files {
			objects += strings.Count(file.text, "\n---\n")
		}
		fmt.Printf("%d environments, %d Solutions in each, %d objects\n\n", environments, solutions, objects)
		fmt.Println("| | plan | apply | objects written | CPU | peak RssAnon |")
		fmt.Println("|---|---|---|---|---|---|")
		for _, test := range []struct{ name, version string }{{"all new", "1"}, {"nothing to do", "1"}, {"every Solution upgraded", "2"}} {
			s, err := measure(ctx, os.Args[0], "engine", b.cluster.Kubeconfig, b.dir, test.version)
			if err != nil {
				return err
			}
			var t timings
			if err := json.Unmarshal(s.output, &t); err != nil {
				return fmt.Errorf("%w: %s", err, s.output)
			}
			fmt.Printf("| %s | %.2f s | %.2f s | %d | %.2f s | %.0f MiB |\n", test.name, t.Plan, t.Apply, t.Written, s.cpu.Seconds(), float64(s.anon)/(1<<20))
		}
		return nil
	})
}

// compare prints what the engine and its rivals take for the same objects.
func compare(ctx context.Context, environments int) error {
	tools, err := buildRivals(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tools) //nolint:errcheck // a temporary directory
	type contestant struct {
		name  string
		steps func(b bed) [][]string // commands that run side by side, eight at a time
	}
	kubectl, helm := filepath.Join(tools, "kubectl"), filepath.Join(tools, "helm")
	contestants := []contestant{
		{"solutionctl", func(b bed) [][]string { return [][]string{{os.Args[0], "engine", b.cluster.Kubeconfig, b.dir, "1"}} }},
		{"kubectl apply", func(b bed) [][]string {
			return [][]string{{kubectl, "--kubeconfig", b.cluster.Kubeconfig, "apply", "-f", b.dir}}
		}},
		{"kubectl apply --server-side", func(b bed) [][]string {
			return [][]string{{kubectl, "--kubeconfig", b.cluster.Kubeconfig, "apply", "--server-side", "-f", b.dir}}
		}},
		{"helm upgrade --install, 8 at a time", func(b bed) [][]string {
			var commands [][]string
			for _, file := range b.files {
				commands = append(commands, []string{
					helm, "--kubeconfig", b.cluster.Kubeconfig, "upgrade", "--install", "--namespace", file.namespace, file.solution, file.chart,
				})
			}
			return commands
		}},
	}
	fmt.Printf("\n%d environments, the same objects\n\n| | all new | to the first | nothing to do | to the first | CPU, both |\n|---|---|---|---|---|---|\n", environments)
	var first [2]float64
	for _, c := range contestants {
		var seconds [2]float64
		var cpu time.Duration
		err := inCluster(ctx, environments, func(b bed) error {
			for round := range seconds {
				started := time.Now()
				used, err := sideBySide(ctx, c.steps(b))
				if err != nil {
					return err
				}
				seconds[round] = time.Since(started).Seconds()
				cpu += used
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if first[0] == 0 {
			first = seconds
		}
		fmt.Printf("| %s | %.2f s | %.1f | %.2f s | %.1f | %.1f s |\n", c.name, seconds[0], seconds[0]/first[0], seconds[1], seconds[1]/first[1], cpu.Seconds())
	}
	return nil
}

// bed is a cluster with empty namespaces, and what is to be deployed to them.
type bed struct {
	cluster *testcluster.Cluster
	dir     string // a file for each environment and Solution
	files   []file
}

// inCluster calls f with a cluster that is stopped afterwards.
func inCluster(ctx context.Context, environments int, f func(b bed) error) (err error) {
	b := bed{}
	if b.cluster, err = testcluster.Start(ctx, testcluster.Options{Progress: os.Stderr}); err != nil {
		return err
	}
	defer func() {
		if stopped := b.cluster.Stop(); err == nil {
			err = stopped
		}
	}()
	if b.dir, err = os.MkdirTemp("", "solutionctl-objects-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir) //nolint:errcheck // a temporary directory
	for e := range environments {
		namespace := fmt.Sprintf("env-%03d", e)
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		if _, err := b.cluster.Client().CoreV1().Namespaces().Create(ctx, n, metav1.CreateOptions{}); err != nil {
			return err
		}
		for s := range solutions {
			file, err := writeFile(b.dir, namespace, fmt.Sprintf("solution-%d", s), s < extra)
			if err != nil {
				return err
			}
			b.files = append(b.files, file)
		}
	}
	if err := b.settle(ctx, environments); err != nil {
		return err
	}
	return f(b)
}

// settle waits until the controllers have made what they make in every namespace.
func (b bed) settle(ctx context.Context, environments int) error {
	for tick := time.Tick(100 * time.Millisecond); ; {
		accounts, err := b.cluster.Client().CoreV1().ServiceAccounts("").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=default"})
		if err != nil {
			return err
		}
		maps, err := b.cluster.Client().CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=kube-root-ca.crt"})
		if err != nil {
			return err
		}
		if len(accounts.Items) >= environments && len(maps.Items) >= environments {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick:
		}
	}
}

// sideBySide runs commands, eight at a time, and adds up their processor time.
func sideBySide(ctx context.Context, commands [][]string) (time.Duration, error) {
	var (
		mu     sync.Mutex
		cpu    time.Duration
		failed error
		group  sync.WaitGroup
		slots  = make(chan struct{}, 8)
	)
	for _, command := range commands {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			s, err := measure(ctx, command[0], command[1:]...)
			mu.Lock()
			defer mu.Unlock()
			cpu += s.cpu
			if err != nil && failed == nil {
				failed = err
			}
		})
	}
	group.Wait()
	return cpu, failed
}

// sample is what one process took.
type sample struct {
	cpu    time.Duration
	anon   int64
	output []byte
}

func measure(ctx context.Context, name string, args ...string) (sample, error) {
	return measureWith(exec.CommandContext(ctx, name, args...), (*exec.Cmd).Start)
}

// measureWith is measure for a command that is started in another way, such as on a node.
func measureWith(cmd *exec.Cmd, start func(*exec.Cmd) error) (s sample, err error) {
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err = start(cmd); err != nil {
		return s, err
	}
	done, peak := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		for tick := time.Tick(5 * time.Millisecond); ; {
			most = max(most, anonymous(cmd.Process.Pid))
			select {
			case <-done:
				peak <- most
				return
			case <-tick:
			}
		}
	}()
	err = cmd.Wait()
	close(done)
	s.anon = <-peak
	if err != nil {
		return s, fmt.Errorf("%w: %s", err, stderr.String())
	}
	s.cpu, s.output = cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), []byte(stdout.String())
	return s, nil
}

// anonymous is the RssAnon of a process in bytes, 0 when it is gone.
func anonymous(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "RssAnon:" {
			n, _ := strconv.ParseInt(fields[1], 10, 64) // the kernel wrote it
			return n << 10
		}
	}
	return 0
}

// buildRivals returns a directory with kubectl and helm, made from their Go modules.
func buildRivals(ctx context.Context) (string, error) {
	module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/solutionctl/solutionctl/deployer/e2e").Output()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "solutionctl-rivals-")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", dir+"/", "./kubectl", "helm.sh/helm/v4/cmd/helm")
	cmd.Dir = filepath.Join(strings.TrimSpace(string(module)), "cmd", "rivals")
	cmd.Stderr = os.Stderr
	return dir, cmd.Run()
}
