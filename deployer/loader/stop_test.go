package loader_test

import (
	"context"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/loader"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ended is how a launcher's start ended.
type ended struct {
	progress *schema.LoadProgress
	err      error
}

// starts begins a run from another host, and returns how it ends.
func (b bed) starts(t *testing.T, l *loader.Launcher, o loader.StartOptions) <-chan ended {
	t.Helper()
	end := make(chan ended, 1)
	go func() {
		progress, err := l.Start(t.Context(), o)
		end <- ended{progress, err}
	}()
	return end
}

// reached is closed when a launcher waits for something to become ready, or for a lock.
func reached(l *loader.Launcher, step string) <-chan struct{} {
	at := make(chan struct{}, 1)
	l.Deployer.Sink = sink(func(e report.Event) {
		if e.Step == step {
			select {
			case at <- struct{}{}:
			default:
			}
		}
	})
	return at
}

// isStopped expects that a run was stopped by a user, and that only its record is left of the loader.
func (b bed) isStopped(t *testing.T, end ended) {
	t.Helper()
	deployertest.Refused(t, end.err, report.Interrupted, "tester@here has stopped it", "deploy loader start")
	text, _, _ := unstructured.NestedString(b.Server.Object("ConfigMap", cluster.SystemNamespace, loader.ProgressName).Object, "data", "phase")
	if text != string(schema.LoadInterrupted) {
		t.Errorf("the phase is %s", text)
	}
	for _, kind := range []string{"Job", "CronJob", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Lease"} {
		if strings.Contains(b.names(kind), "loader") {
			t.Errorf("left behind is %s %s", kind, b.names(kind))
		}
	}
}

const withRepairs = justEdge + "  repair: {mode: repair}\n"

// TestStopFollowed: a launcher on another host follows a run that is stopped. It reports which user did it, and
// schedules no repairs.
func TestStopFollowed(t *testing.T) {
	b := newBed(t)
	begun := make(chan struct{})
	b.kubelet(t, func(ctx context.Context, _ deployer.Config, _ *schema.LoadParameters) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	})
	end := b.starts(t, b.launcher(t, withRepairs), loader.StartOptions{})
	<-begun
	other := b.launcher(t, justEdge)
	if _, err := other.Stop(t.Context(), loader.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	b.isStopped(t, <-end)
	progress, err := other.Wait(t.Context(), time.Hour) // which is over at once
	deployertest.Refused(t, err, report.Interrupted, "has stopped it")
	if progress.Phase != schema.LoadInterrupted {
		t.Errorf("%+v", progress)
	}
	if _, err := other.Stop(t.Context(), loader.StopOptions{}); err != nil {
		t.Errorf("to stop what was stopped: %v", err)
	}
}

// TestStopCopies checks that objects of others with the label of a part stay, and that those of a printed manifest are deleted.
func TestStopCopies(t *testing.T) {
	b := newBed(t)
	l := b.launcher(t, justEdge)
	for _, head := range []string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default",
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: solutionctl-loader, namespace: default",
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: solutionctl-loader, namespace: solutionctl-system",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: solutionctl-loader, namespace: site",
	} {
		b.Server.Put(t, head+", managedFields: [{manager: kubectl, operation: Apply}], labels: {"+loader.LabelPart+": solutionctl-loader}}\n")
	}
	if _, err := l.Stop(t.Context(), loader.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string][]string{"ConfigMap": {"default/settings"}, "ServiceAccount": {"default/solutionctl-loader"}, "Role": nil} {
		left := slices.DeleteFunc(b.Server.Names(kind), func(name string) bool {
			return !strings.HasPrefix(name, "default/") && !strings.HasSuffix(name, "/solutionctl-loader")
		})
		if !slices.Equal(left, want) {
			t.Errorf("%s: %v", kind, left)
		}
	}
}

// TestStopChanging checks that Jobs, accounts and repairs are deleted although controllers change them meanwhile.
func TestStopChanging(t *testing.T) {
	b := newBed(t)
	l := b.launcher(t, withRepairs)
	if _, err := l.Start(t.Context(), loader.StartOptions{NoWait: true}); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{"jobs": "Job", "cronjobs": "CronJob", "serviceaccounts": "ServiceAccount"}
	b.Server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		collection, name := path.Split(r.URL.Path)
		if object := b.Server.Object(kinds[path.Base(collection)], cluster.SystemNamespace, name); r.Method == http.MethodDelete && object != nil {
			object.SetAnnotations(map[string]string{"example.com/changed": "true"})
			b.Server.Update(t, object)
		}
		return false
	}
	if _, err := l.Stop(t.Context(), loader.StopOptions{}); err != nil {
		t.Error(err)
	}
	for _, kind := range kinds {
		if left := b.names(kind); strings.Contains(left, "loader") {
			t.Errorf("left behind is %s", left)
		}
	}
}

// TestPruneFails checks that what a removal does not find is an error, unless the environment is gone.
func TestPruneFails(t *testing.T) {
	b := newBed(t)
	if _, err := b.launcher(t, justEdge).Start(t.Context(), loader.StartOptions{Local: true}); err != nil {
		t.Fatal(err)
	}
	l := b.launcher(t, "  environments: [{name: site, solutions: [{name: edge}]}]\n")
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		lost := strings.HasPrefix(r.URL.Path, "/apis/authorization.k8s.io/")
		if lost {
			clustertest.Fail(w, apierrors.NewNotFound(kube.GroupResource{Resource: "selfsubjectaccessreviews"}, "a"))
		}
		return lost
	}
	loaded := func() int {
		progress, err := l.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(progress.Loaded)
	}
	if _, err := l.Stop(t.Context(), loader.StopOptions{Prune: true}); report.CodeOf(err) != report.NotFound || loaded() != 1 {
		t.Errorf("%d are loaded: %v", loaded(), err)
	}
	b.Server.Answer = nil
	b.Deleted("Namespace", "", "infra")
	if _, err := l.Stop(t.Context(), loader.StopOptions{Prune: true}); err != nil || loaded() != 0 {
		t.Errorf("%d are loaded: %v", loaded(), err)
	}
}

// TestStopLocal: a run that another host does in its own process ends, too, although nothing happens there.
func TestStopLocal(t *testing.T) {
	b := newBed(t)
	b.Server.Stall("Job", "Deployment")
	l := b.launcher(t, withRepairs)
	waits := reached(l, "wait")
	end := b.starts(t, l, loader.StartOptions{Local: true})
	<-waits
	if _, err := b.launcher(t, justEdge).Stop(t.Context(), loader.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	b.isStopped(t, <-end)

	// The next start finishes the interrupted one.
	b.Server.Stall("Job")
	if progress, err := b.launcher(t, justEdge).Start(t.Context(), loader.StartOptions{Local: true}); err != nil || progress.Phase != schema.LoadReady {
		t.Errorf("%+v, %v", progress, err)
	}
}

// TestStopBeginning: a launcher that is about to start a run does not start it after it was stopped.
func TestStopBeginning(t *testing.T) {
	b := newBed(t)
	l, other := b.launcher(t, withRepairs), b.launcher(t, justEdge)
	waits, stopped := reached(other, "lock"), make(chan error, 1)
	begun := false
	b.Server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/jobs/") && !begun {
			begun = true
			go func() {
				_, err := other.Stop(t.Context(), loader.StopOptions{})
				stopped <- err
			}()
			<-waits
		}
		return false
	}
	end := <-b.starts(t, l, loader.StartOptions{})
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	b.isStopped(t, end)
}

// losesEnd makes the API server refuse what the first pod of a run writes when the run has ended.
func (b bed) losesEnd() {
	var events atomic.Int32
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/events") {
			events.Add(1)
		}
		lost := events.Load() == 2 && r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/"+loader.ProgressName)
		if lost {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return lost
	}
}

// TestLostEnd: the API server goes away before a pod has written how its run ended. The pod fails, so that its successor
// writes it.
func TestLostEnd(t *testing.T) {
	b := newBed(t)
	b.losesEnd()
	b.kubelet(t, func(ctx context.Context, c deployer.Config, p *schema.LoadParameters) error {
		if err := loader.Run(ctx, c, p); report.CodeOf(err) != report.Unavailable {
			t.Errorf("the first pod: %v", err)
		}
		return loader.Run(ctx, c, p)
	})
	if progress, err := b.launcher(t, justEdge).Start(t.Context(), loader.StartOptions{}); err != nil || progress.Phase != schema.LoadReady {
		t.Errorf("%+v, %v", progress, err)
	}
}

// TestLostEndLocal: a run without a pod ends with the reason why nothing is known of its end.
func TestLostEndLocal(t *testing.T) {
	b := newBed(t)
	b.losesEnd()
	_, err := b.launcher(t, justEdge).Start(t.Context(), loader.StartOptions{Local: true})
	deployertest.Refused(t, err, report.Unavailable, "update ConfigMap solutionctl-system/loader")
}

// TestNextRunKeepsAccount checks that the end of a run deletes no account that another launcher has given to the next run, between the list and
// the deletion. An account that a controller has changed is deleted.
func TestNextRunKeepsAccount(t *testing.T) {
	const account = "solutionctl-loader"
	for _, next := range []bool{true, false} {
		b := newBed(t)
		changed := false
		b.Server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/serviceaccounts/"+account) && !changed {
				changed = true
				object := b.Server.Object("ServiceAccount", cluster.SystemNamespace, account)
				if next {
					cluster.SetLabel(object, loader.LabelJob, "next")
				}
				cluster.SetLabel(object, "example.com/seen", "yes")
				b.Server.Update(t, object)
			}
			return false
		}
		b.kubelet(t, loader.Run)
		if progress, err := b.launcher(t, justEdge).Start(t.Context(), loader.StartOptions{}); err != nil {
			t.Fatal(progress.Phase, err)
		}
		if kept := b.Server.Object("ServiceAccount", cluster.SystemNamespace, account) != nil; !changed || kept != next {
			t.Errorf("given to the next run: %v; deletion was attempted: %v; the account is there: %v", next, changed, kept)
		}
	}
}
