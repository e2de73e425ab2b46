//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/loader"
)

// base is the content of a cluster and a host before the environment of a run is made.
type base int

const (
	unknown      base = iota
	empty             // nothing
	imported          // both versions
	activeOld         // and the older one is active
	activeNew         // and then the newer one
	activeBroken      // and then one that never becomes ready
)

// environments is how the names of environments, and of their namespaces, begin. Each run has its own: a namespace takes five
// seconds to go.
const environments = "site-"

const (
	systemNamespace = "solutionctl-system"
	sharedNamespace = "metalk8s-solutions"
)

var (
	namespaceResource  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	secretResource     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	configMapResource  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deploymentResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	eventResource      = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	leaseResource      = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	definitionResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

func resourceOf(kind string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: strings.ToLower(kind) + "s"}
}

// setUp makes cluster and host what a verb begins with.
func (l *Lane) setUp(ctx context.Context, v *Verb) error {
	if v.resumes != nil {
		if _, err := l.Clean(ctx, v.resumes); err != nil { // it finds the points to kill it at
			return err
		}
	}
	if v.finishes != nil {
		if _, err := l.Clean(ctx, v.finishes); err != nil { // it finds the resulting state
			return err
		}
	}
	if err := l.clear(ctx); err != nil {
		return fmt.Errorf("clear: %w", err)
	}
	if l.base != v.base {
		if err := l.rebuild(ctx, v.base); err != nil {
			return err
		}
	}
	if v.changesBase {
		l.base = unknown
	}
	for name, text := range v.files {
		path := filepath.Join(l.dir, name)
		text = strings.ReplaceAll(text, inEnvironment, l.environment)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	if v.before != nil { // it is about the whole cluster
		if err := l.alone(ctx); err != nil {
			return err
		}
	}
	for _, args := range slices.Concat(v.before, v.prepare) {
		if err := l.must(ctx, args...); err != nil {
			return err
		}
	}
	if v.prepare == nil {
		return nil
	}
	if v.inPod {
		job, err := l.job(ctx)
		if err != nil {
			return err
		}
		if err = l.parameters(ctx, job.GetLabels()[loader.LabelRun], filepath.Join(l.dir, "parameters.json")); err != nil {
			return err
		}
	}
	if v.installed {
		if err := l.install(ctx); err != nil {
			return fmt.Errorf("do what Helm does: %w", err)
		}
	}
	if v.forgets {
		if err := l.forget(ctx); err != nil {
			return fmt.Errorf("lose the record: %w", err)
		}
	}
	if v.drifts {
		if err := l.client.Resource(configMapResource).Namespace(l.environment).Delete(ctx, "demo-pages", metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("take an object away: %w", err)
		}
	}
	if err := l.plant(ctx, v); err != nil || v.resumes == nil {
		return err
	}
	return l.interrupt(ctx, v.resumes)
}

// alone waits until the environments of earlier runs are gone.
func (l *Lane) alone(ctx context.Context) error {
	list, err := l.client.Resource(namespaceResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, namespace := range list.Items {
		if strings.HasPrefix(namespace.GetName(), environments) {
			err = errors.Join(err, l.gone(ctx, namespaceResource, namespace.GetName()))
		}
	}
	return err
}

// forget loses the record of what is in the environment.
func (l *Lane) forget(ctx context.Context) error {
	return l.deleteAll(ctx, secretResource, func(name string) bool { return l.secrets[name] || !strings.HasPrefix(name, "state.") })
}

// interrupt kills a verb where it has changed about half of what it changes.
func (l *Lane) interrupt(ctx context.Context, v *Verb) error {
	clean := l.clean[v.Name]
	var changing []int
	for n := range clean.Calls {
		if clean.changes(Point{Kind: Calls, N: n + 1}) {
			changing = append(changing, n+1)
		}
	}
	step, err := l.killAt(ctx, v, Point{Kind: Calls, N: changing[len(changing)/2], After: true})
	if err == nil && step == "" {
		err = fmt.Errorf("%s was over before call %d of %d, and was not killed", v.Name, changing[len(changing)/2], len(clean.Calls))
	}
	if err != nil {
		return err
	}
	return l.noteDead(ctx)
}

// clear removes what the last run left beside the base, and begins a new environment.
func (l *Lane) clear(ctx context.Context) error {
	if err := errors.Join(l.clearLoader(ctx), l.abandon(ctx)); err != nil {
		return err
	}
	l.runs++
	l.environment = fmt.Sprintf("%s%04d", environments, l.runs)
	if err := l.deleteAll(ctx, leaseResource, func(string) bool { return false }); err != nil {
		return err
	}
	if err := l.deleteAll(ctx, secretResource, func(name string) bool { return l.secrets[name] }); err != nil {
		return err
	}
	if err := l.deleteAll(ctx, configMapResource, func(name string) bool { return name != loader.ProgressName }); err != nil {
		return err
	}
	exports, err := filepath.Glob(filepath.Join(l.dir, "*.json"))
	for _, path := range exports {
		err = errors.Join(err, os.Remove(path))
	}
	return errors.Join(err, os.RemoveAll(filepath.Join(l.dir, "node")))
}

// abandon lets the environment of the last run go, and does not wait for it; what others would look at goes at once.
func (l *Lane) abandon(ctx context.Context) error {
	err := l.client.Resource(namespaceResource).Delete(ctx, l.environment, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, resource := range []schema.GroupVersionResource{configMapResource, deploymentResource, resourceOf("Demo"), resourceOf("Gadget")} {
		err := l.client.Resource(resource).Namespace(l.environment).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// deleteAll deletes our objects of a kind.
func (l *Lane) deleteAll(ctx context.Context, resource schema.GroupVersionResource, keep func(name string) bool) error {
	list, err := l.client.Resource(resource).Namespace(systemNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, object := range list.Items {
		if keep(object.GetName()) || object.GetName() == "kube-root-ca.crt" {
			continue
		}
		err := l.client.Resource(resource).Namespace(systemNamespace).Delete(ctx, object.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// gone waits until an object is gone.
func (l *Lane) gone(ctx context.Context, resource schema.GroupVersionResource, name string) error {
	for {
		_, err := l.client.Resource(resource).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s %s is gone: %w", resource.Resource, name, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// planted are objects of users: custom resources, and one that has nothing to do with us.
var planted = []*unstructured.Unstructured{
	custom("Demo", map[string]any{"title": "kept", "replicas": int64(2)}),
	custom("Gadget", map[string]any{"size": "big", "replicas": int64(1)}),
	{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "foreign"}, "data": map[string]any{"a": "b"},
	}},
}

func custom(kind string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1alpha1", "kind": kind, "metadata": map[string]any{"name": "kept"}, "spec": spec,
	}}
}

func (l *Lane) resource(object *unstructured.Unstructured) schema.GroupVersionResource {
	if object.GetKind() == "ConfigMap" {
		return configMapResource
	}
	return resourceOf(object.GetKind())
}

// planted are the objects of users with which a verb is run.
func (v *Verb) planted() []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(planted), func(object *unstructured.Unstructured) bool { return v.bare && object.GetKind() != "ConfigMap" })
}

// plant makes the objects of users.
func (l *Lane) plant(ctx context.Context, v *Verb) error {
	for _, object := range v.planted() {
		if err := l.create(ctx, l.resource(object), object, "user"); err != nil {
			return err
		}
	}
	return nil
}

// noteDead notes the holders of the locks that a dead process left: a run that finds nothing to do takes no lock, and need not wait for
// one.
func (l *Lane) noteDead(ctx context.Context) error {
	list, err := l.client.Resource(leaseResource).Namespace(systemNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, lease := range list.Items {
		holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
		if holder == "" || strings.HasPrefix(holder, "loader@") { // a pod lives on
			continue
		}
		l.dead[holder] = true
	}
	return nil
}
