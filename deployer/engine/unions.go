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

// A union is a group of fields of which only one may be set, and another field decides which; the strategy of a Deployment is an
// example. A default that the server has set has no owner, stays when another member is applied, and makes the object invalid. An
// owner removes a field by leaving it out, so the engine first takes ownership of the default, which changes nothing else.

// tryCleared asks the server for the result of a change with some fields removed. Both steps cannot be one dry run, so the change is
// judged with the old values of these fields.
func (d *decider) tryCleared(ctx context.Context, s *step) (*unstructured.Unstructured, error) {
	object := update(s)
	for _, path := range s.cleared {
		was, _, _ := unstructured.NestedFieldCopy(s.live.Object, parent(path)...)
		if err := unstructured.SetNestedField(object.Object, was, parent(path)...); err != nil {
			return nil, err
		}
	}
	result, err := d.Cluster.Apply(ctx, object, cluster.WriteOptions{DryRun: true, Force: s.force})
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

// fieldsToClear returns the fields that the server complains about, that are not desired and have no owner, or one that gives them up.
func fieldsToClear(s *step, refusal error) [][]string {
	status, ok := errors.AsType[*apierrors.StatusError](refusal)
	if !ok || status.ErrStatus.Details == nil {
		return nil
	}
	var paths [][]string
	for _, cause := range status.ErrStatus.Details.Causes {
		path := strings.Split(cause.Field, ".")
		if len(path) < 3 || path[0] != "spec" { // the deciding field is a sibling, and not the whole spec
			continue
		}
		_, there, _ := unstructured.NestedFieldNoCopy(s.live.Object, path...)
		_, wanted, _ := unstructured.NestedFieldNoCopy(s.desired.Object, path...)
		_, decided, _ := unstructured.NestedMap(s.desired.Object, parent(path)...)
		if there && !wanted && decided && (s.force || !diff.IsOwnedByOthers(s.live, path...)) {
			paths = append(paths, path)
		}
	}
	return paths
}

// clearFields removes the fields that are in the way of a change, immediately before it. Fields of other managers are removed together
// with the field that decides on the union.
func (r *run) clearFields(ctx context.Context, s *step) error {
	if err := r.adoptFields(ctx, s); err != nil || len(s.cleared) == 0 {
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
		if !diff.IsOwnedByOthers(s.live, path...) {
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
