//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/e2e/solution"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
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

// rival is a tool that deploys the objects of a bed. Its preparation is not measured.
type rival struct {
	name    string
	prepare func(ctx context.Context, b bed) error
	steps   func(b bed) [][]string // commands that run side by side, eight at a time
}

// measureRivals prints the time of the engine alone, of the program and of its rivals for the same objects. The second half of the limit
// is for other benchmarks.
func measureRivals(ctx context.Context, s settings) error {
	tools, err := buildRivals(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tools) //nolint:errcheck // a temporary directory
	rivals, environments := rivalsOf(s.binary, filepath.Join(tools, "kubectl"), filepath.Join(tools, "helm")), max(s.environments/10, 1)
	took := make([][3][]float64, len(rivals)) // all new, nothing to do, processor time of both
	var lasted time.Duration
	for round := range s.rounds {
		if round > 0 && s.isLate(lasted+s.limit/2) {
			break
		}
		begun := time.Now()
		for i, r := range rivals {
			one, err := r.measure(ctx, environments)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			for of, seconds := range one {
				took[i][of] = append(took[i][of], seconds)
			}
		}
		lasted = time.Since(begun)
	}
	fmt.Printf("\n%d environments, the same objects; medians of %d rounds\n\n", environments, len(took[0][0]))
	fmt.Print("| | all new | to the first | nothing to do | to the first | CPU, both |\n|---|---|---|---|---|---|\n")
	for i, r := range rivals {
		fmt.Printf("| %s | %.2f s | %.1f | %.2f s | %.1f | %.1f s |\n", r.name, median(took[i][0]), median(ratios(took[i][0], took[0][0])),
			median(took[i][1]), median(ratios(took[i][1], took[0][1])), median(took[i][2]))
	}
	return nil
}

func rivalsOf(solutionctl, kubectl, helm string) []rival {
	apply := func(more ...string) func(b bed) [][]string {
		return func(b bed) [][]string {
			return [][]string{append([]string{kubectl, "--kubeconfig", b.cluster.Kubeconfig, "apply", "-f", b.dir}, more...)}
		}
	}
	return []rival{
		{"the engine alone", nil, func(b bed) [][]string {
			return [][]string{{os.Args[0], "engine-step", b.cluster.Kubeconfig, b.dir, "1"}}
		}},
		{"solutionctl deploy add, 8 environments at a time", prepareAdd, func(b bed) [][]string {
			const addAll = `kubeconfig=$1 environment=$2; shift 2; for solution; do "$0" deploy add --kubeconfig "$kubeconfig" --no-wait "$environment" "$solution"; done`
			var commands [][]string
			for ofOne := range slices.Chunk(b.files, solutions) { // one after the other: an environment has one lock
				command := []string{"sh", "-ec", addAll, solutionctl, b.cluster.Kubeconfig, ofOne[0].namespace}
				for _, file := range ofOne {
					command = append(command, file.solution)
				}
				commands = append(commands, command)
			}
			return commands
		}},
		{"kubectl apply", nil, apply()},
		{"kubectl apply --server-side", nil, apply("--server-side")},
		{"helm upgrade --install, 8 at a time", nil, func(b bed) [][]string {
			var commands [][]string
			for _, file := range b.files {
				commands = append(commands, []string{
					helm, "--kubeconfig", b.cluster.Kubeconfig, "upgrade", "--install", "--namespace", file.namespace, file.solution, file.chart,
				})
			}
			return commands
		}},
	}
}

// measure deploys everything in a cluster of its own, twice: all new, and nothing to do. It returns both times and the processor time, in
// seconds.
func (r rival) measure(ctx context.Context, environments int) (took [3]float64, err error) {
	return took, inCluster(ctx, environments, func(b bed) error {
		if r.prepare != nil {
			if err := r.prepare(ctx, b); err != nil {
				return err
			}
		}
		for round := range 2 {
			started := time.Now()
			used, err := sideBySide(ctx, r.steps(b))
			if err != nil {
				return err
			}
			took[round] = time.Since(started).Seconds()
			took[2] += used.Seconds()
		}
		list, err := b.cluster.Client().AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) != len(b.files) {
			err = fmt.Errorf("there are %d Deployments of %d", len(list.Items), len(b.files))
		}
		return err
	})
}

// prepareAdd makes environments of the namespaces, and imports and activates Solutions with the objects that the rivals get as files.
func prepareAdd(ctx context.Context, b bed) error {
	c, err := cluster.Connect(cluster.Options{Kubeconfig: b.cluster.Kubeconfig, Now: time.Now})
	if err != nil {
		return err
	}
	d := deployer.New(deployer.Config{Cluster: c, Now: time.Now, Version: "1.0.0", Identity: "benchmark", LockWait: time.Minute})
	for _, file := range b.files[:solutions] {
		payload, err := file.content().Payload(file.solution, older)
		if err == nil {
			err = solution.Record(ctx, d, payload)
		}
		if err == nil {
			_, err = d.Activate(ctx, deployer.ActivateOptions{Solution: file.solution, Version: older})
		}
		if err != nil {
			return err
		}
	}
	for ofOne := range slices.Chunk(b.files, solutions) {
		if _, err := d.CreateEnvironment(ctx, metalk8s.CreateOptions{Name: ofOne[0].namespace, Adopt: true}); err != nil {
			return err
		}
	}
	return nil
}

// content is a Solution whose only component has the same objects. Namespace and registry are filled in when it is deployed.
func (f file) content() deployertest.Content {
	text := strings.NewReplacer(", namespace: "+f.namespace, "", "registry.solutionctl.invalid/"+f.solution+"-1.0.0/", "{{ repository }}/").Replace(f.text)
	return deployertest.Content{
		Bare: true, Manifest: "components: [{name: all, manifests: components/all.yaml}]", Images: []string{"operator"},
		Files: map[string]string{"components/all.yaml": text},
	}
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
