package survey

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// OthersOptions name an environment, or one of its namespaces.
type OthersOptions struct{ Environment, Namespace string }

// Others lists the objects of an environment, or of one of its namespaces, that are not part of a Solution: a user
// created them, perhaps before the namespace became part of the environment. An entry without a name is a kind whose
// objects the user is not allowed to list. Custom resources and volume claims are left out; the policy on data covers
// them.
func (v *Survey) Others(ctx context.Context, o OthersOptions) ([]schema.ObjectRef, error) {
	namespaces, err := v.Records.Documents.Select(ctx, o.Environment, o.Namespace)
	if report.CodeOf(err) == report.NotFound {
		return nil, nil // unlisted objects are found by the deletion
	}
	if err != nil {
		return nil, err
	}
	states, err := v.Records.StatesIn(ctx, namespaces)
	if err != nil {
		return nil, err
	}
	found, err := v.OthersIn(ctx, namespaces, states)
	return slices.DeleteFunc(found, IsSetting), err
}

// OtherText names what [Survey.Others] lists.
func OtherText(ref schema.ObjectRef) string {
	if ref.Name == "" {
		return fmt.Sprintf("objects of kind %s in namespace %s, which you do not have permission to list", ref.Kind, ref.Namespace)
	}
	return ref.String()
}

// IsSetting reports whether an object only regulates its namespace, and so is useless without it.
func IsSetting(ref schema.ObjectRef) bool {
	return slices.Contains([]string{"LimitRange", "NetworkPolicy", "ResourceQuota", "Role", "RoleBinding"}, ref.Kind)
}

// createdByControllers are kinds whose objects Kubernetes and other controllers create, again if needed.
var createdByControllers = []string{"Endpoints", "EndpointSlice", "Event", "Lease"}

// OthersIn lists objects in these namespaces that are not part of a Solution, sorted. Objects that are being deleted
// are left out.
func (v *Survey) OthersIn(ctx context.Context, namespaces []metalk8s.Namespace, states []*record.State) ([]schema.ObjectRef, error) {
	kinds, err := v.Records.Documents.PlainKinds(ctx)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, s := range states {
		for _, object := range records.ObjectsOf(s) {
			known[object.UID] = true
		}
	}
	var mu sync.Mutex
	var found []schema.ObjectRef
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(records.Parallel)
	for _, n := range namespaces {
		if n.Terminating {
			continue
		}
		solutions := solutionsIn(n, states)
		for _, kind := range kinds {
			if slices.Contains(createdByControllers, kind.Kind) {
				continue
			}
			group.Go(func() error {
				refs, err := v.listWhere(within, kind, n.Name, func(o *unstructured.Unstructured) bool {
					return o.GetDeletionTimestamp() == nil && !known[string(o.GetUID())] && isOther(o, kind.Kind, solutions)
				})
				mu.Lock()
				defer mu.Unlock()
				found = append(found, refs...)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b schema.ObjectRef) int {
		return strings.Compare(a.Namespace+" "+a.String(), b.Namespace+" "+b.String())
	})
	return found, nil
}

// solutionsIn names the Solutions that are, or were, in a namespace.
func solutionsIn(n metalk8s.Namespace, states []*record.State) []string {
	names := slices.Sorted(maps.Keys(n.Versions))
	for _, s := range states {
		if s.Namespace == n.Name {
			names = append(names, s.Name)
		}
	}
	return names
}

// listWhere lists the objects of a kind that a function selects; without permission to list them, an object without a name stands for them.
func (v *Survey) listWhere(ctx context.Context, kind kube.GroupVersionKind, namespace string, selects func(*unstructured.Unstructured) bool) ([]schema.ObjectRef, error) {
	var found []schema.ObjectRef
	for object, err := range v.Cluster.ListMetadata(ctx, kind, namespace, metav1.ListOptions{}) {
		switch {
		case report.CodeOf(err) == report.Forbidden:
			return []schema.ObjectRef{{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: namespace}}, nil
		case errors.Is(err, cluster.ErrNoKind):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("look for %s in namespace %s: %w", kind.Kind, namespace, err)
		}
		if selects(object) {
			found = append(found, records.RefOf(kind, object))
		}
	}
	return found, nil
}

// isOther reports whether a user created an object: neither Kubernetes, nor a deployment of a Solution, nor its
// operator did.
func isOther(object *unstructured.Unstructured, kind string, solutions []string) bool {
	name, labels := object.GetName(), object.GetLabels()
	switch {
	case len(object.GetOwnerReferences()) > 0:
		return false
	case labels[schema.LabelRelease] != "": // which a copy has as well
		return !engine.IsManaged(object)
	case kind == "ServiceAccount" && name == "default", kind == "ConfigMap" && name == "kube-root-ca.crt":
		return false
	case kind == "ConfigMap" && name == metalk8s.EnvironmentConfigMap:
		return false
	case kind == "Secret" && object.GetAnnotations()["kubernetes.io/service-account.name"] != "":
		return false // the token of an account
	}
	return !slices.ContainsFunc(solutions, func(solution string) bool {
		return labels["app.kubernetes.io/part-of"] == solution || labels["app.kubernetes.io/managed-by"] == solution+"-operator"
	}) || isWrittenByHand(object)
}

// isWrittenByHand reports whether only kubectl wrote an object: its labels might then be copied from another object.
func isWrittenByHand(object *unstructured.Unstructured) bool {
	var managers []string
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "" {
			managers = append(managers, entry.Manager)
		}
	}
	return len(managers) > 0 && !slices.ContainsFunc(managers, func(name string) bool { return !strings.HasPrefix(name, "kubectl") })
}

// OtherTexts names each of the objects that [Survey.Others] lists.
func OtherTexts(list []schema.ObjectRef) (texts []string) {
	for _, ref := range list {
		texts = append(texts, OtherText(ref))
	}
	return texts
}
