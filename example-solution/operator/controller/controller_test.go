package controller

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/solutionctl/example-solution/api"
	"github.com/solutionctl/example-solution/operator/config"
)

// The client here is a simulation. It shows which objects the reconciler writes and when; what the API server makes of
// them is for the end-to-end tests on a real cluster.

// world is a namespace with a reconciler in it.
type world struct {
	*testing.T
	client     client.Client
	reconciler *Reconciler
}

func newWorld(t *testing.T, objects ...client.Object) world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), api.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&api.Website{}, &appsv1.Deployment{}).
		WithObjects(objects...).Build()
	imported := &config.Config{Repositories: map[string][]config.Repository{
		"1.0.0": {{Endpoint: "r/example-solution-1.0.0", Images: []string{"example-solution-server:1.0.0"}}},
		"1.1.0": {{Endpoint: "r/example-solution-1.1.0", Images: []string{"example-solution-server:1.1.0"}}},
	}}
	return world{t, c, &Reconciler{
		Client: c, Version: "1.0.0",
		Config: func() (*config.Config, error) { return imported, nil },
	}}
}

var (
	teaKey  = client.ObjectKey{Namespace: "shop", Name: "tea"}
	objects = client.ObjectKey{Namespace: "shop", Name: "tea-website"}
)

func (w world) reconcile() ctrl.Result {
	w.Helper()
	result, err := w.reconciler.Reconcile(w.Context(), ctrl.Request{NamespacedName: teaKey})
	if err != nil {
		w.Fatal(err)
	}
	return result
}

func (w world) get(key client.ObjectKey, object client.Object) {
	w.Helper()
	if err := w.client.Get(w.Context(), key, object); err != nil {
		w.Fatal(err)
	}
}

// image returns the image of the Deployment of tea.
func (w world) image() string {
	w.Helper()
	var d appsv1.Deployment
	w.get(objects, &d)
	return d.Spec.Template.Spec.Containers[0].Image
}

// ready is the Ready condition of tea as "status reason".
func (w world) ready() string {
	w.Helper()
	var site api.Website
	w.get(teaKey, &site)
	c := meta.FindStatusCondition(site.Status.Conditions, api.Ready)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

// finishRollout does the work of the Deployment controller.
func (w world) finishRollout() {
	w.Helper()
	var d appsv1.Deployment
	w.get(objects, &d)
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, AvailableReplicas: n, ReadyReplicas: n,
	}
	if err := w.client.Status().Update(w.Context(), &d); err != nil {
		w.Fatal(err)
	}
}

func (w world) change(change func(*api.Website)) {
	w.Helper()
	var site api.Website
	w.get(teaKey, &site)
	change(&site)
	if err := w.client.Update(w.Context(), &site); err != nil {
		w.Fatal(err)
	}
}

func TestLifeOfAWebsite(t *testing.T) {
	w := newWorld(t, website(nil))
	w.reconcile()
	if got, want := w.image(), "r/example-solution-1.0.0/example-solution-server:1.0.0"; got != want {
		t.Errorf("image of the operator's own version: got %s, want %s", got, want)
	}
	if got, want := w.ready(), "False Progressing"; got != want {
		t.Errorf("after the first look: got %s, want %s", got, want)
	}
	w.get(objects, &corev1.Service{})

	w.finishRollout()
	w.reconcile()
	if got, want := w.ready(), "True Running"; got != want {
		t.Errorf("after the rollout: got %s, want %s", got, want)
	}

	// Upgrade of one site.
	w.change(func(s *api.Website) { s.Spec.Version = "1.1.0" })
	w.reconcile()
	if got, want := w.image(), "r/example-solution-1.1.0/example-solution-server:1.1.0"; got != want {
		t.Errorf("image of the wanted version: got %s, want %s", got, want)
	}

	// A version that is not imported: running servers continue, and the operator looks again by itself.
	w.change(func(s *api.Website) { s.Spec.Version = "2.0.0" })
	if result := w.reconcile(); result.RequeueAfter != time.Minute {
		t.Errorf("got %v, want a look in a minute", result)
	}
	if got, want := w.ready(), "False VersionNotFound"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := w.image(), "r/example-solution-1.1.0/example-solution-server:1.1.0"; got != want {
		t.Errorf("image while the version is missing: got %s, want %s", got, want)
	}

	// Back to the operator's own version.
	w.change(func(s *api.Website) { s.Spec.Version = "" })
	w.reconcile()
	w.finishRollout()
	w.reconcile()
	var site api.Website
	w.get(teaKey, &site)
	if site.Status.Version != "1.0.0" || site.Status.ReadyReplicas != 2 || len(site.Status.Conditions) != 1 {
		t.Errorf("got %+v", site.Status)
	}
}

func TestDriftIsRepaired(t *testing.T) {
	w := newWorld(t, website(nil))
	w.reconcile()
	var d appsv1.Deployment
	w.get(objects, &d)
	d.Spec.Replicas = new(int32(9))
	d.Annotations = map[string]string{"note": "of somebody else"}
	if err := w.client.Update(t.Context(), &d); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.get(objects, &d)
	if *d.Spec.Replicas != 2 {
		t.Errorf("replicas: got %d, want 2", *d.Spec.Replicas)
	}
	if d.Annotations["note"] == "" {
		t.Error("a field that the operator has no opinion on was removed")
	}
}

// TestNameTaken checks that objects of other owners are not adopted, whichever of the two names it is.
func TestNameTaken(t *testing.T) {
	name := metav1.ObjectMeta{Namespace: "shop", Name: "tea-website"}
	for kind, foreign := range map[string]client.Object{
		"Deployment": &appsv1.Deployment{ObjectMeta: name},
		"Service":    &corev1.Service{ObjectMeta: name},
	} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, website(nil), foreign)
			before := foreign.DeepCopyObject().(client.Object)
			w.get(objects, before)
			w.reconcile()
			if got, want := w.ready(), "False NameAlreadyTaken"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			after := foreign.DeepCopyObject().(client.Object)
			w.get(objects, after)
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the foreign object was changed:\n%s", diff)
			}
			if err := w.client.Delete(t.Context(), foreign); err != nil {
				t.Fatal(err)
			}
			w.reconcile()
			if got, want := w.ready(), "False Progressing"; got != want {
				t.Errorf("after the name became free: got %s, want %s", got, want)
			}
		})
	}
}

func TestDeletedMeanwhile(t *testing.T) {
	w := newWorld(t)
	if result := w.reconcile(); !result.IsZero() {
		t.Errorf("got %v", result)
	}
}

func TestConfigErrorIsRetried(t *testing.T) {
	w := newWorld(t, website(nil))
	broken := errors.New("broken")
	w.reconciler.Config = func() (*config.Config, error) { return nil, broken }
	_, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: teaKey})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

// TestMetricsService is read by the ServiceMonitor and dies with the operator.
func TestMetricsService(t *testing.T) {
	own := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "example-solution-operator", UID: "4-5-6"},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "example-solution-operator"}}},
	}
	m := MetricsService{Namespace: "shop", Name: "example-solution-operator"}
	m.Client = newWorld(t).client
	if err := m.Start(t.Context()); err == nil {
		t.Error("without a deployment: got no error")
	}
	w := newWorld(t, own)
	m.Client = w.client
	for range 2 { // a restart finds it there
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var s corev1.Service
	w.get(client.ObjectKey{Namespace: "shop", Name: "example-solution-operator-metrics"}, &s)
	if diff := cmp.Diff(s.Spec.Selector, own.Spec.Selector.MatchLabels); diff != "" {
		t.Errorf("selector (-got +want):\n%s", diff)
	}
	if !slices.ContainsFunc(s.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == own.UID }) {
		t.Errorf("got owners %v", s.OwnerReferences)
	}
}
