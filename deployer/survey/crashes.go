package survey

import (
	"context"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/schema/report"
)

// workload names an object that makes pods.
type workload struct{ kind, namespace, name string }

// makePods are kinds of objects that are ready as soon as their pods run, even if these end again and again.
var makePods = map[string]bool{"Deployment": true, "StatefulSet": true, "DaemonSet": true, "ReplicaSet": true}

// manyPods is for how many namespaces pods are read one by one; beyond that, those of the whole cluster are.
const manyPods = 20

// crashes returns, by workload, the containers that restart again and again. Without permission to list pods, it is
// empty.
func (v *Survey) crashes(ctx context.Context, states []*record.State) (map[workload][]string, error) {
	namespaces := map[string]bool{}
	for _, s := range states {
		for _, object := range inventory(s) {
			if makePods[object.Kind] {
				namespaces[object.Namespace] = true
			}
		}
	}
	found := map[workload][]string{}
	if len(namespaces) > manyPods {
		err := v.crashesIn(ctx, found, "")
		if report.CodeOf(err) != report.Forbidden {
			return found, err
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		if err := v.crashesIn(ctx, found, namespace); err != nil && report.CodeOf(err) != report.Forbidden {
			return nil, err
		}
	}
	return found, nil
}

func (v *Survey) crashesIn(ctx context.Context, found map[workload][]string, namespace string) error {
	age := func(at time.Time) time.Duration { return v.Now().Sub(at) }
	for pod, err := range v.Cluster.List(ctx, cluster.PodKind, namespace, metav1.ListOptions{Limit: wholeObjects}) {
		if err != nil {
			return err
		}
		if problem := health.Crashes(pod, age); problem != "" {
			kind, name := health.WorkloadOf(pod)
			key := workload{kind, pod.GetNamespace(), name}
			found[key] = append(found[key], problem)
		}
	}
	return nil
}
