package deployer_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// endingAt refuses the write with this number and all that follow, as if the process had ended. Locks are released.
func endingAt(b *deployertest.Bed, number int) (mend func()) {
	var mu sync.Mutex
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		request := r.Method + " " + r.URL.Path
		if r.Method == http.MethodGet || r.URL.Query().Has("dryRun") || isLock(request) || strings.Contains(request, "/apis/auth") {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		if number--; number > 0 {
			return false
		}
		clustertest.Fail(w, apierrors.NewForbidden(kube.GroupResource{Resource: "everything"}, "", errors.New("ended")))
		return true
	}
	return func() { b.Server.Answer = nil }
}

// stride is the distance between the writes at which a test ends a run that begins again each time: 1, so that it ends at every write, and
// more in short mode, where [TestInterrupted] ends verbs at every write.
func stride(short int) int {
	if testing.Short() {
		return short
	}
	return 1
}

// TestInterrupted: a verb that ends at its first write, is run again and ends at its second, and so on, gets to where it would
// have got at once.
func TestInterrupted(t *testing.T) {
	b := deployertest.New(t)
	b.Imported(shop, "1.0.0", plain)
	b.Imported(shop, "1.1.0", coloured)
	for _, s := range life {
		ok := t.Run(s.name, func(t *testing.T) {
			for number := 1; ; number++ {
				mend := endingAt(b, number)
				_, err := s.run(t.Context(), b.Deployer, plan.Options{})
				mend()
				if err == nil {
					break
				}
				if number > 50 {
					t.Fatalf("it never ends: %v", err)
				}
			}
			if got := recorded(t, b); got != s.records {
				t.Errorf("records:\n%s, want\n%s", got, s.records)
			}
			if again, err := s.run(t.Context(), b.Deployer, plan.Options{}); err != nil || !again.Empty() {
				t.Errorf("something is left to do: %+v, %v", again, err)
			}
		})
		if !ok {
			return
		}
	}
}

// TestResume checks that a run interrupted after it was recorded is finished by a user who does not know the command.
func TestResume(t *testing.T) {
	b := deployertest.New(t)
	b.Imported(shop, "1.0.0", plain)
	b.Imported(shop, "1.1.0", coloured)
	resume := func(t *testing.T, o plan.Options) (list []string) {
		t.Helper()
		result, err := b.Resume(t.Context(), deployer.ResumeOptions{Options: o})
		if err != nil {
			t.Fatal(err)
		}
		deployertest.Valid(t, "resumption", result)
		for _, one := range result.Operations {
			if one.User == "" || one.Started.IsZero() || one.Finished == o.DryRun || one.Error != "" {
				t.Errorf("dry run %t: %+v", o.DryRun, one)
			}
			list = append(list, strings.TrimSpace(one.Operation+" "+one.Version+" "+one.Namespace))
		}
		return list
	}
	var all []string
	for _, s := range life {
		ok := t.Run(s.name, func(t *testing.T) {
			mend := endingAt(b, 4) // the first writes record what begins
			_, err := s.run(t.Context(), b.Deployer, plan.Options{})
			mend()
			if err != nil {
				b.Writes()
				begun := resume(t, plan.Options{DryRun: true})
				if writes := b.Writes(); len(writes) > 0 {
					t.Errorf("a plan to resume wrote %q", writes)
				}
				if finished := resume(t, plan.Options{}); !slices.Equal(begun, finished) {
					t.Errorf("begun was %q, finished %q", begun, finished)
				}
				all = append(all, begun...)
			}
			if left := resume(t, plan.Options{}); len(left) > 0 {
				t.Errorf("left is %q", left)
			}
			// The other namespace was not begun: the command does it.
			if _, err := s.run(t.Context(), b.Deployer, plan.Options{}); err != nil {
				t.Error(err)
			}
			if got := recorded(t, b); got != s.records {
				t.Errorf("records:\n%s, want\n%s", got, s.records)
			}
		})
		if !ok {
			return
		}
	}
	for _, verb := range []string{"activate", "add", "upgrade", "downgrade", "rollback", "remove", "deactivate"} {
		if !slices.ContainsFunc(all, func(begun string) bool { return strings.HasPrefix(begun, verb+" ") || begun == verb }) {
			t.Errorf("no %s among what was resumed: %q", verb, all)
		}
	}
	_, err := b.Resume(t.Context(), deployer.ResumeOptions{Solution: "other"})
	deployertest.Refused(t, err, report.NotFound, "other")
}

// TestResumeKeepsData checks that resuming a removal deletes no data, even if the interrupted command would have.
func TestResumeKeepsData(t *testing.T) {
	for _, policy := range []plan.DataPolicy{plan.KeepData, plan.DeleteData} {
		b := deployertest.New(t)
		b.Added(shop, "1.0.0", plain)
		b.Clock(shop, site, "red", "hands: 2")
		var out export
		mend := endingAt(b, 3)
		_, err := b.Remove(t.Context(), deployer.RemoveOptions{Environment: site, Solution: shop, Data: policy, Export: out.open})
		mend()
		if err == nil {
			t.Fatal("it was not interrupted")
		}
		if policy == plan.DeleteData { // another one was made since
			b.Clock(shop, site, "blue", "hands: 2")
		}
		_, err = b.Resume(t.Context(), deployer.ResumeOptions{})
		if policy == plan.DeleteData {
			deployertest.Refused(t, err, report.DataLoss, "of kind Clock", "--delete-data")
		} else if err != nil || slices.Contains(b.Server.Names("Deployment"), "site/shop-operator") {
			t.Errorf("it is not removed: %v", err)
		}
		if policy == plan.KeepData && !slices.Contains(b.Server.Names("Clock"), "site/red") {
			t.Error("data that was to be kept was deleted")
		}
	}
}

// TestNotReady checks that an operation that does not become ready is reported, can be finished later, and is rolled back if requested.
func TestNotReady(t *testing.T) {
	const soon = 10 // nanoseconds: it has been waited for
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", plain)
	b.Server.Stall("Deployment")
	_, err := add("1.0.0")(t.Context(), b.Deployer, plan.Options{Timeout: soon})
	deployertest.Refused(t, err, report.Timeout, "Deployment site/shop-operator")
	b.Server.Stall()
	if done, failure := b.Resume(t.Context(), deployer.ResumeOptions{}); failure != nil || len(done.Operations) != 1 || !done.Operations[0].Finished {
		t.Errorf("%+v, %v", done, failure)
	}

	b.Activated(shop, "1.1.0", coloured)
	b.Server.Stall("Deployment")
	upgrade := deployer.ChangeOptions{
		Options: plan.Options{Timeout: soon}, Environment: site, Solution: shop, Direction: records.Up, RollBack: true,
	}
	_, err = b.Change(t.Context(), upgrade)
	deployertest.Refused(t, err, report.Timeout, "Deployment site/shop-operator", "and the rollback failed, too")
	if got, want := recorded(t, b), "1.1.0 active, 1.0.0 here; cluster: activate 1.1.0; pending rollback; site: add 1.0.0"; got != want {
		t.Errorf("records:\n%s, want\n%s", got, want)
	}
	b.Server.Stall()
	if done := must(b, rollback(0)); done.Version != "1.0.0" {
		t.Errorf("%+v", done)
	}
	if got, want := recorded(t, b), "1.1.0 active, 1.0.0 here; cluster: activate 1.1.0; site: rollback 1.0.0"; got != want {
		t.Errorf("records:\n%s, want\n%s", got, want)
	}
}

// TestHintsOfFailures: what goes back leaves nothing in the middle, and going back is the alternative to all else.
func TestHintsOfFailures(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", plain)
	b.Activated(shop, "1.1.0", coloured)
	b.Server.Stall("Deployment")
	upgrade := deployer.ChangeOptions{Options: plan.Options{Timeout: 10}, Environment: site, Solution: shop, Direction: records.Up}
	_, err := b.Change(t.Context(), upgrade)
	deployertest.Refused(t, err, report.Timeout)
	hints := strings.Join(report.Hints(err), "\n")
	if first, last := strings.Index(hints, "repair the cause"), strings.Index(hints, "or go back"); first < 0 || last < first {
		t.Errorf("the hints are:\n%s", hints)
	}
	if remedies := report.RemediesOf(err); len(remedies) != 1 {
		t.Errorf("the remedies are %v", remedies)
	}

	b.Server.Stall()
	must(b, rollback(0))
	upgrade.RollBack = true
	b.Server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/deployments/shop-operator") && r.URL.Query().Get("dryRun") == "" {
			b.Server.Stall("Deployment")
			b.Server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/deployments/shop-operator") && r.URL.Query().Get("dryRun") == "" {
					b.Server.Stall()
				}
				return false
			}
		}
		return false
	}
	_, err = b.Change(t.Context(), upgrade)
	deployertest.Refused(t, err, report.Timeout, "everything is back as it was before")
	if hints = strings.Join(report.Hints(err), "\n"); strings.Contains(hints, "stays as it is") {
		t.Errorf("the hints are:\n%s", hints)
	}
}

// TestInterruptedWhileWaiting checks that the error names the objects that were not ready.
func TestInterruptedWhileWaiting(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", plain)
	b.Server.Stall("Deployment")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.Server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/deployments") && r.URL.Query().Get("watch") != "" {
			cancel()
		}
		return false
	}
	_, err := add("1.0.0")(ctx, b.Deployer, plan.Options{})
	deployertest.Refused(t, err, report.Interrupted, "interrupted while waiting for 1 of ", "Deployment site/shop-operator", "run the same command again")
}

// TestReplaceBinding: a binding is replaced where it has to be, and is not to be named.
func TestReplaceBinding(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", plain)
	_, err := add("1.0.0")(t.Context(), b.Deployer, plan.Options{Replace: []string{"RoleBinding/shop-operator"}})
	deployertest.Refused(t, err, report.Usage, "RoleBinding is replaced without being named")
}

// TestReplaceRunningJob checks that a Job that an earlier operation left running can be named as the refusal proposes.
func TestReplaceRunningJob(t *testing.T) {
	b := deployertest.New(t)
	content := deployertest.Content{
		Files: map[string]string{"components/sync.yaml": `apiVersion: batch/v1
kind: Job
metadata: {name: sync}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: registry.solutionctl.invalid/shop-1.0.0/shop-operator:1.0.0}]}}}
`},
		Manifest: "components:\n  - {name: sync, job: components/sync.yaml}\n",
	}
	b.Activated(shop, "1.0.0", content)
	b.Server.Stall("Job")
	_, err := add("1.0.0")(t.Context(), b.Deployer, plan.Options{Timeout: 1})
	deployertest.Refused(t, err, report.Timeout, "task Job site/sync")
	running := b.Server.Object("Job", site, "sync").GetUID()
	b.Activated(shop, "1.1.0", content)
	_, err = upgrade("1.1.0")(t.Context(), b.Deployer, plan.Options{})
	deployertest.Refused(t, err, report.Refused, "Job site/sync is still running for an earlier operation", "--replace Job/sync")
	if _, err = upgrade("1.1.0")(t.Context(), b.Deployer, plan.Options{Timeout: 1, Replace: []string{"Job/sync"}}); report.CodeOf(err) != report.Timeout {
		t.Error(err)
	}
	if b.Server.Object("Job", site, "sync").GetUID() == running {
		t.Error("the Job is not replaced")
	}
}

// TestDeleteNothing checks that a missing object is not reported as deleted, and that an earlier object of the same name does not count as
// part of the release.
func TestDeleteNothing(t *testing.T) {
	b := deployertest.New(t)
	done, err := b.DeleteEnvironment(t.Context(), environments.DeleteOptions{Environment: "tst"})
	if err != nil || !strings.HasPrefix(done.Title(), "there is no environment tst") {
		t.Errorf("%q, %v", done.Title(), err)
	}
	b.Added(shop, "1.0.0", plain)
	must(b, remove(shop))
	done, err = b.DeleteEnvironment(t.Context(), environments.DeleteOptions{Environment: site})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range done.Parts {
		if len(part.Changes) == 0 {
			t.Errorf("a part without anything: %+v", part)
		}
	}
	if states, err := b.Records.Engine.States(t.Context()); err != nil || slices.ContainsFunc(states, func(s *record.State) bool { return s.Namespace == site }) {
		t.Errorf("the records stay: %v, %v", states, err)
	}
}

// TestApplicationsAreAwaited: an upgrade that looks after its applications has not succeeded before they are ready.
func TestApplicationsAreAwaited(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", plain)
	b.Activated(shop, "1.1.0", plain)
	upgrade := deployer.ChangeOptions{Environment: site, Solution: shop, Direction: records.Up, WaitApps: true}
	if _, err := b.Change(t.Context(), upgrade); err != nil {
		t.Fatalf("there is none: %v", err)
	}
	b.Clock(shop, site, "wall", "hands: 2")
	clock := b.Server.Object("Clock", site, "wall")
	clock.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "message": "no battery"}}}
	b.Put(clock)
	b.Imported(shop, "1.2.0", plain)
	upgrade.Version, upgrade.Timeout = "1.2.0", 10
	_, err := b.Change(t.Context(), upgrade)
	deployertest.Refused(t, err, report.Timeout, "Clock site/wall", "deploy rollback site shop")
}

// TestData checks that custom resources are kept or exported as requested, and never deleted without a report.
func TestData(t *testing.T) {
	with := func(t *testing.T) *deployertest.Bed {
		t.Helper()
		b := deployertest.New(t)
		b.Added(shop, "1.0.0", coloured)
		b.Clock(shop, site, "red", "colour: red")
		return b
	}
	for _, test := range []struct {
		name string
		run  func(*deployertest.Bed, definitions.Export) error
		kept bool // the clock stays
	}{
		{"remove and keep", func(b *deployertest.Bed, e definitions.Export) error {
			_, err := b.Remove(b.Context(), deployer.RemoveOptions{Environment: site, Solution: shop, Data: plan.KeepData, Export: e})
			return err
		}, true},
		{"remove and delete", func(b *deployertest.Bed, e definitions.Export) error {
			_, err := b.Remove(b.Context(), deployer.RemoveOptions{Environment: site, Solution: shop, Data: plan.DeleteData, Export: e})
			return err
		}, false},
		{"deactivate and keep", func(b *deployertest.Bed, e definitions.Export) error {
			_, err := b.Deactivate(b.Context(), deployer.DeactivateOptions{Solution: shop, Data: plan.KeepData, Export: e})
			return err
		}, true},
		{"deactivate and delete", func(b *deployertest.Bed, e definitions.Export) error {
			_, err := b.Deactivate(b.Context(), deployer.DeactivateOptions{Solution: shop, Data: plan.DeleteData, Export: e})
			return err
		}, false},
		{"delete the environment", func(b *deployertest.Bed, e definitions.Export) error {
			_, err := b.DeleteEnvironment(b.Context(), environments.DeleteOptions{Environment: site, Data: plan.DeleteData, Export: e})
			return err
		}, false},
		{"activate and accept the loss", func(b *deployertest.Bed, e definitions.Export) error {
			b.Imported(shop, "2.0.0", plain)
			_, err := b.Activate(b.Context(), deployer.ActivateOptions{Solution: shop, Version: "2.0.0", Losses: definitions.Losses{AcceptDataLoss: []string{"clocks.shop.example"}, Export: e}})
			return err
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := with(t)
			var out export
			if err := test.run(b, out.open); err != nil {
				t.Fatal(err)
			}
			exported, wanted := strings.Contains(out.String(), `"red"`), !test.kept || strings.Contains(test.name, "loss")
			if kept := slices.Contains(b.Server.Names("Clock"), "site/red"); kept != test.kept || exported != wanted {
				t.Errorf("kept %t, exported %q", kept, out.String())
			}
		})
		if strings.HasPrefix(test.name, "deactivate and keep") {
			t.Run(test.name+", and activate again", func(t *testing.T) {
				b := with(t)
				must(b, func(ctx context.Context, d *deployer.Deployer, _ plan.Options) (*schema.Operation, error) {
					return d.Remove(ctx, deployer.RemoveOptions{Environment: site, Solution: shop, Data: plan.KeepData})
				})
				before := b.Server.Object("Clock", site, "red")
				if err := test.run(b, nil); err != nil {
					t.Fatal(err)
				}
				must(b, activate("1.0.0"))
				if after := b.Server.Object("Clock", site, "red"); after == nil || after.GetUID() != before.GetUID() {
					t.Errorf("the clock is %v", after)
				}
			})
		}
		t.Run(test.name+", nowhere to export to", func(t *testing.T) {
			b := with(t)
			full := report.Errorf(report.NoSpace, "the disk is full")
			err := test.run(b, func(func(io.Writer) error) error { return full })
			if needed := !test.kept || strings.Contains(test.name, "loss"); needed {
				deployertest.Refused(t, err, report.NoSpace)
				if !slices.Contains(b.Server.Names("Clock"), "site/red") || !slices.Contains(b.Server.Names("Deployment"), "site/shop-operator") {
					t.Error("something was deleted")
				}
			}
		})
	}
}

// TestHeldData: custom resources that their finalizers keep are waited for while their operator still works.
func TestHeldData(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", plain)
	b.Clock(shop, site, "red", "hands: 2")
	const held = "{apiVersion: shop.example/v1, kind: Clock, metadata: {name: held, namespace: site, finalizers: [example.com/hold]}, spec: {hands: 3}}"
	b.Server.Put(t, held)
	var out export
	o := deployer.RemoveOptions{Options: plan.Options{Timeout: time.Second}, Environment: site, Solution: shop, Data: plan.DeleteData, Export: out.open}
	_, err := b.Remove(t.Context(), o)
	deployertest.Refused(t, err, report.Timeout, "Clock site/held", "example.com/hold")
	if b.Server.Object("Deployment", site, "shop-operator") == nil {
		t.Error("the operator was removed while it was needed")
	}
	if live := b.Server.Object("Clock", site, "held"); live == nil || live.GetDeletionTimestamp() == nil {
		t.Errorf("it was not deleted: %v", live)
	}
	for _, name := range []string{`"red"`, `"held"`} {
		if !strings.Contains(out.String(), name) {
			t.Errorf("%s was not exported: %s", name, out.String())
		}
	}
	b.Server.Put(t, strings.Replace(held, ", finalizers: [example.com/hold]", "", 1))
	o.Timeout = 0
	if _, err := b.Remove(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if left := append(b.Server.Names("Clock"), b.Server.Names("Deployment")...); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

// TestPurge checks that a purge waits for a run that holds a lock, reports what stays, and can be resumed after any of its writes.
// Afterwards everything works as in a new cluster.
func TestPurge(t *testing.T) {
	content := deployertest.Content{Files: map[string]string{"operator/cluster/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"}}
	b := deployertest.New(t, "{apiVersion: v1, kind: Namespace, metadata: {name: other-system}}")
	b.Activated(shop, "1.0.0", content)
	must(b, deleteSite(plan.RefuseData))
	if _, err := b.Deactivate(t.Context(), deployer.DeactivateOptions{Solution: shop, Data: plan.KeepData}); err != nil {
		t.Fatal(err)
	}
	_, err := purge(t.Context(), b.Deployer, plan.Options{})
	deployertest.Refused(t, err, report.InUse, "is imported", "clocks.shop.example was kept")
	must(b, activate("1.0.0"))
	must(b, deactivate(shop))
	if err = b.RecordUnimport(t.Context(), deployer.UnimportOptions{ID: "shop-1.0.0"}); err != nil {
		t.Fatal(err)
	}
	lock, err := b.Cluster.Lock(t.Context(), "env-elsewhere", cluster.LockOptions{Identity: "mallory@there"})
	if err != nil {
		t.Fatal(err)
	}
	for dryRun, code := range map[bool]report.Code{true: report.InUse, false: report.Locked} {
		_, err = purge(t.Context(), b.Connect(), plan.Options{DryRun: dryRun})
		deployertest.Refused(t, err, code, "mallory@there")
	}
	if err = lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Server.Put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: mine, namespace: shop-system}}")
	planned, err := purge(t.Context(), b.Deployer, plan.Options{DryRun: true})
	if err != nil || !strings.Contains(strings.Join(planned.Notices, "\n"), "mine") {
		t.Errorf("%+v, %v", planned, err)
	}
	if text := planned.ConsequencesText(); !strings.HasPrefix(text, "namespace solutionctl-system is deleted; ") || !strings.Contains(text, " of solutionctl removed for good; nothing that runs changes") {
		t.Errorf("the consequences are %q", text)
	}
	b.Deleted("ConfigMap", "shop-system", "mine")
	b.Server.Put(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: loader, namespace: solutionctl-system, labels: {app.kubernetes.io/managed-by: solutionctl}}}`)
	for number := 1; ; number++ {
		mend := endingAt(b, number)
		_, err := purge(t.Context(), b.Connect(), plan.Options{})
		mend()
		if err == nil {
			break
		}
		if number > 50 {
			t.Fatalf("it never ends: %v", err)
		}
	}
	if left := b.Server.Names("Namespace"); !slices.Equal(left, []string{"default", "metalk8s-solutions", "other-system"}) {
		t.Errorf("namespaces: %q", left)
	}
	if again := must(b, purge); !again.Empty() || slices.Contains(b.Server.Names("Namespace"), cluster.SystemNamespace) {
		t.Errorf("again: %+v", again)
	}
	b.Namespace(site, site)
	b.Added(shop, "1.0.0", content)
}
