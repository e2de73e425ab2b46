package definitions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/kube/crd"
	"github.com/solutionctl/solutionctl/schema/report"
)

// batch is how many objects a webhook converts at once.
const batch = 100

// tryConversion lets the webhook convert every object to its future storage version and back: a field that does not
// come back would be lost. If the webhook cannot be called, this is not an error, but all objects count as losing data.
func (g *Guard) tryConversion(ctx context.Context, live *unstructured.Unstructured, j *lossJudge) error {
	if !serves(j.before, j.before.StorageVersion()) {
		j.untried = fmt.Sprintf("version %s is not served", j.before.StorageVersion())
		return nil
	}
	var some []*unstructured.Unstructured
	try := func() error {
		lost, err := g.lostInConversion(ctx, j, some)
		if err != nil {
			return err
		}
		for i, object := range some {
			j.lose(cluster.NameOf(object), lost[i])
			j.tried[object.GetUID()] = object.GetResourceVersion()
		}
		some = nil
		return nil
	}
	var failure error
	for object, err := range g.objectsOf(ctx, live, j.storedKind(), "", g.Cluster.List) {
		if err != nil {
			return err
		}
		if some = append(some, object); len(some) == batch {
			if failure = try(); failure != nil {
				break
			}
		}
	}
	if failure == nil && len(some) > 0 {
		failure = try()
	}
	if failure != nil {
		if ctx.Err() != nil {
			return failure
		}
		j.untried = "it could not be asked: " + failure.Error()
	}
	return nil
}

// storedKind is the kind in the version that objects are stored in before the change.
func (j *lossJudge) storedKind() kube.GroupVersionKind {
	kind := j.listed
	kind.Version = j.before.StorageVersion()
	return kind
}

// tryAgain does the same with one object that was made or changed after all had been tried.
func (g *Guard) tryAgain(ctx context.Context, j *lossJudge, object *unstructured.Unstructured) error {
	if !j.hooked || j.tried[object.GetUID()] == object.GetResourceVersion() {
		return nil
	}
	now, err := g.Cluster.Get(ctx, j.storedKind(), object.GetNamespace(), object.GetName())
	if err != nil || now == nil {
		return err
	}
	lost, err := g.lostInConversion(ctx, j, []*unstructured.Unstructured{now})
	if err == nil && len(lost[0]) > 0 {
		err = report.Errorf(report.DataLoss, "%s would lose data: %s", cluster.NameOf(now), strings.Join(lost[0], ", "))
	}
	return err
}

// lostInConversion returns, for each object, the fields that are lost by a conversion to the future storage version and
// back.
func (g *Guard) lostInConversion(ctx context.Context, j *lossJudge, objects []*unstructured.Unstructured) ([][]string, error) {
	there, err := g.convert(ctx, j.before, objects, j.moves)
	if err != nil {
		return nil, err
	}
	back, err := g.convert(ctx, j.before, there, j.before.StorageVersion())
	if err != nil {
		return nil, err
	}
	lost := make([][]string, len(objects))
	for i, object := range objects {
		lost[i] = crd.Missing(object.Object, back[i].Object)
	}
	return lost, nil
}

// convert asks the webhook of a definition as the API server does.
func (g *Guard) convert(ctx context.Context, def *crd.Definition, objects []*unstructured.Unstructured, version string) ([]*unstructured.Unstructured, error) {
	hook := def.Spec.Conversion.Webhook
	if hook == nil || hook.ClientConfig == nil || hook.ClientConfig.Service == nil {
		return nil, errors.New("it is not a Service of the cluster")
	}
	review := apiextensionsv1.ConversionReview{Request: &apiextensionsv1.ConversionRequest{
		UID: types.UID(def.Name + "-" + version), DesiredAPIVersion: kube.GroupVersion{Group: def.Spec.Group, Version: version}.String(),
	}}
	review.Kind, review.APIVersion = "ConversionReview", apiextensionsv1.SchemeGroupVersion.String()
	if !slices.Contains(hook.ConversionReviewVersions, "v1") {
		review.APIVersion = apiextensionsv1.GroupName + "/v1beta1"
	}
	for _, object := range objects {
		bare := &unstructured.Unstructured{Object: object.DeepCopy().Object}
		bare.SetManagedFields([]metav1.ManagedFieldsEntry(nil))
		review.Request.Objects = append(review.Request.Objects, runtime.RawExtension{Object: bare})
	}
	body, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	service := hook.ClientConfig.Service
	port, path := int32(443), ""
	if service.Port != nil {
		port = *service.Port
	}
	if service.Path != nil {
		path = *service.Path
	}
	answer, err := g.Cluster.PostToService(ctx, service.Namespace, service.Name, port, path, body)
	if err != nil {
		return nil, err
	}
	review = apiextensionsv1.ConversionReview{}
	switch err := json.Unmarshal(answer, &review); {
	case err != nil:
		return nil, fmt.Errorf("its answer: %w", err)
	case review.Response == nil:
		return nil, errors.New("its answer has no response")
	case review.Response.Result.Status != metav1.StatusSuccess:
		return nil, fmt.Errorf("it answers: %s", review.Response.Result.Message)
	case len(review.Response.ConvertedObjects) != len(objects):
		return nil, fmt.Errorf("it returned %d objects instead of %d", len(review.Response.ConvertedObjects), len(objects))
	}
	converted := make([]*unstructured.Unstructured, len(objects))
	for i, raw := range review.Response.ConvertedObjects {
		converted[i] = &unstructured.Unstructured{}
		if err := converted[i].UnmarshalJSON(raw.Raw); err != nil {
			return nil, fmt.Errorf("its answer: %w", err)
		}
	}
	return converted, nil
}
