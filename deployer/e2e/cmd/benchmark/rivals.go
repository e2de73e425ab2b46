//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

// measureEngine prints what the engine takes for the objects of all environments, and what the same writes take without it.
func measureEngine(ctx context.Context, environments int) error {
	fmt.Printf("%d environments, %d Solutions in each\n\n", environments, solutions)
	fmt.Println("| | plan | apply | written | CPU | peak RssAnon |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, floor := range []struct{ name, records string }{{"the floor: the objects alone", "false"}, {"the floor: the objects and three records for each Solution", "true"}} {
		err := inCluster(ctx, environments, func(b bed) error {
			return printTimings(ctx, floor.name, "engine-floor", b.cluster.Kubeconfig, b.dir, floor.records)
		})
		if err != nil {
			return err
		}
	}
	return inCluster(ctx, environments, func(b bed) error {
		for _, test := range []struct{ name, version string }{{"all new", "1"}, {"nothing to do", "1"}, {"every Solution upgraded", "2"}} {
			if err := printTimings(ctx, test.name, "engine-step", b.cluster.Kubeconfig, b.dir, test.version); err != nil {
				return err
			}
		}
		return nil
	})
}

// printTimings runs a contestant and prints its row.
func printTimings(ctx context.Context, name string, contestant ...string) error {
	s, err := measure(ctx, os.Args[0], contestant...)
	if err != nil {
		return err
	}
	var t timings
	if err := json.Unmarshal(s.output, &t); err != nil {
		return fmt.Errorf("%w: %s", err, s.output)
	}
	fmt.Printf("| %s | %.2f s | %.2f s | %d | %.2f s | %.0f MiB |\n", name, t.Plan, t.Apply, t.Written, s.cpu.Seconds(), float64(s.anon)/(1<<20))
	return nil
}

// measureRivals prints the time of the engine and its rivals for the same objects.
func measureRivals(ctx context.Context, environments int) error {
	tools, err := buildRivals(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tools) //nolint:errcheck // a temporary directory
	kubectl, helm := filepath.Join(tools, "kubectl"), filepath.Join(tools, "helm")
	contestants := []struct {
		name  string
		steps func(b bed) [][]string // commands that run side by side, eight at a time
	}{
		{"solutionctl", func(b bed) [][]string {
			return [][]string{{os.Args[0], "engine-step", b.cluster.Kubeconfig, b.dir, "1"}}
		}},
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
