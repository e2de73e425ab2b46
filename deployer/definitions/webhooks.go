package definitions

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
)

// Orphans returns the CRDs that a plan keeps and whose conversion webhook it removes, with a notice about each. [Guard.StandAlone] keeps their
// objects readable.
func (g *Guard) Orphans(ctx context.Context, plan *engine.Plan) (orphans []*unstructured.Unstructured, notices []string, err error) {
	for _, change := range plan.Changes {
		if change.Action != schema.ActionKeep || change.Object.Kind != cluster.DefinitionKind.Kind {
			continue
		}
		live, err := g.Cluster.Get(ctx, cluster.DefinitionKind, "", change.Object.Name)
		if err != nil {
			return nil, nil, err
		}
		if live == nil || !losesWebhook(live, plan) {
			continue
		}
		orphans = append(orphans, live)
		if def, err := Parse(live); err == nil {
			notices = append(notices, fmt.Sprintf("custom resource definition %s loses its webhook: until a version with it is active again, only version %s is served",
				live.GetName(), def.StorageVersion()))
		}
	}
	return orphans, notices, nil
}

// losesWebhook reports whether a plan removes the Service that converts the objects of a CRD, in the Solution's own namespace.
func losesWebhook(definition *unstructured.Unstructured, plan *engine.Plan) bool {
	strategy, _, _ := unstructured.NestedString(definition.Object, "spec", "conversion", "strategy")
	service, _, _ := unstructured.NestedMap(definition.Object, "spec", "conversion", "webhook", "clientConfig", "service")
	return strategy == "Webhook" && service["namespace"] == render.SystemNamespace(plan.Release.Name) &&
		!slices.ContainsFunc(plan.Release.Objects, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == "Service" && o.GetNamespace() == service["namespace"] && o.GetName() == service["name"]
		})
}

// Interceptors returns the webhook configurations and the bindings of admission policies in the cluster that the records of a Solution list,
// without the protection of its CRDs.
func (g *Guard) Interceptors(ctx context.Context, solution string) (found []*unstructured.Unstructured, err error) {
	states, err := g.Records.Engine.StatesIn(ctx, "")
	if err != nil {
		return nil, err
	}
	states = slices.DeleteFunc(states, func(s *record.State) bool { return s.Name != solution })
	if len(states) == 0 {
		return nil, records.NotDeployed(solution)
	}
	seen := map[schema.ObjectRef]bool{}
	for _, state := range states {
		if state.Damage != nil {
			return nil, state.Damage
		}
		for _, object := range records.ObjectsOf(state) {
			if seen[object.ObjectRef] || !isInterceptor(object.ObjectRef) || object.Name == ProtectionName(state.Key) {
				continue
			}
			live, err := g.Cluster.Get(ctx, kube.FromAPIVersionAndKind(object.APIVersion, object.Kind), "", object.Name)
			if err != nil {
				return nil, err
			}
			if live != nil && isRecorded(state, object, live) {
				seen[object.ObjectRef], found = true, append(found, live)
			}
		}
	}
	return found, nil
}

// isInterceptor reports whether the API server sends requests to others because of an object. It sends none about such objects themselves.
func isInterceptor(o schema.ObjectRef) bool {
	gvk := kube.FromAPIVersionAndKind(o.APIVersion, o.Kind)
	return gvk.Group == "admissionregistration.k8s.io" && slices.Contains([]string{
		"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding",
	}, gvk.Kind)
}

// isRecorded reports whether an object is the recorded one. A run that was stopped before it recorded the UID has left its label.
func isRecorded(state *record.State, known schema.DeployedObject, live *unstructured.Unstructured) bool {
	if known.UID != "" {
		return known.UID == string(live.GetUID())
	}
	return live.GetLabels()[schema.LabelRelease] == state.ID()
}

// InterceptorOwner returns the Solution whose record lists a webhook configuration or the binding of an admission policy; "" for none.
func (g *Guard) InterceptorOwner(ctx context.Context, object *unstructured.Unstructured) (solution string, err error) {
	states, err := g.Records.Engine.StatesIn(ctx, "")
	if err != nil {
		return "", err
	}
	ref := records.RefOf(object.GroupVersionKind(), object)
	for _, state := range states {
		for _, known := range records.ObjectsOf(state) {
			if known.ObjectRef == ref && isRecorded(state, known, object) {
				return state.Name, nil
			}
		}
	}
	return "", nil
}
