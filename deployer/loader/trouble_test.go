package loader_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/loader"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestPullFails: the registry has a fault of its own, such as a full disk. Both wait and status show its message, and
// the end of the run names the next command.
func TestPullFails(t *testing.T) {
	const said = "unexpected status from HEAD request to https://10.0.0.1:5000/v2/solutionctl/manifests/sha256:0123: 500 Internal Server Error"
	b := newBed(t)
	l := b.launcher(t, justEdge)
	told := make(chan report.Event, 100)
	l.Deployer.Sink = sink(func(e report.Event) {
		if e.Step == "start" {
			told <- e
		}
	})
	end := b.starts(t, l, loader.StartOptions{})
	var job *unstructured.Unstructured
	for job == nil || isSuspended(job) { // until the launcher has let it go
		for _, name := range b.Server.Names("Job") {
			_, short, _ := strings.Cut(name, "/")
			job = b.Server.Object("Job", cluster.SystemNamespace, short)
		}
	}
	b.Server.Put(t, "{apiVersion: v1, kind: Pod, metadata: {name: loader-pod, namespace: solutionctl-system, labels: {job-name: "+job.GetName()+"}, "+
		"ownerReferences: [{apiVersion: batch/v1, kind: Job, name: "+job.GetName()+", uid: "+string(job.GetUID())+", controller: true}]}, "+
		"spec: {nodeName: here, containers: [{name: loader, image: "+image+"}]}, status: {phase: Pending, containerStatuses: [{name: loader, image: '"+image+"', "+
		"state: {waiting: {reason: ErrImagePull, message: '"+said+"'}}}]}}")
	spec := job.Object["spec"].(map[string]any)                                                 //nolint:forcetypeassert // it was written here
	spec["selector"] = map[string]any{"matchLabels": map[string]any{"job-name": job.GetName()}} // as its controller does
	spec["suspend"] = true
	b.Put(job)
	if e := <-told; e.State != report.Started || !strings.Contains(e.Note, "suspended; to continue it: kubectl patch job --namespace solutionctl-system "+job.GetName()) {
		t.Errorf("told was %+v, where somebody holds the Job up", e)
	}
	spec["suspend"] = false
	b.Put(job)
	if e := <-told; e.State != report.Started || !strings.Contains(e.Note, image) || !strings.Contains(e.Note, "500 Internal Server Error") {
		t.Errorf("told was %+v, where a log shows at once what starts by waiting", e)
	}
	progress, err := b.launcher(t, justEdge).Status(t.Context())
	if err != nil || !strings.Contains(strings.Join(progress.Notices, "\n"), "500 Internal Server Error") {
		t.Errorf("%+v, %v", progress, err)
	}
	job = b.Server.Object("Job", cluster.SystemNamespace, job.GetName())
	job.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}}}
	b.Put(job)
	deployertest.Refused(t, (<-end).err, report.Timeout, "did not end in time", "500 Internal Server Error", "deploy doctor")

	b.kubelet(t, loader.Run)
	if progress, err := b.launcher(t, justEdge).Start(t.Context(), loader.StartOptions{}); err != nil || progress.Phase != schema.LoadReady {
		t.Errorf("the next start: %+v, %v", progress, err)
	}
}

// TestVanished: the Job is gone and no launcher follows it: status reports that no process works on the run.
func TestVanished(t *testing.T) {
	b := newBed(t)
	l := b.launcher(t, justEdge)
	if _, err := l.Start(t.Context(), loader.StartOptions{NoWait: true}); err != nil {
		t.Fatal(err)
	}
	if progress, err := l.Status(t.Context()); err != nil || strings.Contains(strings.Join(progress.Notices, "\n"), "nobody") {
		t.Errorf("%+v, %v", progress, err)
	}
	_, job, _ := strings.Cut(b.Server.Names("Job")[0], "/")
	b.Deleted("Job", cluster.SystemNamespace, job)
	if progress, err := l.Status(t.Context()); err != nil || !strings.Contains(strings.Join(progress.Notices, "\n"), "its Job is gone; to finish it: solutionctl deploy loader start") {
		t.Errorf("%+v, %v", progress, err)
	}
}

// TestImage: an image that is to come from this site's archives is in one of them, or nothing is started.
func TestImage(t *testing.T) {
	b := newBed(t)
	c := deployertest.Content{}
	record := b.Record("tool", "1.0.0", c)
	if _, err := b.RecordImport(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	registry, err := b.Records.Registry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := b.Records.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var brought []string
	for _, i := range catalog.Imports() {
		for name, digest := range i.Images {
			brought = append(brought, registry.Host+"/"+i.ID()+"/"+name+"@"+digest)
		}
	}
	slices.Sort(brought)
	if len(brought) == 0 {
		t.Fatal("no image was imported")
	}
	for _, reference := range brought {
		l := b.launcher(t, justEdge)
		l.Configuration.Spec.Image = reference
		if _, err = l.Start(t.Context(), loader.StartOptions{NoWait: true}); err != nil {
			t.Errorf("%s: %v", reference, err)
		}
		if _, err = l.Stop(t.Context(), loader.StopOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	l := b.launcher(t, justEdge)
	l.Configuration.Spec.Image = registry.Host + "/solutionctl-1.0.0/" + strings.TrimPrefix(image, "registry.example/")
	_, err = l.Start(t.Context(), loader.StartOptions{})
	deployertest.Refused(t, err, report.NotImported, l.Configuration.Spec.Image, "deploy import solutionctl-VERSION.iso", "--local")
}

// TestClocks: the clock of the host and that of the pod's node are hours away from the cluster's, either way and each in its own, and
// containers have started in the future. Nothing waits for a clock.
func TestClocks(t *testing.T) {
	for name, test := range map[string]struct{ host, pod, started time.Duration }{
		"the host is behind":                    {host: -6 * time.Hour},
		"the host is ahead":                     {host: 6 * time.Hour},
		"the pod is behind":                     {pod: -6 * time.Hour},
		"the pod is ahead":                      {pod: 6 * time.Hour},
		"both are apart":                        {host: -6 * time.Hour, pod: 6 * time.Hour},
		"the cluster's clock has gone back":     {started: 6 * time.Hour},
		"the cluster's clock has gone forward":  {started: -6 * time.Hour},
		"everything has started in some future": {host: -48 * time.Hour, pod: -24 * time.Hour, started: 6 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			at := func(ahead time.Duration) func() time.Time {
				return func() time.Time { return time.Now().Add(ahead).Round(0) }
			}
			b.kubelet(t, func(ctx context.Context, c deployer.Config, p *schema.LoadParameters) error {
				c.Now = at(test.pod)
				return loader.Run(ctx, c, p)
			})
			l := b.launcher(t, justEdge)
			config := l.Deployer.Config
			config.Now = at(test.host)
			l.Deployer = deployer.New(config)
			if progress, err := l.Start(t.Context(), loader.StartOptions{}); err != nil || progress.Phase != schema.LoadReady {
				t.Fatalf("%+v, %v", progress, err)
			}
			// After a boot every container has ended before.
			b.Server.Put(t, "{apiVersion: v1, kind: Pod, metadata: {name: edge-operator-1-2, namespace: infra, labels: {pod-template-hash: '1'}, "+
				"ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: edge-operator-1, uid: u, controller: true}]}, "+
				"spec: {containers: [{name: c}]}, status: {phase: Running, containerStatuses: [{name: c, ready: true, restartCount: 1, "+
				"lastState: {terminated: {exitCode: 255}}, state: {running: {startedAt: '"+time.Now().Add(test.started-time.Minute).UTC().Format(time.RFC3339)+"'}}}]}}")
			if progress, err := l.Start(t.Context(), loader.StartOptions{}); err != nil || progress.Phase != schema.LoadReady {
				t.Errorf("after a boot: %+v, %v", progress, err)
			}
			if progress, err := l.Wait(t.Context(), time.Minute); err != nil {
				t.Errorf("%+v, %v", progress, err)
			}
		})
	}
}

// TestNeverRan: repairs are reported as missing only when they have not run for as long as their schedule allows.
func TestNeverRan(t *testing.T) {
	for schedule, after := range map[string]time.Duration{"*/30 * * * *": 25 * time.Hour, "0 3 1 * *": 366 * 24 * time.Hour, "0 3 * * 0": 366 * 24 * time.Hour} {
		b := newBed(t)
		l := b.launcher(t, justEdge+"  repair: {mode: repair, schedule: '"+schedule+"'}\n")
		if _, err := l.Start(t.Context(), loader.StartOptions{Local: true}); err != nil {
			t.Fatal(err)
		}
		for _, is := range []time.Duration{-time.Minute, time.Minute} {
			now := time.Now().Add(after + is)
			state, err := loader.ReadState(t.Context(), l.Deployer.Cluster, now)
			if err != nil {
				t.Fatal(err)
			}
			found, err := state.Examine(t.Context(), l.Deployer, now)
			if err != nil || (len(found) == 1 && strings.Contains(found[0].What, "has not run since it was made")) != (is > 0) {
				t.Errorf("%s, after %s: %+v, %v", schedule, after+is, found, err)
			}
		}
	}
}
