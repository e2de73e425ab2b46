package preload_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/host/node"
	"github.com/solutionctl/solutionctl/deployer/preload"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const shop = "shop"

// site has shop 1.0.0 deployed and 1.1.0 imported, the image of Jobs, and two nodes.
func site(t *testing.T) *deployertest.Bed {
	t.Helper()
	b := deployertest.New(t)
	b.Imported(schema.ProgramImage, "1.0.0", deployertest.Content{Bare: true, Images: []string{schema.ProgramImage}})
	b.Added(shop, "1.0.0", deployertest.Content{})
	b.Imported(shop, "1.1.0", deployertest.Content{})
	for _, name := range []string{"one", "two"} {
		putNode(b, name, "True", "containerd://2.1.0", "v1.36.0")
	}
	b.Server.Stall("Job")
	return b
}

func putNode(b *deployertest.Bed, name, ready, runtime, kubelet string) {
	b.Server.Put(b.TB, fmt.Sprintf(`{apiVersion: v1, kind: Node, metadata: {name: %s}, status: {conditions: [{type: Ready, status: %q}],
nodeInfo: {containerRuntimeVersion: %q, kubeletVersion: %q, operatingSystem: linux}}}`, name, ready, runtime, kubelet))
}

// kubelet ends the Job of each node as its pod would, with this message, once there is one.
func kubelet(t *testing.T, b *deployertest.Bed, message func(job *unstructured.Unstructured) string) (jobs func() []*unstructured.Unstructured) {
	t.Helper()
	var seen []*unstructured.Unstructured
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for _, name := range []string{"one", "two"} {
				job := b.Server.Object("Job", cluster.SystemNamespace, preload.JobName(name))
				if job == nil || slices.ContainsFunc(seen, func(o *unstructured.Unstructured) bool { return o.GetUID() == job.GetUID() }) {
					continue
				}
				text, _ := json.Marshal(message(job))
				b.Server.Put(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: %s, labels: {batch.kubernetes.io/controller-uid: %s}},
status: {containerStatuses: [{name: preload, state: {terminated: {message: %s}}}]}}`, job.GetName(), job.GetNamespace(), job.GetUID(), text))
				_ = unstructured.SetNestedSlice(job.Object, []any{map[string]any{"type": "Complete", "status": "True"}}, "status", "conditions")
				if !b.Server.Update(t, job) {
					continue // it was replaced: the next look finds the new one
				}
				seen = append(seen, job)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return func() []*unstructured.Unstructured { cancel(); <-done; return seen }
}

// arguments are the images of a Job.
func arguments(job *unstructured.Unstructured) (images []string) {
	containers, _, _ := unstructured.NestedSlice(job.Object, "spec", "template", "spec", "containers")
	all, _, _ := unstructured.NestedStringSlice(containers[0].(map[string]any), "args") //nolint:forcetypeassert // made by newJob
	return slices.DeleteFunc(all, func(arg string) bool { return !strings.Contains(arg, "@sha256:") })
}

// works answers as the pod of a node that lacked everything.
func works(job *unstructured.Unstructured) string {
	images := arguments(job)
	return string(preload.Message(&schema.NodePreload{Runtime: "containerd v2", Pulled: len(images), Pinned: len(images)}, images))
}

var options = preload.Options{Timeout: time.Minute}

func TestRun(t *testing.T) {
	t.Parallel()
	b := site(t)
	jobs := kubelet(t, b, works)
	got, err := preload.Run(t.Context(), b.Deployer, options)
	if err != nil {
		t.Fatal(err)
	}
	deployertest.Valid(t, "preload", got)
	if len(got.Nodes) != 2 || got.Nodes[0].Node != "one" || got.Nodes[1].Pulled != len(got.Images) || len(got.Images) == 0 {
		t.Errorf("%+v", got)
	}
	for _, image := range got.Images {
		of := strings.Split(image, "/")[1]
		if of != "shop-1.0.0" && of != "solutionctl-1.0.0" || !strings.Contains(image, "@sha256:") {
			t.Errorf("image %s is neither deployed nor that of the Jobs", image)
		}
	}
	if names := b.Server.Names("Job"); len(names) > 0 {
		t.Errorf("%q are still there", names)
	}
	for _, job := range jobs() {
		if !slices.Equal(arguments(job), got.Images) {
			t.Errorf("the Job has %q", arguments(job))
		}
	}
	known, err := b.Records.Preloaded(t.Context())
	if err != nil || len(known.Nodes) != 2 || len(known.Sets) != 1 || len(records.Lacking(got.Images, known, "two")) > 0 {
		t.Errorf("recorded %+v, %v", known, err)
	}

	// Nothing else is needed: the record stays as it is.
	b.Writes()
	kubelet(t, b, works)
	if _, err = preload.Run(t.Context(), b.Deployer, options); err != nil {
		t.Fatal(err)
	}
	for _, write := range b.Writes() {
		if strings.Contains(write, "/configmaps/") {
			t.Errorf("the second run: %s", write)
		}
	}
}

// TestRunOptions: which images, which nodes.
func TestRunOptions(t *testing.T) {
	t.Parallel()
	b := site(t)
	for _, test := range []struct {
		name     string
		o        preload.Options
		versions []string
		nodes    int
	}{
		{"next", preload.Options{NeedOptions: records.NeedOptions{Next: true}}, []string{"shop-1.0.0", "shop-1.1.0", "solutionctl-1.0.0"}, 2},
		{"a version", preload.Options{NeedOptions: records.NeedOptions{Solution: shop, Version: "1.1.0"}}, []string{"shop-1.0.0", "shop-1.1.0", "solutionctl-1.0.0"}, 2},
		{"one node", preload.Options{Nodes: []string{"two"}}, []string{"shop-1.0.0", "solutionctl-1.0.0"}, 1},
		{"release", preload.Options{Release: true}, nil, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.o.DryRun, test.o.Timeout = true, time.Minute
			b.Writes()
			got, err := preload.Run(t.Context(), b.Deployer, test.o)
			if err != nil {
				t.Fatal(err)
			}
			deployertest.Valid(t, "preload", got)
			var versions []string
			for _, image := range got.Images {
				versions = append(versions, strings.Split(image, "/")[1])
			}
			if versions = slices.Compact(versions); !slices.Equal(versions, test.versions) || len(got.Nodes) != test.nodes {
				t.Errorf("images of %q on %d nodes", versions, len(got.Nodes))
			}
			if writes := b.Writes(); len(writes) > 0 {
				t.Errorf("a dry run wrote %q", writes)
			}
		})
	}
}

// TestRunRelease: nodes that keep nothing are not on the record.
func TestRunRelease(t *testing.T) {
	t.Parallel()
	b := site(t)
	kubelet(t, b, works)
	if _, err := preload.Run(t.Context(), b.Deployer, options); err != nil {
		t.Fatal(err)
	}
	kubelet(t, b, works)
	if _, err := preload.Run(t.Context(), b.Deployer, preload.Options{Timeout: time.Minute, Release: true}); err != nil {
		t.Fatal(err)
	}
	if known, err := b.Records.Preloaded(t.Context()); err != nil || len(known.Nodes)+len(known.Sets) > 0 {
		t.Errorf("recorded %+v, %v", known, err)
	}
}

// TestRoleSuffices: with the rights of the printed role, and no others.
func TestRoleSuffices(t *testing.T) {
	t.Parallel()
	b := site(t)
	var grants []deployertest.Grant
	for _, permission := range rights.Preload() {
		grants = append(grants, deployertest.Grant{Namespace: permission.Namespace, Rules: cluster.PolicyRules([]cluster.Permission{permission})})
	}
	kubelet(t, b, works)
	b.Granted(grants...)
	if _, err := preload.Run(t.Context(), b.Deployer, options); err != nil {
		t.Error(err)
	}
}

// TestRunRefused: each is one sentence with the next command, and nothing was changed.
func TestRunRefused(t *testing.T) {
	for _, test := range []struct {
		name  string
		set   func(*deployertest.Bed)
		o     preload.Options
		code  report.Code
		words []string
	}{
		{"no such node", nil, preload.Options{Nodes: []string{"three"}}, report.NotFound, []string{"no node three", "it has one, two"}},
		{"no image for Jobs", func(b *deployertest.Bed) {
			b.Deleted("Secret", cluster.SystemNamespace, records.ImportsName)
			b.Imported(shop, "1.0.0", deployertest.Content{})
		}, options, report.NotImported, []string{"the Jobs have no image", "deploy import solutionctl-VERSION.iso", "deploy node preload --print shell"}},
		{"not imported", nil, preload.Options{NeedOptions: records.NeedOptions{Solution: shop, Version: "9.0.0"}}, report.NotImported, []string{"version 9.0.0"}},
		{"pod security", func(b *deployertest.Bed) {
			b.Server.Put(b.TB, "{apiVersion: v1, kind: Namespace, metadata: {name: solutionctl-system, labels: {pod-security.kubernetes.io/enforce: restricted}}}")
		}, options, report.Refused, []string{"pod security standard restricted", "kubectl label --overwrite namespace solutionctl-system"}},
		{"no rights", func(b *deployertest.Bed) { b.Only("elsewhere", nil) }, options, report.Forbidden, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := site(t)
			if test.set != nil {
				test.set(b)
			}
			b.Writes()
			test.o.Timeout = time.Minute
			_, err := preload.Run(t.Context(), b.Deployer, test.o)
			deployertest.Refused(t, err, test.code, test.words...)
			if writes := b.Writes(); len(writes) > 0 {
				t.Errorf("it wrote %q", writes)
			}
		})
	}
}

// TestBadNodes: what keeps one node from its images does not keep the others, and is the error.
func TestBadNodes(t *testing.T) {
	t.Parallel()
	b := site(t)
	putNode(b, "one", "False", "containerd://2.1.0", "v1.36.0")
	jobs := kubelet(t, b, works)
	got, err := preload.Run(t.Context(), b.Deployer, options)
	deployertest.Refused(t, err, report.Unavailable, "1 of 2 nodes do not have all images: one: node one is not ready", "deploy node preload --nodes one")
	deployertest.Valid(t, "preload", got)
	if len(got.Nodes[0].Missing) == 0 || got.Nodes[1].Problem != "" || len(jobs()) != 1 {
		t.Errorf("%+v", got.Nodes)
	}

	// A pod that crashes, and one whose node has a full disk.
	putNode(b, "one", "True", "containerd://2.1.0", "v1.36.0")
	kubelet(t, b, func(job *unstructured.Unstructured) string {
		if job.GetName() == preload.JobName("one") {
			return "exec /solutionctl: no such file or directory"
		}
		images := arguments(job)
		return string(preload.Message(&schema.NodePreload{Runtime: "containerd v2", Missing: images, Code: report.NoSpace, Problem: "no space left on device", Hint: "free space"}, images))
	})
	got, err = preload.Run(t.Context(), b.Deployer, options)
	deployertest.Refused(t, err, report.Failure, "2 of 2 nodes", "the Job failed: exec /solutionctl: no such file or directory")
	if got.Nodes[1].Code != report.NoSpace || len(got.Nodes[1].Missing) != len(got.Images) {
		t.Errorf("%+v", got.Nodes[1])
	}
	if known, err := b.Records.Preloaded(t.Context()); err != nil || len(records.Lacking(got.Images, known, "two")) != len(got.Images) {
		t.Errorf("recorded %+v, %v", known, err)
	}
}

// interrupt begins a run and ends it when there are two Jobs.
func interrupt(t *testing.T, b *deployertest.Bed, o preload.Options) {
	t.Helper()
	started := len(b.Sink.Events())
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	go func() {
		for len(b.Sink.Events()) < started+2 || len(b.Server.Names("Job")) < 2 {
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(50 * time.Millisecond)
		kill()
	}()
	_, err := preload.Run(ctx, b.Deployer, o)
	deployertest.Refused(t, err, report.Interrupted, "which continue", "run the same command again")
}

// sinkFunc is a sink that calls a function.
type sinkFunc func(report.Event)

func (f sinkFunc) Emit(e report.Event) { f(e) }

// TestStopped: the images of the nodes that are ready are recorded, too, when the user stops waiting for others.
func TestStopped(t *testing.T) {
	b := site(t)
	ctx, stop := context.WithCancel(t.Context())
	kubelet(t, b, func(job *unstructured.Unstructured) string {
		if job.GetName() != preload.JobName("one") {
			<-ctx.Done()
		}
		return works(job)
	})
	t.Cleanup(stop)
	b.Deployer.Sink = sinkFunc(func(e report.Event) {
		if e.Name == "one" && e.State == report.Done {
			stop()
		}
	})
	got, err := preload.Run(ctx, b.Deployer, options)
	deployertest.Refused(t, err, report.Interrupted, "which continue")
	known, err := b.Records.Preloaded(t.Context())
	if err != nil || got == nil || len(got.Images) == 0 || len(records.Lacking(got.Images, known, "one")) > 0 || len(records.Lacking(got.Images, known, "two")) == 0 {
		t.Errorf("recorded %+v, %v", known, err)
	}
}

// TestKilled: the Job of a command that was killed is followed, and one with other work is replaced.
func TestKilled(t *testing.T) {
	t.Parallel()
	b := site(t)
	uid := func() any { return b.Server.Object("Job", cluster.SystemNamespace, preload.JobName("one")).GetUID() }
	interrupt(t, b, options)
	first := uid()
	interrupt(t, b, options)
	if uid() != first {
		t.Error("the Job of the first run was replaced")
	}
	kubelet(t, b, works)
	other := options
	other.Next = true
	got, err := preload.Run(t.Context(), b.Deployer, other)
	if err != nil || got.Nodes[0].Pulled != len(got.Images) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestChangingJob: the cluster writes the status of a Job at the moment of its deletion, which takes place nevertheless.
func TestChangingJob(t *testing.T) {
	t.Parallel()
	b := site(t)
	b.Server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/jobs/") {
			job := b.Server.Object("Job", cluster.SystemNamespace, path.Base(r.URL.Path))
			_ = unstructured.SetNestedField(job.Object, int64(1), "status", "active")
			b.Server.Update(t, job)
		}
		return false
	}
	interrupt(t, b, options)
	kubelet(t, b, works)
	other := options
	other.Next = true
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if got, err := preload.Run(ctx, b.Deployer, other); err != nil || got.Nodes[0].Pulled != len(got.Images) {
		t.Errorf("%+v, %v", got, err)
	}
	if names := b.Server.Names("Job"); len(names) > 0 {
		t.Errorf("%q are still there", names)
	}
}

// TestJobIsRestricted: the pod has the socket of the container runtime, and nothing else of the node or of the cluster.
func TestJobIsRestricted(t *testing.T) {
	t.Parallel()
	b := site(t)
	putNode(b, "two", "True", "containerd://2.1.0-k3s1", "v1.36.0+k3s1")
	jobs := kubelet(t, b, works)
	if _, err := preload.Run(t.Context(), b.Deployer, options); err != nil {
		t.Fatal(err)
	}
	sockets := map[string]string{preload.JobName("one"): "/run/containerd/containerd.sock", preload.JobName("two"): "/run/k3s/containerd/containerd.sock"}
	for _, job := range jobs() {
		text, err := json.Marshal(job.Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`"automountServiceAccountToken":false`, `"runAsNonRoot":true`, `"capabilities":{"drop":["ALL"]}`, `"readOnlyRootFilesystem":true`, `"allowPrivilegeEscalation":false`,
			`"seccompProfile":{"type":"RuntimeDefault"}`, `"tolerations":[{"operator":"Exists"}]`, `"volumes":[{"hostPath":{"path":"` + sockets[job.GetName()] + `","type":"Socket"},"name":"socket"}]`,
		} {
			if !strings.Contains(string(text), want) {
				t.Errorf("no %s in %s", want, text)
			}
		}
		for _, unwanted := range []string{"hostNetwork", "hostPID", "privileged", "serviceAccountName", "env\":[{\"name\":\"KUBECONFIG"} {
			if strings.Contains(string(text), unwanted) {
				t.Errorf("%s in %s", unwanted, text)
			}
		}
	}
}

// TestHere: this node is recorded under the name that the cluster has for it.
func TestHere(t *testing.T) {
	b := site(t)
	m := newMachine()
	got, err := preload.Here(t.Context(), b.Deployer, m, "one", options)
	if err != nil || len(m.pulls) != len(got.Images) || len(m.images) != 2*len(got.Images) || len(got.Notices) > 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	known, err := b.Records.Preloaded(t.Context())
	if err != nil || len(records.Lacking(got.Images, known, "one")) > 0 || len(records.Lacking(got.Images, known, "two")) != len(got.Images) {
		t.Errorf("recorded %+v, %v", known, err)
	}
	got, err = preload.Here(t.Context(), b.Deployer, newMachine(), "elsewhere", options)
	if err != nil || len(got.Notices) != 1 || !strings.Contains(got.Notices[0], "the cluster has no node elsewhere") {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = preload.Here(t.Context(), b.Deployer, newMachine(), "one", preload.Options{DryRun: true})
	if err != nil || len(got.Nodes[0].Missing) != len(got.Images) {
		t.Errorf("%+v, %v", got, err)
	}
}

// stopping is a container runtime whose caller is stopped during its second pull.
type stopping struct {
	*machine
	stop func() context.Context
}

func (m stopping) Pull(ctx context.Context, reference string) error {
	if len(m.pulls) > 0 {
		return m.stop().Err()
	}
	return m.machine.Pull(ctx, reference)
}

// TestHereStopped: what a run on this node has done is recorded when the user or the time ends it, and the error reports that.
func TestHereStopped(t *testing.T) {
	for code, begin := range map[report.Code]func(context.Context) (context.Context, func()){
		report.Interrupted: func(ctx context.Context) (context.Context, func()) { return context.WithCancel(ctx) },
		report.Timeout: func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return expired{ctx}, func() { cancel(context.DeadlineExceeded) }
		},
	} {
		t.Run(string(code), func(t *testing.T) {
			b := site(t)
			ctx, stop := begin(t.Context())
			defer stop()
			m := stopping{newMachine(), func() context.Context { stop(); return ctx }}
			got, err := preload.Here(ctx, b.Deployer, m, "one", options)
			if got == nil || len(got.Images) < 2 {
				t.Fatalf("%+v, %v", got, err)
			}
			deployertest.Refused(t, err, code, "node one lacks", "run the same command again")
			known, err := b.Records.Preloaded(t.Context())
			if err != nil || len(records.Lacking(got.Images, known, "one")) != len(got.Images)-1 {
				t.Errorf("recorded %+v, %v", known, err)
			}
		})
	}
}

// expired is a context that ends by its time.
type expired struct{ context.Context }

func (e expired) Err() error {
	if e.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// TestPrint: the lines are a script of a shell, for each runtime and in each form.
func TestPrint(t *testing.T) {
	images := []string{image("a"), image("b")}
	for _, runtime := range node.Runtimes() {
		script := string(preload.Print(preload.Shell, runtime, images))
		check := exec.CommandContext(t.Context(), "sh", "-n")
		check.Stdin = strings.NewReader(script)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s\n%s", runtime, err, out, script)
		}
		want := image("a")
		if runtime == node.CRIO {
			want = `"registry.solutionctl.invalid/shop-1.0.0/*",`
		}
		for _, form := range []string{preload.Shell, preload.Salt, preload.Ansible} {
			if text := string(preload.Print(form, runtime, images)); !strings.Contains(text, want) {
				t.Errorf("no %s in %s", want, text)
			}
		}
	}
}
