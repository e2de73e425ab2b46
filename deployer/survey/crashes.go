package survey

import (
	"context"
	"errors"
	"maps"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// workload names an object that makes pods.
type workload struct{ kind, namespace, name string }

// makePods are kinds of objects that are ready as soon as their pods run, even if these end again and again.
var makePods = map[string]bool{"Deployment": true, "StatefulSet": true, "DaemonSet": true, "ReplicaSet": true}

// manyPods is for how many namespaces pods are read one by one; beyond that, those of the whole cluster are, unless most are of others.
const manyPods = 20

// podsOfNamespace is how many pods of the whole cluster are read for each namespace, before those of one namespace after the other.
const podsOfNamespace = 10

// crashes returns, by workload, the containers that restart again and again. Without permission to list pods, it is
// empty.
func (v *Survey) crashes(ctx context.Context, states []*record.State) (map[workload][]schema.Reason, error) {
	namespaces := map[string]bool{}
	for _, s := range states {
		for _, object := range inventory(s) {
			if makePods[object.Kind] {
				namespaces[object.Namespace] = true
			}
		}
	}
	if len(namespaces) > manyPods {
		found, err := v.crashesIn(ctx, "", podsOfNamespace*len(namespaces))
		if err == nil || report.CodeOf(err) != report.Forbidden && !errors.Is(err, errManyPods) {
			return found, err
		}
	}
	found := map[workload][]schema.Reason{}
	var mu sync.Mutex
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(kindsAtOnce)
	for namespace := range namespaces {
		group.Go(func() error {
			here, err := v.crashesIn(inGroup, namespace, math.MaxInt)
			if report.CodeOf(err) == report.Forbidden {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(found, here)
			return err
		})
	}
	return found, group.Wait()
}

// errManyPods ends a list after the most pods.
var errManyPods = errors.New("there are more pods")

func (v *Survey) crashesIn(ctx context.Context, namespace string, most int) (map[workload][]schema.Reason, error) {
	found := map[workload][]schema.Reason{}
	age := func(at time.Time) time.Duration { return v.Now().Sub(at) }
	var o metav1.ListOptions
	if most < math.MaxInt {
		o.Limit = int64(most) + 1
	}
	for pod, err := range v.Cluster.ListPartial(ctx, cluster.PodKind, namespace, o) {
		if err != nil {
			return nil, err
		}
		if most--; most < 0 {
			return nil, errManyPods
		}
		if problem, crashes := health.Crashes(pod, age); crashes {
			kind, name := health.WorkloadOf(pod)
			key := workload{kind, pod.GetNamespace(), name}
			found[key] = append(found[key], problem)
		}
	}
	return found, nil
}
