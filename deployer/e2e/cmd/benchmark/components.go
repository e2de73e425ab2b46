//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/e2e/solution"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema"
)

// graphSteps are the measured steps of a Solution with components, in this order. The first three are floors: the same objects without order,
// plan, records or waiting, the same with three records for each component, and the objects of each component when those that it needs are ready.
var graphSteps = []string{"write the objects alone", "write them with their records", "write them in order, and wait", "plan", "add", "add again", "plan again", "remove"}

// graphPart is a component, with those before it that it needs.
type graphPart struct {
	name  string
	needs []string
}

// graphParts returns components that need up to three of those before them: the same ones in each process.
func graphParts(components int) []graphPart {
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // the same graph in each process
	parts := make([]graphPart, components)
	for i := range parts {
		parts[i].name = fmt.Sprintf("part-%03d", i)
		for range min(i, random.IntN(4)) {
			if need := fmt.Sprintf("part-%03d", random.IntN(i)); !slices.Contains(parts[i].needs, need) {
				parts[i].needs = append(parts[i].needs, need)
			}
		}
	}
	return parts
}

// graphContent is a Solution with the components of graphParts.
func graphContent(components, objects int) deployertest.Content {
	content := deployertest.Content{Files: map[string]string{}}
	var manifest strings.Builder
	manifest.WriteString("components:\n")
	for _, part := range graphParts(components) {
		var needs []string
		for _, need := range part.needs {
			needs = append(needs, "{component: "+need+"}")
		}
		fmt.Fprintf(&manifest, "  - {name: %s, manifests: components/%s.yaml, dependsOn: [%s]}\n", part.name, part.name, strings.Join(needs, ", "))
		content.Files["components/"+part.name+".yaml"] = graphObjects(part.name, objects)
	}
	content.Manifest = manifest.String()
	return content
}

// graphObjects are a Deployment without replicas, a Service, an account, and as many settings as there are to be objects.
func graphObjects(name string, objects int) string {
	var text strings.Builder
	fmt.Fprintf(&text, `apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 0
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {serviceAccountName: %[1]s, containers: [{name: main, image: "{{ repository }}/graph-operator:1.0.0"}]}
---
{apiVersion: v1, kind: Service, metadata: {name: %[1]s}, spec: {selector: {app: %[1]s}, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: %[1]s}}
`, name)
	for i := range max(objects-3, 0) {
		fmt.Fprintf(&text, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: %s-%d}, data: {of: %s}}\n", name, i, name)
	}
	return text.String()
}

// runGraphStep is the contestant: one process that does one step.
func runGraphStep(ctx context.Context, kubeconfig, components, objects, step string) error {
	count, err := strconv.Atoi(components)
	if err != nil {
		return err
	}
	each, err := strconv.Atoi(objects)
	if err != nil {
		return err
	}
	c, err := cluster.Connect(cluster.Options{Kubeconfig: kubeconfig, Now: time.Now})
	if err != nil {
		return err
	}
	d := deployer.New(deployer.Config{Cluster: c, Now: time.Now, Version: "1.0.0", Identity: "benchmark", LockWait: time.Minute})
	if step == "prepare" {
		return prepareGraph(ctx, d, count, each)
	}
	add := deployer.AddOptions{Environment: "graph", Solution: "graph", Version: older}
	started := time.Now()
	switch step {
	case graphSteps[0]:
		err = writeObjects(ctx, c, "default", graphContent(count, each))
	case graphSteps[1]:
		err = writeRecorded(ctx, c, kubeconfig, count, each)
	case graphSteps[2]:
		err = writeGraphInOrder(ctx, c, count, each)
	case "plan", "plan again":
		add.DryRun = true
		_, err = d.Add(ctx, add)
	case "remove":
		_, err = d.Remove(ctx, deployer.RemoveOptions{Environment: "graph", Solution: "graph"})
	default:
		var done *schema.Operation
		if done, err = d.Add(ctx, add); err == nil && step == "add again" && !done.Empty() {
			err = errors.New("there was something to do")
		}
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(time.Since(started).Seconds())
}

// writeRecorded applies the objects of a Solution in a namespace of their own, and writes as many records as the engine does.
func writeRecorded(ctx context.Context, c *cluster.Cluster, kubeconfig string, components, objects int) error {
	const namespace = "recorded"
	if _, err := c.Apply(ctx, cluster.NewObject(cluster.NamespaceKind, "", namespace), cluster.WriteOptions{}); err != nil {
		return err
	}
	var before, after []rawWrite
	for _, part := range graphParts(components) {
		first, last := recordsOf("floor." + part.name)
		before, after = append(before, first...), append(after, last)
	}
	err := sendAll(ctx, kubeconfig, before)
	if err == nil {
		err = writeObjects(ctx, c, namespace, graphContent(components, objects))
	}
	if err == nil {
		err = sendAll(ctx, kubeconfig, after)
	}
	return err
}

// writeObjects applies the objects of a Solution in a namespace that is there, as many at a time as the engine does.
func writeObjects(ctx context.Context, c *cluster.Cluster, namespace string, content deployertest.Content) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cluster.InFlight)
	for _, text := range content.Files {
		for _, document := range documents(text) {
			group.Go(func() error { return writeObject(ctx, c, namespace, document) })
		}
	}
	return group.Wait()
}

func documents(text string) []string {
	return strings.Split(strings.ReplaceAll(text, "{{ repository }}", "registry.invalid"), "---\n")
}

func writeObject(ctx context.Context, c *cluster.Cluster, namespace, document string) error {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), object); err != nil {
		return err
	}
	object.SetNamespace(namespace)
	_, err := c.Apply(ctx, object, cluster.WriteOptions{})
	return err
}

// orderedPart is a component whose objects are written in order: first those of its first documents, then its Deployment.
type orderedPart struct {
	name              string
	needs             []string
	first, deployment []string
}

// writeGraphInOrder writes the components of a graph into a namespace of their own.
func writeGraphInOrder(ctx context.Context, c *cluster.Cluster, components, objects int) error {
	const namespace = "ordered"
	if _, err := c.Apply(ctx, cluster.NewObject(cluster.NamespaceKind, "", namespace), cluster.WriteOptions{}); err != nil {
		return err
	}
	var parts []orderedPart
	for _, part := range graphParts(components) {
		all := documents(graphObjects(part.name, objects))
		parts = append(parts, orderedPart{part.name, part.needs, all[1:], all[:1]})
	}
	return writeInOrder(ctx, c, namespace, parts)
}

// writeInOrder applies the objects of each component when the Deployments of those that it needs are ready, and returns when all are.
func writeInOrder(ctx context.Context, c *cluster.Cluster, namespace string, parts []orderedPart) error {
	ready := map[string]chan struct{}{}
	for _, part := range parts {
		ready[part.name] = make(chan struct{})
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return closeReady(ctx, c, namespace, ready) })
	for _, part := range parts {
		group.Go(func() error {
			for _, need := range part.needs {
				select {
				case <-ready[need]:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			for _, some := range [][]string{part.first, part.deployment} { // the cluster sends as many at a time as for the engine
				if err := cluster.Each(len(some), func(i int) error { return writeObject(ctx, c, namespace, some[i]) }); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// closeReady closes the channel of each Deployment that is ready, until all of them are.
func closeReady(ctx context.Context, c *cluster.Cluster, namespace string, ready map[string]chan struct{}) error {
	left := maps.Clone(ready)
	for change, err := range c.Watch(ctx, cluster.DeploymentKind, namespace, metav1.ListOptions{}) {
		if err != nil {
			return err
		}
		if name := change.Object.GetName(); left[name] != nil && health.Of(change.Object).Ready {
			close(left[name])
			delete(left, name)
		}
		if len(left) == 0 {
			return nil
		}
	}
	return ctx.Err()
}

func prepareGraph(ctx context.Context, d *deployer.Deployer, components, objects int) error {
	payload, err := graphContent(components, objects).Payload("graph", older)
	if err == nil {
		err = solution.Record(ctx, d, payload)
	}
	if err == nil {
		_, err = d.Activate(ctx, deployer.ActivateOptions{Solution: "graph", Version: older})
	}
	if err == nil {
		_, err = d.CreateEnvironment(ctx, metalk8s.CreateOptions{Name: "graph"})
	}
	return err
}

// measureGraph prints what a Solution of many components takes.
func measureGraph(ctx context.Context, components, objects int) error {
	samples, err := measureGraphSteps(ctx, growthCluster, components, objects, graphSteps)
	if err != nil {
		return err
	}
	fmt.Printf("\n%d components of %d objects, each of which needs up to three others\n\n", components, objects)
	fmt.Println("| | time | CPU | peak RssAnon |")
	fmt.Println("|---|---|---|---|")
	for i, step := range graphSteps {
		if err := printStep(step, samples[i]); err != nil {
			return err
		}
	}
	return printGraphRatios(samples)
}

// printGraphRatios prints how much longer add takes than the floors, as a whole and without the time of its plan.
func printGraphRatios(samples []sample) error {
	var seconds [5]float64 // the floors, plan, add
	for i := range seconds {
		if err := json.Unmarshal(samples[i].output, &seconds[i]); err != nil {
			return fmt.Errorf("%s: %w: %s", graphSteps[i], err, samples[i].output)
		}
	}
	fmt.Println("\n| add | to the objects alone | to them with their records | to them in order |")
	fmt.Println("|---|---|---|---|")
	for _, part := range []struct {
		name    string
		seconds float64
	}{{"the whole", seconds[4]}, {"without its plan", seconds[4] - seconds[3]}} {
		fmt.Printf("| %s | %.2f | %.2f | %.2f |\n", part.name, part.seconds/seconds[0], part.seconds/seconds[1], part.seconds/seconds[2])
	}
	return nil
}

// measureGraphSteps measures steps of a Solution on a cluster of its own.
func measureGraphSteps(ctx context.Context, o testcluster.Options, components, objects int, steps []string) (samples []sample, err error) {
	c, err := testcluster.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	for _, step := range append([]string{"prepare"}, steps...) {
		s, err := measure(ctx, os.Args[0], "graph-step", c.Kubeconfig, strconv.Itoa(components), strconv.Itoa(objects), step)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", step, err)
		}
		samples = append(samples, s)
		if err = settled(ctx, c); err != nil {
			return nil, fmt.Errorf("%s: %w", step, err)
		}
	}
	return samples[1:], nil
}

// settled waits until controllers have worked on all Deployments: they use the same processors as the next step.
func settled(ctx context.Context, c *testcluster.Cluster) error {
	return until(ctx, func() error {
		list, err := c.Client().AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, d := range list.Items {
			if d.Status.ObservedGeneration < d.Generation || d.Status.Replicas != *d.Spec.Replicas {
				return fmt.Errorf("the controllers are behind with Deployment %s/%s", d.Namespace, d.Name)
			}
		}
		return nil
	})
}
