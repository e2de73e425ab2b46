package survey

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
)

// TestCrashes counts the reads of pods: of few namespaces one by one, of many at once, and one by one where most pods are of others.
func TestCrashes(t *testing.T) {
	for name, test := range map[string]struct {
		namespaces, others int
		whole, single      int // requests
	}{
		"few namespaces":                      {5, 1000, 0, 5},
		"many namespaces":                     {30, 200, 1, 0},
		"many namespaces, and very many pods": {30, 1000, 1, 30},
	} {
		t.Run(name, func(t *testing.T) {
			var documents []string
			var states []*record.State
			for i := range test.namespaces {
				namespace := fmt.Sprintf("shop-%02d", i)
				documents = append(documents, fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %[1]s}}
---
{apiVersion: v1, kind: Pod, metadata: {namespace: %[1]s, name: demo, ownerReferences: [
  {apiVersion: apps/v1, kind: StatefulSet, name: demo, uid: u, controller: true}]}, status: {phase: Running, containerStatuses: [
  {name: main, restartCount: 7, state: {waiting: {reason: CrashLoopBackOff, message: back-off}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}}`, namespace))
				ref := schema.ObjectRef{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: namespace, Name: "demo"}
				states = append(states, &record.State{
					Key:     record.Key{Namespace: namespace, Name: "demo"},
					Current: &schema.DeploymentRevision{Objects: []schema.DeployedObject{{ObjectRef: ref}}},
				})
			}
			for i := range test.others {
				documents = append(documents, fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {namespace: default, name: other-%04d}, status: {phase: Running}}", i))
			}
			server := clustertest.Start(t, strings.Join(documents, "\n---\n"))
			c, err := cluster.Connect(cluster.Options{Kubeconfig: server.Kubeconfig(t), Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			v := &Survey{Cluster: c, Now: time.Now}
			found, err := v.crashes(t.Context(), states)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range states {
				if len(found[workload{"StatefulSet", s.Namespace, "demo"}]) != 1 {
					t.Errorf("no crash in %s: %v", s.Namespace, found)
				}
			}
			whole, single := 0, 0
			for _, request := range server.Requests() {
				switch {
				case strings.HasPrefix(request, "GET /api/v1/pods"):
					whole++
				case strings.HasSuffix(request, "/pods"):
					single++
				}
			}
			if whole != test.whole || single != test.single {
				t.Errorf("%d lists of all pods and %d of a namespace, want %d and %d", whole, single, test.whole, test.single)
			}
		})
	}
}
