package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// group is that of all custom resources.
const group = "cloud.solutionctl.io"

func (k kind) groupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: cmp.Or(k.version, "v1alpha1"), Kind: k.name}
}

// fieldOwner is the name under which every operator applies objects, so that one can continue for another.
const fieldOwner = "cloud-operator"

// askAgain is how long to wait before looking whether a kind is still left to another operator.
const askAgain = 5 * time.Second

// serviceImage returns the image of the services in the OperatorConfig.
func serviceImage(file, version string) (string, error) {
	var config struct {
		Repositories map[string][]struct {
			Endpoint string
			Images   []string
		}
	}
	data, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(data, &config)
	}
	if err != nil {
		return "", err
	}
	for _, repository := range config.Repositories[version] {
		for _, image := range repository.Images {
			if strings.HasPrefix(image, "cloud-service:") {
				return repository.Endpoint + "/" + image, nil
			}
		}
	}
	return "", fmt.Errorf("%s: there is no image cloud-service of version %s", file, version)
}

// reconciler runs the custom resources of one kind.
type reconciler struct {
	client client.Client
	kind   kind
	image  string // of the services
	owner  string // the name of this operator
}

func (r *reconciler) setUp(m ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(m).For(newResource(r.kind.name))
	for _, child := range r.kind.children {
		b.Owns(newResource(child))
	}
	if r.kind.service != "" {
		b.Owns(&appsv1.Deployment{})
	}
	return b.Complete(r)
}

func newResource(kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kindOf(kind).groupVersionKind())
	return u
}

// Reconcile brings one custom resource closer to what it asks for. It can be called at any time, any number of times.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	resource := newResource(r.kind.name)
	if err := r.client.Get(ctx, request.NamespacedName, resource); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if resource.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	if left, err := r.leftToOther(ctx, request.Namespace); left || err != nil {
		return ctrl.Result{RequeueAfter: askAgain}, err
	}
	waitsFor, err := r.run(ctx, resource)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.writeStatus(ctx, resource, waitsFor)
}

// leftToOther reports whether the kind has another operator.
func (r *reconciler) leftToOther(ctx context.Context, namespace string) (bool, error) {
	for _, name := range others(r.owner, r.kind.name) {
		err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &appsv1.Deployment{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			return err == nil, err
		}
	}
	return false, nil
}

// run makes missing objects, and returns what it waits for.
func (r *reconciler) run(ctx context.Context, resource *unstructured.Unstructured) (waitsFor string, err error) {
	for _, name := range r.kind.children {
		child := newResource(name)
		key := client.ObjectKeyFromObject(resource)
		if _, err := r.apply(ctx, resource, name, key.Name, child.GetAPIVersion(), nil); err != nil {
			return "", err
		}
		if err := r.client.Get(ctx, key, child); client.IgnoreNotFound(err) != nil {
			return "", err
		}
		if !isReady(child) {
			return name, nil
		}
	}
	if r.kind.service == "" {
		return "", nil
	}
	name := objectName(resource, r.kind.service)
	if r.kind.service == "identity" {
		if err := r.makeKey(ctx, resource, name); err != nil {
			return "", err
		}
	}
	if _, err := r.apply(ctx, resource, "Service", name, "v1", service(name)); err != nil {
		return "", err
	}
	applied, failure := r.apply(ctx, resource, "Deployment", name, "apps/v1", r.deployment(resource, name))
	if failure != nil {
		return "", failure
	}
	var live appsv1.Deployment
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: resource.GetNamespace(), Name: name}, &live); client.IgnoreNotFound(err) != nil {
		return "", err
	}
	if !isRolledOut(live.Status, applied) {
		return "Deployment " + name, nil
	}
	return "", nil
}

// isRolledOut reports whether a Deployment runs what was applied. What the cache has may be older than that.
func isRolledOut(s appsv1.DeploymentStatus, applied int64) bool {
	return s.ObservedGeneration >= applied && s.AvailableReplicas > 0 && s.UpdatedReplicas == s.Replicas
}

func objectName(resource *unstructured.Unstructured, service string) string {
	return resource.GetName() + "-" + service
}

// apply writes an object that goes with a custom resource, and returns its generation.
func (r *reconciler) apply(ctx context.Context, owner *unstructured.Unstructured, kind, name, apiVersion string, spec map[string]any) (generation int64, err error) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	if spec != nil {
		object.Object["spec"] = spec
	}
	object.SetName(name)
	object.SetNamespace(owner.GetNamespace())
	object.SetOwnerReferences(ownedBy(owner))
	err = r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldOwner), client.ForceOwnership)
	return object.GetGeneration(), err
}

// ownedBy makes an object go with its owner. It does not block the owner's deletion, which would need the right to update its finalizers on OpenShift.
func ownedBy(owner *unstructured.Unstructured) []metav1.OwnerReference {
	reference := metav1.NewControllerRef(owner, owner.GroupVersionKind())
	reference.BlockOwnerDeletion = nil
	return []metav1.OwnerReference{*reference}
}

// makeKey makes the key of identity once. It is created and never read: the operator needs no right to read Secrets.
func (r *reconciler) makeKey(ctx context.Context, owner *unstructured.Unstructured, name string) error {
	err := r.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: owner.GetNamespace(), OwnerReferences: ownedBy(owner),
		},
		StringData: map[string]string{"key": rand.Text()},
	})
	return client.IgnoreAlreadyExists(err)
}

func service(name string) map[string]any {
	return map[string]any{"selector": map[string]any{"app": name}, "ports": []any{map[string]any{"name": "http", "port": int64(80), "targetPort": int64(8080)}}}
}

func (r *reconciler) deployment(resource *unstructured.Unstructured, name string) map[string]any {
	env := []any{}
	for _, need := range r.kind.needs {
		// The kubelet knows the addresses of Services that were there before.
		variable := strings.ToUpper(strings.ReplaceAll(objectName(resource, need), "-", "_")) + "_SERVICE_HOST"
		env = append(env, map[string]any{"name": strings.ToUpper(need) + "_URL", "value": "http://$(" + variable + ")"})
	}
	if first, ok, _ := unstructured.NestedString(resource.Object, "spec", "firstAddress"); ok {
		env = append(env, map[string]any{"name": "FIRST_ADDRESS", "value": first})
	}
	if r.kind.service == "identity" {
		env = append(env, map[string]any{"name": "KEY", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": name, "key": "key"}}})
	}
	labels := map[string]any{"app": name}
	return map[string]any{
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
			"automountServiceAccountToken":  false,
			"terminationGracePeriodSeconds": int64(60), // it serves until no node leads requests to it: service/serve.go
			"containers": []any{map[string]any{
				"name": r.kind.service, "image": r.image, "args": []any{r.kind.service}, "env": env,
				"resources": map[string]any{"requests": map[string]any{"cpu": "10m", "memory": "16Mi"}},
				"securityContext": map[string]any{
					"runAsNonRoot": true, "allowPrivilegeEscalation": false,
					"capabilities": map[string]any{"drop": []any{"ALL"}}, "seccompProfile": map[string]any{"type": "RuntimeDefault"},
				},
				"ports":          []any{map[string]any{"containerPort": int64(8080)}},
				"readinessProbe": map[string]any{"httpGet": map[string]any{"path": "/healthz", "port": int64(8080)}, "periodSeconds": int64(1)},
			}},
		}},
	}
}

// writeStatus writes the status of a custom resource, if it has changed.
func (r *reconciler) writeStatus(ctx context.Context, resource *unstructured.Unstructured, waitsFor string) error {
	condition := map[string]any{"type": "Ready", "status": "True", "reason": "Running", "message": "everything runs"}
	if waitsFor != "" {
		condition = map[string]any{"type": "Ready", "status": "False", "reason": "Progressing", "message": "waiting for " + waitsFor}
	}
	status := map[string]any{"observedGeneration": resource.GetGeneration(), "conditions": []any{condition}}
	if equality.Semantic.DeepEqual(resource.Object["status"], status) {
		return nil
	}
	before := resource.DeepCopy()
	resource.Object["status"] = status
	return client.IgnoreNotFound(r.client.Status().Patch(ctx, resource, client.MergeFrom(before)))
}

func isReady(resource *unstructured.Unstructured) bool {
	seen, _, _ := unstructured.NestedInt64(resource.Object, "status", "observedGeneration")
	conditions, _, _ := unstructured.NestedSlice(resource.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == "Ready" {
			return condition["status"] == "True" && seen == resource.GetGeneration()
		}
	}
	return false
}
