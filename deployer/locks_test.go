package deployer_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestLocksGo: the lock of a namespace goes with the environment, however it was deleted, and comes again with the next one.
func TestLocksGo(t *testing.T) {
	deleted := func(b *deployertest.Bed, o plan.Options) error {
		_, err := deleteSite(plan.DeleteData)(b.Context(), b.Deployer, o)
		return err
	}
	for name, test := range map[string]struct {
		run   func(*deployertest.Bed) error
		code  report.Code
		stays bool
	}{
		"with everything in it":  {run: func(b *deployertest.Bed) error { return deleted(b, plan.Options{}) }},
		"without waiting for it": {run: func(b *deployertest.Bed) error { return deleted(b, plan.Options{NoWait: true}) }},
		"after its namespace": {run: func(b *deployertest.Bed) error {
			b.Deleted("Namespace", "", site)
			return deleted(b, plan.Options{})
		}},
		"after a run that was interrupted at its end": {run: func(b *deployertest.Bed) error {
			if err := deleted(b, plan.Options{}); err != nil {
				return err
			}
			b.Server.Put(b.TB, `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: env-site, namespace: solutionctl-system}, spec: {leaseDurationSeconds: 15}}`)
			return deleted(b, plan.Options{})
		}},
		"only a plan": {stays: true, run: func(b *deployertest.Bed) error { return deleted(b, plan.Options{DryRun: true}) }},
		"refused": {stays: true, code: report.InUse, run: func(b *deployertest.Bed) error {
			_, err := deleteSite(plan.RefuseData)(b.Context(), b.Deployer, plan.Options{})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := deployertest.New(t)
			b.Added(shop, "1.0.0", deployertest.Content{})
			if err := test.run(b); report.CodeOf(err) != test.code {
				t.Fatal(err)
			}
			if got := slices.Contains(b.Server.Names("Lease"), cluster.SystemNamespace+"/env-site"); got != test.stays {
				t.Errorf("the lock is there: %t", got)
			}
		})
	}
}

// TestLockAfterDeletion: a verb that waited while the environment was deleted leaves no lock of it.
func TestLockAfterDeletion(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", deployertest.Content{})
	lock, err := b.Cluster.Lock(t.Context(), "env-site", cluster.LockOptions{Identity: "jane@there"})
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan struct{})
	config := b.Config
	config.LockWait = 1 << 40
	config.Sink = reports(sync.OnceFunc(func() { close(waits) }))
	got := make(chan error, 1)
	go func() {
		_, err := remove(shop)(t.Context(), deployer.New(config), plan.Options{})
		got <- err
	}()
	select {
	case <-waits:
	case err := <-got:
		t.Fatalf("it did not wait: %v", err)
	}
	b.Deleted("Namespace", "", site)
	lock.Discard()
	if err := lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-got; err != nil && report.CodeOf(err) != report.NotFound {
		t.Error(err)
	}
	if names := b.Server.Names("Lease"); slices.Contains(names, cluster.SystemNamespace+"/env-site") {
		t.Errorf("%q", names)
	}
}

// reports is a sink that calls a function for each event.
type reports func()

func (r reports) Emit(report.Event) { r() }
