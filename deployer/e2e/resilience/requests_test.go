package resilience_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/proxy"
	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
)

// TestRequests counts what a verb asks of the API server in a process that knows the cluster already, besides its locks. Judging powers
// reads each CRD of the Solution's groups, to know who made it. A removal lists every kind that can have the label of a release, as it
// names the copies that it keeps.
func TestRequests(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var journal proxy.Journal
	p := proxy.New(t, b.Server, journal.Of("alice"))
	d := connect(t, cluster.Options{Kubeconfig: p.Kubeconfig})
	ctx := t.Context()
	options := plan.Options{NoWait: true}
	add := func(environment string) func() error {
		return func() error {
			_, err := d.Add(ctx, deployer.AddOptions{Options: options, Environment: environment, Solution: b.Name, Version: "1.0.0"})
			return err
		}
	}
	create := func(environment string) func() error {
		return func() error {
			_, err := d.CreateEnvironment(ctx, metalk8s.CreateOptions{Name: environment})
			return err
		}
	}
	for _, step := range []struct {
		name string
		most int
		do   func() error
	}{
		{"activate", 26, func() error {
			_, err := d.Activate(ctx, deployer.ActivateOptions{Solution: b.Name, Version: "1.1.0"})
			return err
		}},
		{"create", 8, create(b.Env)},
		{"create another", 8, create(b.Env + "-b")},
		{"add", 26, add(b.Env)},
		{"add to another", 26, add(b.Env + "-b")},
		{"add again", 15, add(b.Env + "-b")},
		{"upgrade", 37, func() error {
			_, err := d.Change(ctx, deployer.ChangeOptions{Options: options, Environment: b.Env + "-b", Solution: b.Name, Direction: records.Up, Version: "1.1.0"})
			return err
		}},
		{"remove", 64, func() error {
			_, err := d.Remove(ctx, deployer.RemoveOptions{Options: options, Environment: b.Env + "-b", Solution: b.Name})
			return err
		}},
		{"delete the environment", 60, func() error {
			_, err := d.DeleteEnvironment(ctx, environments.DeleteOptions{Options: options, Environment: b.Env + "-b"})
			return err
		}},
	} {
		before := len(journal.Entries())
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		asked := journal.Entries()[before:]
		var lines []string
		for _, e := range asked {
			if e.URI == "/api" || e.URI == "/apis" || strings.Contains(e.URI, "/leases/") {
				continue // the longer it takes the more of them
			}
			if strings.Contains(e.URI, "/clocks?") && !strings.Contains(e.URI, "/"+b.Name+".example/") {
				continue // of other tests
			}
			lines = append(lines, fmt.Sprintf("%s %s", e.Method, e.URI))
		}
		if len(lines) > step.most {
			t.Errorf("%s: %d requests, want at most %d:\n  %s", step.name, len(lines), step.most, strings.Join(lines, "\n  "))
		}
	}
}
