package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/diff"
)

// Of some fields an object may have one or the other, and a third one says which: the strategy of a Deployment is one. When the
// server has filled one in by itself, it belongs to nobody, stays when the other is applied, and then the server refuses what
// came out. Who owns a field takes it away by leaving it out. So it is claimed first, which changes nothing else.

// tryCleared asks what would become of an object if fields that stand against the change went. The server cannot be asked for
// both steps at once; it judges the change as far as it is not about these fields.
func (j *judge) tryCleared(ctx context.Context, s *step) (*unstructured.Unstructured, error) {
	object := update(s)
	for _, path := range s.cleared {
		was, _, _ := unstructured.NestedFieldCopy(s.live.Object, parent(path)...)
		if err := unstructured.SetNestedField(object.Object, was, parent(path)...); err != nil {
			return nil, err
		}
	}
	result, err := j.Cluster.Apply(ctx, object, cluster.WriteOptions{DryRun: true, Force: s.force})
	if err != nil {
		return nil, err
	}
	for _, path := range s.cleared {
		wanted, _, _ := unstructured.NestedFieldCopy(s.desired.Object, parent(path)...)
		if err := unstructured.SetNestedField(result.Object, wanted, parent(path)...); err != nil {
			return nil, err
		}
	}
	return result, nil
}

func parent(path []string) []string { return path[:len(path)-1] }

// leftovers are the fields that the server complains about, that are not wanted and that belong to nobody, or to those from
// whom they are taken over.
func leftovers(s *step, refusal error) [][]string {
	status, ok := errors.AsType[*apierrors.StatusError](refusal)
	if !ok || status.ErrStatus.Details == nil {
		return nil
	}
	var paths [][]string
	for _, cause := range status.ErrStatus.Details.Causes {
		path := strings.Split(cause.Field, ".")
		if len(path) < 3 || path[0] != "spec" { // what decides between fields is beside them, and not everything
			continue
		}
		_, there, _ := unstructured.NestedFieldNoCopy(s.live.Object, path...)
		_, wanted, _ := unstructured.NestedFieldNoCopy(s.desired.Object, path...)
		_, decided, _ := unstructured.NestedMap(s.desired.Object, parent(path)...)
		if there && !wanted && decided && (s.force || !diff.IsOthers(s.live, path...)) {
			paths = append(paths, path)
		}
	}
	return paths
}

// makeWay makes the fields go away that stand against a change, as soon as that is made. What others own has to go before,
// together with what decides about it.
func (r *run) makeWay(ctx context.Context, s *step) error {
	if err := r.inherit(ctx, s); err != nil || len(s.cleared) == 0 {
		return err
	}
	claimed := diff.AppliedPart(s.live)
	claimed.SetUID(s.live.GetUID())
	claimed.SetResourceVersion(s.live.GetResourceVersion())
	taken := &unstructured.Unstructured{Object: map[string]any{}}
	for _, path := range s.cleared {
		was, _, _ := unstructured.NestedFieldCopy(s.live.Object, path...)
		if err := unstructured.SetNestedField(claimed.Object, was, path...); err != nil {
			return err
		}
		if !diff.IsOthers(s.live, path...) {
			continue
		}
		wanted, _, _ := unstructured.NestedMap(s.desired.Object, parent(path)...)
		wanted[path[len(path)-1]] = nil
		if err := unstructured.SetNestedField(taken.Object, wanted, parent(path)...); err != nil {
			return err
		}
	}
	var err error
	if len(taken.Object) > 0 {
		taken.SetUID(s.live.GetUID())
		taken.SetResourceVersion(s.live.GetResourceVersion())
		var patch []byte
		if patch, err = json.Marshal(taken.Object); err != nil {
			return err
		}
		s.live, err = r.Cluster.Patch(ctx, s.live, types.MergePatchType, patch, cluster.WriteOptions{})
	} else {
		s.live, err = r.Cluster.Apply(ctx, claimed, cluster.WriteOptions{})
	}
	return err
}
