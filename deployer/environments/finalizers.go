package environments

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Held is a deleted object that finalizers keep.
type Held struct {
	schema.ObjectRef
	// Finalizers have to be removed by a controller other than Kubernetes itself.
	Finalizers []string

	object *unstructured.Unstructured // its metadata
}

func (h Held) String() string { return h.ObjectRef.String() + ": " + strings.Join(h.Finalizers, ", ") }

// HeldOptions name an environment, or one of its namespaces.
type HeldOptions struct{ Environment, Namespace string }

// Held lists the deleted objects of an environment, or of one of its namespaces, that finalizers keep, apart from those that only
// Kubernetes itself keeps. It is empty if the environment does not exist.
func (e *Environments) Held(ctx context.Context, o HeldOptions) ([]Held, error) {
	namespaces, err := e.Records.Documents.Select(ctx, o.Environment, o.Namespace)
	if report.CodeOf(err) == report.NotFound {
		return nil, nil // objects outside of it may be left: Delete reports them
	}
	if err != nil {
		return nil, err
	}
	kinds, err := e.Cluster.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	var found []Held
	for _, n := range namespaces {
		for _, m := range kinds {
			if m.Scope.Name() != meta.RESTScopeNameNamespace || m.GroupVersionKind == endpointsKind {
				continue
			}
			for object, err := range e.Cluster.ListMetadata(ctx, m.GroupVersionKind, n.Name, metav1.ListOptions{}) {
				if errors.Is(err, cluster.ErrNoKind) {
					break // its CustomResourceDefinition was deleted since the kinds were read, and every object with it
				}
				if err != nil {
					return nil, err
				}
				found = appendHeld(found, m.GroupVersionKind, object)
			}
		}
		live, err := e.Cluster.Get(ctx, cluster.NamespaceKind, "", n.Name)
		if err != nil {
			return nil, err
		}
		if live != nil {
			found = appendHeld(found, cluster.NamespaceKind, live)
		}
	}
	return found, nil
}

// endpointsKind is not listed: the API server warns of it, and EndpointSlices have the same.
var endpointsKind = kube.GroupVersionKind{Version: "v1", Kind: "Endpoints"}

func appendHeld(list []Held, kind kube.GroupVersionKind, object *unstructured.Unstructured) []Held {
	finalizers := slices.DeleteFunc(object.GetFinalizers(), health.IsOfKubernetes)
	if object.GetDeletionTimestamp() == nil || len(finalizers) == 0 {
		return list
	}
	return append(list, Held{records.RefOf(kind, object), finalizers, object})
}

// planRelease plans to remove finalizers.
func planRelease(ctx context.Context, run *plan.Run, list []Held) error {
	for _, h := range list {
		needs, err := run.Cluster.PermissionsOn(ctx, kube.FromAPIVersionAndKind(h.APIVersion, h.Kind), h.Namespace, "get", "patch")
		if err != nil {
			return err
		}
		run.Needs = append(run.Needs, needs...)
		run.Changes = append(run.Changes, schema.Change{
			Action: schema.ActionUpdate, Object: h.ObjectRef, Note: "finalizers are removed: " + strings.Join(h.Finalizers, ", "),
		})
	}
	return nil
}

// release removes exactly the listed finalizers, from objects whose finalizers have not changed since.
func (e *Environments) release(ctx context.Context, list []Held) error {
	for _, h := range list {
		event := report.Event{Step: "release", Name: h.ObjectRef.String(), State: report.Done, Note: "removed finalizers: " + strings.Join(h.Finalizers, ", ")}
		if err := e.releaseOne(ctx, h); err != nil {
			return err
		}
		e.Sink.Emit(event)
	}
	return nil
}

func (e *Environments) releaseOne(ctx context.Context, h Held) error {
	kind := kube.FromAPIVersionAndKind(h.APIVersion, h.Kind)
	for {
		live, err := e.Cluster.Get(ctx, kind, h.Namespace, h.Name)
		if err != nil || live == nil || live.GetUID() != h.object.GetUID() {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(h.object.GetFinalizers()), func(name string) bool { return slices.Contains(h.Finalizers, name) })
		switch {
		case slices.Equal(live.GetFinalizers(), left):
			return nil // by an attempt whose answer was lost
		case !slices.Equal(live.GetFinalizers(), h.object.GetFinalizers()):
			return report.Errorf(report.Conflict, "%s has other finalizers than it had when they were listed", h.ObjectRef).
				WithHint("run the command again")
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(),
			"finalizers": left,
		}})
		if err != nil {
			return err
		}
		if _, err = e.Cluster.Patch(ctx, live, types.MergePatchType, patch, cluster.WriteOptions{}); !errors.Is(err, cluster.ErrChanged) {
			return err
		}
	}
}

// hintForce adds the removal of finalizers to the hints of a timeout.
func (o *DeleteOptions) hintForce(err error) error {
	if report.CodeOf(err) != report.Timeout {
		return err
	}
	return report.As(report.Timeout, err).
		WithHint("if their controllers are gone and never remove the finalizers: '%s' lists them, asks, and removes them", o.remedy().With("force-finalizers"))
}
