// Package health_test asks why real pods on a real node do not start.
package health_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/health"
)

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{Node: testcluster.CheckNode() == nil})
}

func connect(t *testing.T) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Connect(cluster.Options{Kubeconfig: testcluster.Shared(t).Kubeconfig, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// create makes the objects of a manifest, in the namespace of the test, and returns the last.
func create(t *testing.T, c *cluster.Cluster, namespace, manifest string) *unstructured.Unstructured {
	t.Helper()
	var created *unstructured.Unstructured
	for document := range strings.SplitSeq(manifest, "---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if object.GetKind() != "Namespace" {
			object.SetNamespace(namespace)
		}
		var err error
		if created, err = c.Create(t.Context(), object, cluster.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		if object.GetKind() == "ResourceQuota" {
			awaitQuota(t, c, namespace)
		}
	}
	return created
}

// awaitQuota waits until the API server allows no pod in a namespace: it sees a new quota later than other objects.
func awaitQuota(t *testing.T, c *cluster.Cluster, namespace string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testcluster.Deadline(time.Minute))
	defer cancel()
	pod := cluster.NewObject(cluster.PodKind, namespace, "refused")
	pod.Object["spec"] = map[string]any{"containers": []any{map[string]any{"name": "app", "image": "web"}}}
	for {
		_, err := c.Create(ctx, pod, cluster.WriteOptions{DryRun: true})
		switch {
		case err != nil && strings.Contains(err.Error(), "quota"):
			return
		case ctx.Err() != nil:
			t.Fatalf("pods are allowed: %v", err)
		}
	}
}

// await asks again and again what is wrong with an object until the answer has the words.
func await(t *testing.T, c *cluster.Cluster, object *unstructured.Unstructured, words ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testcluster.Deadline(2*time.Minute)) // far more than it takes
	defer cancel()
	again := time.NewTicker(300 * time.Millisecond)
	defer again.Stop()
	seen := ""
	for {
		live, err := c.Get(ctx, object.GroupVersionKind(), object.GetNamespace(), object.GetName())
		if err != nil {
			t.Fatal(err)
		}
		reasons := strings.Join(health.Explain(ctx, c, live), "\n")
		if reasons != seen {
			t.Logf("%+v\n%s", health.Of(live), reasons)
			seen = reasons
		}
		found := true
		for _, word := range words {
			found = found && strings.Contains(reasons, word)
		}
		if found {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("want %q in:\n%s", words, reasons)
		}
	}
}

// buildProgram puts the program of the containers on the node, in /srv/test.
func buildProgram(t *testing.T) {
	t.Helper()
	dir := filepath.Join(testcluster.Shared(t).NodeRoot(), "srv", "test")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "program"), "./testdata/program")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {terminationGracePeriodSeconds: 0, SPEC}
`

// app is a container of an image that the node has, in which the test's program lies.
const (
	app     = `name: app, image: "solutionctl.invalid/pause:test", imagePullPolicy: Never, volumeMounts: [{name: test, mountPath: /test}]`
	volumes = `volumes: [{name: test, hostPath: {path: /srv/test}}]`
)

// TestPods asks a real kubelet and a real containerd.
func TestPods(t *testing.T) {
	testcluster.RequireNode(t)
	buildProgram(t)
	c := connect(t)
	for _, test := range []struct {
		name, spec string
		words      []string
	}{
		{"registry-is-down", `containers: [{name: app, image: "127.0.0.1:9/demo/web:1"}]`, []string{
			"container app: image 127.0.0.1:9/demo/web:1 cannot be pulled: ", "connection refused",
		}},
		{"image-name", `containers: [{name: app, image: "Web:1"}]`, []string{`container app: "Web:1" is not a valid image reference`}},
		{"image-never", `containers: [{name: app, image: "solutionctl.invalid/web:1", imagePullPolicy: Never}]`, []string{
			"image solutionctl.invalid/web:1 is not on the node, and its imagePullPolicy is Never",
		}},
		{"crash", `containers: [{` + app + `, command: [/test/program, crash, database, is, down]}], ` + volumes, []string{
			"container app: ends again and again (", " so far): exit code 3: database is down",
		}},
		{"no-command", `containers: [{` + app + `, command: [/nothing]}], ` + volumes, []string{
			"container app: ", `exec: "/nothing": stat /nothing: no such file or directory`,
		}},
		{"no-secret", `containers: [{` + app + `, envFrom: [{secretRef: {name: db}}]}], ` + volumes, []string{
			`container app: cannot be started: secret "db" not found`,
		}},
		{"no-volume", `containers: [{name: app, image: "solutionctl.invalid/pause:test", volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, configMap: {name: missing}}]`, []string{
			`waits for a volume: MountVolume.SetUp failed for volume "v" : configmap "missing" not found`,
		}},
		{"no-node", `containers: [{` + app + `}], nodeSelector: {disk: fast}, ` + volumes, []string{
			"no node can take it: 0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector",
		}},
		{"not-ready", `containers: [{` + app + `, command: [/test/program], readinessProbe: {periodSeconds: 1, exec: {command: [/test/program, exit]}}}], ` + volumes, []string{
			"container app: runs, but is not ready: readiness probe failed",
		}},
		{"not-started", `containers: [{` + app + `, command: [/test/program], startupProbe: {periodSeconds: 1, failureThreshold: 100, tcpSocket: {port: 80}}}], ` + volumes, []string{
			"container app: runs, but is not ready: startup probe failed: dial tcp", "connection refused",
		}},
		{"init", `initContainers: [{` + strings.Replace(app, "name: app", "name: migrate", 1) + `, command: [/test/program, crash, schema, is, newer]}], containers: [{` + app + `}], ` + volumes, []string{
			"container migrate: ends again and again", "exit code 3: schema is newer",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			object := create(t, c, test.name, "{apiVersion: v1, kind: Namespace, metadata: {name: "+test.name+"}}\n---\n"+
				strings.Replace(deployment, "SPEC", test.spec, 1))
			await(t, c, object, test.words...)
		})
	}
	t.Run("job", func(t *testing.T) {
		t.Parallel()
		job := create(t, c, "job", `
{apiVersion: v1, kind: Namespace, metadata: {name: job}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  backoffLimit: 0
  template:
    spec: {restartPolicy: Never, containers: [{`+app+`, command: [/test/program, crash, bad, luck]}], `+volumes+`}`)
		await(t, c, job, "container app: has ended: exit code 3: bad luck")
		for !health.Of(job).Failed {
			var err error
			if job, err = c.Get(t.Context(), job.GroupVersionKind(), "job", "migrate"); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("fine", func(t *testing.T) {
		t.Parallel()
		object := create(t, c, "fine", "{apiVersion: v1, kind: Namespace, metadata: {name: fine}}\n---\n"+
			strings.Replace(deployment, "SPEC", `containers: [{`+app+`, command: [/test/program]}], `+volumes, 1))
		for change, err := range c.Watch(t.Context(), object.GroupVersionKind(), "fine", metav1.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if health.Of(change.Object).Ready {
				break
			}
		}
	})
}

// TestLogs reads what a container has written, and no more of it than asked for.
func TestLogs(t *testing.T) {
	testcluster.RequireNode(t)
	buildProgram(t)
	c := connect(t)
	pod := create(t, c, "logs", "{apiVersion: v1, kind: Namespace, metadata: {name: logs}}\n---\n"+
		"{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, containers: [{"+
		app+", command: [/test/program, crash, database, is, down]}], "+volumes+"}}")
	await(t, c, pod, "exit code 3: database is down")
	for limit, want := range map[int64]string{1000: "database is down\n", 8: "database"} {
		log, err := c.Logs(t.Context(), "logs", "web", "app", limit)
		if err != nil || string(log) != want {
			t.Errorf("%d bytes: %q, %v", limit, log, err)
		}
	}
}

// TestNoPods asks the controllers why there are no pods at all.
func TestNoPods(t *testing.T) {
	c := connect(t)
	for _, test := range []struct {
		name, manifest string
		words          []string
	}{
		{"quota", `
{apiVersion: v1, kind: Namespace, metadata: {name: quota}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: small}, spec: {hard: {pods: 0}}}
---
` + strings.Replace(deployment, "SPEC", `containers: [{name: app, image: web}]`, 1), []string{
			"quota small does not allow more pods: pods=1 needed, pods=0 used, limit pods=0",
		}},
		{"service-account", `
{apiVersion: v1, kind: Namespace, metadata: {name: service-account}}
---
` + strings.Replace(deployment, "SPEC", `serviceAccountName: nobody, containers: [{name: app, image: web}]`, 1), []string{
			"service account service-account/nobody does not exist",
		}},
		{"pod-security", `
{apiVersion: v1, kind: Namespace, metadata: {name: pod-security, labels: {pod-security.kubernetes.io/enforce: baseline}}}
---
` + strings.Replace(deployment, "SPEC", `hostNetwork: true, containers: [{name: app, image: web}]`, 1), []string{
			`the pod security level of the namespace does not allow its pods: "baseline:latest": host namespaces (hostNetwork=true)`,
		}},
		{"stateful", `
{apiVersion: v1, kind: Namespace, metadata: {name: stateful}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  selector: {matchLabels: {app: db}}
  serviceName: db
  template:
    metadata: {labels: {app: db}}
    spec: {serviceAccountName: nobody, containers: [{name: app, image: web}]}
`, []string{"service account stateful/nobody does not exist"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			await(t, c, create(t, c, test.name, test.manifest), test.words...)
		})
	}
}
