package survey_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestManyNotReady: the requests of a status do not grow with the objects that are not ready, and each has its reasons.
func TestManyNotReady(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", deployertest.Content{})
	b.Server.Stall("Deployment")
	requests := map[int]int{}
	added := 0
	for _, environments := range []int{25, 70} {
		for ; added < environments; added++ {
			name := fmt.Sprintf("site-%d", added)
			b.Namespace(name, name)
			if _, err := b.Add(t.Context(), deployer.AddOptions{Environment: name, Solution: shop, Options: plan.Options{NoWait: true}}); err != nil {
				t.Fatal(err)
			}
			putPod(b, name)
		}
		b.Server.Requests()
		reading, reads := cluster.WithReads(t.Context())
		status, err := b.Survey.Status(reading, survey.StatusOptions{})
		if err != nil {
			t.Fatal(err)
		}
		requests[environments] = len(b.Server.Requests())
		for d := range status.Deployments() {
			if text := strings.Join(schema.Sentences(d.Reasons), "\n"); d.Environment != "" && !strings.Contains(text, "pod shop-1: no node can take it") {
				t.Errorf("%s in %s: %q", d.Solution, d.Environment, text)
			}
		}
		follower := b.Cluster.Follower(t.Context())
		if !follower.Follow(reads) {
			t.Error("changes cannot be followed")
		}
		if reads.Include(cluster.EventKind) || !reads.Include(cluster.PodKind) {
			t.Error("Events are followed, or pods are not")
		}
		follower.Close()
	}
	if requests[25] != requests[70] {
		t.Errorf("requests by environments: %v", requests)
	}
}

// TestManyNotDeployed: the requests of a status do not grow with the environments in which something is not deployed, or not as it was begun.
func TestManyNotDeployed(t *testing.T) {
	add := func(b *deployertest.Bed, environment string, timeout time.Duration) {
		b.Helper()
		b.Namespace(environment, environment)
		_, err := b.Add(b.Context(), deployer.AddOptions{Environment: environment, Solution: shop, Options: plan.Options{Timeout: timeout}})
		if err != nil && report.CodeOf(err) != report.Timeout {
			b.Fatal(err)
		}
	}
	ask := func(b *deployertest.Bed, environment string) {
		b.Namespace(environment, environment)
		b.Server.Put(b.TB, "{apiVersion: v1, kind: ConfigMap, metadata: {name: metalk8s-environment, namespace: "+environment+"}, data: {shop: 1.0.0}}")
	}
	for name, test := range map[string]struct {
		put  func(b *deployertest.Bed, environment string)
		want string // in the status of each
	}{
		"asked for": {ask, "version 1.0.0 is asked for, but is not deployed"},
		"deployed by MetalK8s": {func(b *deployertest.Bed, environment string) {
			ask(b, environment)
			b.Server.Put(b.TB, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop-operator, namespace: "+environment+", labels: {heritage: salt}}}")
		}, "it was deployed by MetalK8s"},
		"begun": {func(b *deployertest.Bed, environment string) {
			b.Server.Stall("Deployment")
			add(b, environment, 1)
		}, "no process works on it since"},
		"in a deleted namespace": {func(b *deployertest.Bed, environment string) {
			add(b, environment, time.Minute)
			b.Deleted("Namespace", "", environment)
		}, "which was deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			b := deployertest.New(t)
			b.Activated(shop, "1.0.0", deployertest.Content{})
			requests := map[int]int{}
			added := 0
			for _, environments := range []int{25, 40} {
				for ; added < environments; added++ {
					test.put(b, fmt.Sprintf("site-%d", added))
				}
				b.Server.Requests()
				status, err := b.Survey.Status(t.Context(), survey.StatusOptions{})
				if err != nil {
					t.Fatal(err)
				}
				requests[environments] = len(b.Server.Requests())
				texts := slices.Clone(status.Problems)
				for d := range status.Deployments() {
					texts = append(texts, schema.Sentences(d.Reasons)...)
				}
				if n := strings.Count(strings.Join(texts, "\n"), test.want); n != environments {
					t.Errorf("%d times %q in %q", n, test.want, texts)
				}
			}
			if requests[25] != requests[40] {
				t.Errorf("requests by environments: %v", requests)
			}
		})
	}
}

// putPod makes the ReplicaSet of the operator in a namespace, and its pod, which no node can take.
func putPod(b *deployertest.Bed, namespace string) {
	b.Helper()
	const head = "metadata: {name: %s, namespace: %s, labels: {app: shop-operator}, ownerReferences: [{apiVersion: apps/v1, kind: %s, name: %s, uid: %s, controller: true}]}\n"
	deployment := b.Server.Object("Deployment", namespace, shop+"-operator")
	b.Server.Put(b.TB, "apiVersion: apps/v1\nkind: ReplicaSet\n"+fmt.Sprintf(head, "shop", namespace, "Deployment", deployment.GetName(), deployment.GetUID())+
		"spec: {replicas: 1, selector: {matchLabels: {app: shop-operator}}}\n")
	set := b.Server.Object("ReplicaSet", namespace, "shop")
	b.Server.Put(b.TB, "apiVersion: v1\nkind: Pod\n"+fmt.Sprintf(head, "shop-1", namespace, "ReplicaSet", set.GetName(), set.GetUID())+`spec: {containers: [{name: main, image: x}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: 3 Too many pods."}]}
`)
}
