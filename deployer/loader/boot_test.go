package loader_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/loader"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
)

// withJob is the Solution edge with a chart whose hook leaves a Job behind, and with a Deployment that everybody has to have.
func withJob(t *testing.T) deployertest.Content {
	t.Helper()
	content := edge(t)
	content.Files["charts/db.tgz"] = deployertest.Chart(t, "db", map[string]string{"templates/db.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: db}
---
apiVersion: batch/v1
kind: Job
metadata: {name: db-sync, annotations: {helm.sh/hook: "post-install,post-upgrade"}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: registry.solutionctl.invalid/edge-1.0.0/edge-operator:1.0.0}]}}}
`})
	content.Files["components/web.yaml"] = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 1}\n"
	content.Manifest += "  - {name: web, manifests: components/web.yaml}\n"
	return content
}

// booted returns a device on which everything is deployed, and a function that counts the pods that the loader ran.
func booted(t *testing.T) (b bed, l *loader.Launcher, pods func() int) {
	t.Helper()
	b = bed{deployertest.New(t)}
	b.Imported("edge", "1.0.0", withJob(t))
	l = b.launcher(t, justEdge+"  repair: {mode: repair}\n")
	if _, err := l.Start(t.Context(), loader.StartOptions{Local: true}); err != nil {
		t.Fatal(err)
	}
	b.Server.Stall("Job") // of the loader, which the kubelet runs
	return b, l, b.kubelet(t, loader.Run)
}

// finds expects that a start finds everything: it starts no Job, and runs no hook again.
func (b bed) finds(t *testing.T, l *loader.Launcher, pods func() int, hook string) {
	t.Helper()
	progress, err := l.Start(t.Context(), loader.StartOptions{})
	if err != nil || progress.Phase != schema.LoadReady {
		t.Fatalf("%+v, %v", progress, err)
	}
	if pods() > 0 {
		t.Errorf("%d pods of the loader ran, where there was nothing to do", pods())
	}
	if is := string(b.Server.Object("Job", "infra", "db-sync").GetUID()); is != hook {
		t.Error("the hook ran again")
	}
}

// TestBootAfterRepair: a reboot kills a repair after it has restored objects and before it has recorded that. The boot
// finds everything in order: it starts no Job, and runs no hook again.
func TestBootAfterRepair(t *testing.T) {
	b, l, pods := booted(t)
	hook := string(b.Server.Object("Job", "infra", "db-sync").GetUID())
	b.Deleted("ConfigMap", "infra", "api")
	p := &schema.LoadParameters{Run: "repair", Timeout: 60, Repair: schema.RepairOn, Environments: l.Configuration.Spec.Environments}
	ctx, kill := context.WithCancel(t.Context())
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if ctx.Err() == nil && b.Server.Object("ConfigMap", "infra", "api") != nil {
			kill()
		}
		if ctx.Err() == nil || strings.Contains(r.URL.Path, "/leases/") { // all locks are released
			return false
		}
		clustertest.Fail(w, apierrors.NewInternalError(errors.New("killed")))
		return true
	}
	err := loader.Repair(ctx, b.Connect().Config, p)
	b.Server.Answer = nil
	if err == nil || b.Server.Object("ConfigMap", "infra", "api") == nil {
		t.Fatalf("the repair was not killed in the middle: %v", err)
	}
	begun, err := b.Resume(t.Context(), deployer.ResumeOptions{Options: plan.Options{DryRun: true}})
	if err != nil || len(begun.Operations) != 1 {
		t.Fatalf("not one repair was begun: %+v, %v", begun, err)
	}
	next, err := l.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const notice = "an interrupted repair of Solution edge in environment infra is finished first, without a Job"
	if next.Run != "" || next.Rights != "" || !slices.Contains(next.Notices, notice) {
		t.Errorf("the plan has run %q with the rights %q and the notices %q", next.Run, next.Rights, next.Notices)
	}
	b.finds(t, l, pods, hook)
	if begun, err = b.Resume(t.Context(), deployer.ResumeOptions{Options: plan.Options{DryRun: true}}); err != nil || len(begun.Operations) > 0 {
		t.Errorf("the repair is not finished: %+v, %v", begun, err)
	}
}

// TestBootWaits: nothing is ready after a boot, and running controllers may create the missing objects. A start waits
// for that before it treats them as missing.
func TestBootWaits(t *testing.T) {
	b, l, pods := booted(t)
	hook := string(b.Server.Object("Job", "infra", "db-sync").GetUID())
	api := b.Server.Object("ConfigMap", "infra", "api")
	web := b.Server.Object("Deployment", "infra", "web")
	ready, _, _ := unstructured.NestedFieldCopy(web.Object, "status")
	b.Server.Stall("Job", "Deployment")
	unready := web.DeepCopy()
	unready.Object["status"] = map[string]any{"observedGeneration": web.GetGeneration()}
	b.Put(unready)
	b.Deleted("ConfigMap", "infra", "api")
	var asked atomic.Int32
	b.Server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/deployments") {
			return false
		}
		if asked.Add(1) == 10 { // the controller that creates it is ready
			go func() {
				b.Put(api)
				web.Object["status"] = ready
				b.Put(web)
			}()
		}
		return false
	}
	b.finds(t, l, pods, hook)
}
