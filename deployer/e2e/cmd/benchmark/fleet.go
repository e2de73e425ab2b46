//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/solution"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/metrics"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
)

// atOnce is the number of environments that an administrator with many of them changes at once.
const atOnce = 8

// fleet is one process's view of many namespaces with the same Solutions, on nodes that pretend to run them.
type fleet struct {
	*deployer.Deployer
	namespaces int
	together   bool // all of them are one environment, and one verb is for all
}

// environments are the names of the environments.
func (f *fleet) environments() []string {
	if f.together {
		return []string{"fleet"}
	}
	names := make([]string, f.namespaces)
	for i := range names {
		names[i] = fmt.Sprintf("env-%03d", i)
	}
	return names
}

// The versions that every Solution has.
const older, newer = "1.0.0", "1.1.0"

func solutionNames() []string {
	names := make([]string, solutions)
	for i := range names {
		names[i] = fmt.Sprintf("solution-%d", i)
	}
	return names
}

// prepare imports and activates the Solutions.
func (f *fleet) prepare(ctx context.Context) error {
	for _, name := range solutionNames() {
		if err := solution.Import(ctx, f.Deployer, name, older, newer); err != nil {
			return err
		}
		if _, err := f.Activate(ctx, deployer.ActivateOptions{Solution: name, Version: newer}); err != nil {
			return err
		}
	}
	return nil
}

// steps are the measured steps, in this order.
var steps = []string{"create environments", "add", "add again", "status", "numbers with drift", "upgrade", "remove", "delete environments"}

// step does one of the steps for all environments.
func (f *fleet) step(ctx context.Context, name string) error {
	each := func(do func(ctx context.Context, environment string) error) error {
		group, inGroup := errgroup.WithContext(ctx)
		group.SetLimit(atOnce)
		for _, environment := range f.environments() {
			group.Go(func() error { return do(inGroup, environment) })
		}
		return group.Wait()
	}
	all := func(do func(ctx context.Context, environment, solution string) error) error {
		return each(func(ctx context.Context, environment string) error {
			for _, solution := range solutionNames() {
				if err := do(ctx, environment, solution); err != nil {
					return err
				}
			}
			return nil
		})
	}
	// A user of many environments does not wait for each in turn; a user of one waits.
	options := plan.Options{NoWait: !f.together, Timeout: 20 * time.Minute}
	switch name {
	case "create environments":
		return f.create(ctx, each)
	case "add", "add again":
		return all(func(ctx context.Context, environment, solution string) error {
			_, err := f.Add(ctx, deployer.AddOptions{Options: options, Environment: environment, Solution: solution, Version: older})
			return err
		})
	case "status":
		status, err := f.Survey.Status(ctx, survey.StatusOptions{})
		if err == nil && len(status.Environments) != len(f.environments()) {
			err = fmt.Errorf("%d environments", len(status.Environments))
		}
		return err
	case "wait":
		return f.wait(ctx)
	case "numbers with drift":
		status, err := f.Survey.Status(ctx, survey.StatusOptions{Drift: true})
		if err != nil {
			return err
		}
		var page metrics.Page
		survey.WriteMetrics(&page, status, time.Now())
		_, err = page.WriteTo(io.Discard)
		return err
	case "upgrade":
		return all(func(ctx context.Context, environment, solution string) error {
			_, err := f.Change(ctx, deployer.ChangeOptions{Options: options, Environment: environment, Solution: solution, Direction: records.Up, Version: newer})
			return err
		})
	case "remove":
		return all(func(ctx context.Context, environment, solution string) error {
			_, err := f.Remove(ctx, deployer.RemoveOptions{Options: options, Environment: environment, Solution: solution})
			return err
		})
	case "delete environments":
		return each(func(ctx context.Context, environment string) error {
			_, err := f.DeleteEnvironment(ctx, environments.DeleteOptions{Options: options, Environment: environment})
			return err
		})
	default:
		return fmt.Errorf("there is no step %q", name)
	}
}

// wait waits until all Solutions are ready, which add did not wait for.
func (f *fleet) wait(ctx context.Context) error {
	ready := errors.New("all Solutions are ready")
	ctx, stop := context.WithTimeoutCause(ctx, time.Hour, errors.New("the Solutions do not become ready"))
	defer stop()
	err := f.Survey.WatchStatus(ctx, survey.StatusOptions{}, func(status *schema.Status, err error) error {
		if err == nil && status.Ready {
			return ready
		}
		return nil
	})
	if errors.Is(err, ready) {
		return nil
	}
	return cmp.Or(err, context.Cause(ctx))
}

func (f *fleet) create(ctx context.Context, each func(func(context.Context, string) error) error) error {
	if !f.together {
		return each(func(ctx context.Context, environment string) error {
			_, err := f.CreateEnvironment(ctx, metalk8s.CreateOptions{Name: environment})
			return err
		})
	}
	for i := range f.namespaces {
		if _, err := f.CreateEnvironment(ctx, metalk8s.CreateOptions{Name: "fleet", Namespace: fmt.Sprintf("fleet-%03d", i)}); err != nil {
			return err
		}
	}
	return nil
}

// runStep is the contestant: one process that does one step.
func runStep(ctx context.Context, kubeconfig, namespaces, shape, step string) error {
	n, err := strconv.Atoi(namespaces)
	if err != nil {
		return err
	}
	c, err := cluster.Connect(cluster.Options{Kubeconfig: kubeconfig, Now: time.Now})
	if err != nil {
		return err
	}
	f := &fleet{
		Deployer:   deployer.New(deployer.Config{Cluster: c, Now: time.Now, Version: "1.0.0", Identity: "benchmark", LockWait: time.Minute}),
		namespaces: n, together: shape == "together",
	}
	if step == "prepare" {
		return f.prepare(ctx)
	}
	started := time.Now()
	if err := f.step(ctx, step); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(time.Since(started).Seconds())
}

// measureFleet prints what the verbs take for many environments, and for one of as many namespaces.
func measureFleet(ctx context.Context, namespaces int) error {
	for _, shape := range []string{"apart", "together"} {
		fmt.Printf("\n%d namespaces %s, %d Solutions in each\n\n", namespaces, shape, solutions)
		fmt.Println("| | time | CPU | peak RssAnon |")
		fmt.Println("|---|---|---|---|")
		if err := measureShape(ctx, namespaces, shape); err != nil {
			return fmt.Errorf("%s: %w", shape, err)
		}
	}
	return nil
}

func measureShape(ctx context.Context, namespaces int, shape string) (err error) {
	c, err := testcluster.Start(ctx, testcluster.Options{FakeNodes: 3, Progress: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	contestant := func(step string) (sample, error) {
		return measure(ctx, os.Args[0], "fleet-step", c.Kubeconfig, strconv.Itoa(namespaces), shape, step)
	}
	if _, err := contestant("prepare"); err != nil {
		return err
	}
	for _, step := range steps {
		s, err := contestant(step)
		if err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
		if err := printStep(step, s); err != nil {
			return err
		}
		if step == "add" || step == "upgrade" { // controllers and nodes still work on it, with the same processors
			if _, err := contestant("wait"); err != nil {
				return fmt.Errorf("wait until all is ready: %w", err)
			}
		}
	}
	return nil
}

// printStep prints the row of a measured step.
func printStep(step string, s sample) error {
	var seconds float64
	if err := json.Unmarshal(s.output, &seconds); err != nil {
		return fmt.Errorf("%w: %s", err, s.output)
	}
	fmt.Printf("| %s | %.2f s | %.2f s | %.0f MiB |\n", step, seconds, s.cpu.Seconds(), float64(s.anon)/(1<<20))
	return nil
}
