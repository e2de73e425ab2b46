//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/e2e/solution"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema"
)

// graphSteps are the measured steps of a Solution with components, in this order. The first is the floor: the same objects, without order,
// plan, records or waiting.
var graphSteps = []string{"write the objects alone", "plan", "add", "add again", "plan again", "remove"}

// graphContent is a Solution whose components need up to three of those before them.
func graphContent(components, objects int) deployertest.Content {
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // the same graph in each process
	content := deployertest.Content{Files: map[string]string{}}
	var manifest strings.Builder
	manifest.WriteString("components:\n")
	for i := range components {
		name := fmt.Sprintf("part-%03d", i)
		var needs []string
		for range min(i, random.IntN(4)) {
			needs = append(needs, fmt.Sprintf("{component: part-%03d}", random.IntN(i)))
		}
		needs = unique(needs)
		fmt.Fprintf(&manifest, "  - {name: %s, manifests: components/%s.yaml, dependsOn: [%s]}\n", name, name, strings.Join(needs, ", "))
		content.Files["components/"+name+".yaml"] = graphObjects(name, objects)
	}
	content.Manifest = manifest.String()
	return content
}

func unique(texts []string) []string {
	seen := map[string]bool{}
	var list []string
	for _, text := range texts {
		if !seen[text] {
			seen[text] = true
			list = append(list, text)
		}
	}
	return list
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
		err = writeObjects(ctx, c, graphContent(count, each))
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

// writeObjects applies the objects of a Solution in a namespace that is there, as many at a time as the engine does.
func writeObjects(ctx context.Context, c *cluster.Cluster, content deployertest.Content) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cluster.InFlight)
	for _, text := range content.Files {
		for document := range strings.SplitSeq(strings.ReplaceAll(text, "{{ repository }}", "registry.invalid"), "---\n") {
			group.Go(func() error {
				object := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(document), object); err != nil {
					return err
				}
				object.SetNamespace("default")
				_, err := c.Apply(ctx, object, cluster.WriteOptions{})
				return err
			})
		}
	}
	return group.Wait()
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
func measureGraph(ctx context.Context, components, objects int) (err error) {
	c, err := testcluster.Start(ctx, testcluster.Options{FakeNodes: 3, Progress: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	contestant := func(step string) (sample, error) {
		return measure(ctx, os.Args[0], "graph-step", c.Kubeconfig, strconv.Itoa(components), strconv.Itoa(objects), step)
	}
	if _, err := contestant("prepare"); err != nil {
		return err
	}
	fmt.Printf("\n%d components of %d objects, each of which needs up to three others\n\n", components, objects)
	fmt.Println("| | time | CPU | peak RssAnon |")
	fmt.Println("|---|---|---|---|")
	for _, step := range graphSteps {
		s, err := contestant(step)
		if err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
		if err := printStep(step, s); err != nil {
			return err
		}
	}
	return nil
}
