// Package controller runs Websites: for each it keeps a Deployment and a Service as its spec asks, and reports the
// result in its status.
//
// Start reading at [Reconciler.Reconcile]. The rest decides and does not act: desired.go lists what should exist,
// status.go what to report to the user. Objects are written by server-side apply, so the operator owns exactly the fields it
// names, repairs them when another user changes them, and needs neither update nor delete rights: the garbage collector
// removes what a deleted Website owned.
package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solutionctl/example-solution/api"
	"github.com/solutionctl/example-solution/operator/config"
)

// FieldOwner is the name under which the operator applies objects. It must never change: an operator with another name
// could not take back the fields that this one set.
const FieldOwner = "example-solution-operator"

// serverImage is the name of the image that serves Websites, as solution.yaml lists it.
const serverImage = "example-solution-server"

// retryStalled is how long to wait before looking again at what only others can mend: an import, a name that is taken.
const retryStalled = time.Minute

// Reconciler runs the Websites of one namespace.
type Reconciler struct {
	Client  client.Client
	Version string                         // the operator's own: what a Website without a version runs
	Config  func() (*config.Config, error) // called at each reconciliation: versions come and go while the operator runs
}

// SetupWithManager makes the manager call Reconcile when a Website, or an object that belongs to one, changes.
func (r *Reconciler) SetupWithManager(m ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(m).
		For(&api.Website{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{})
	if api.HasBanners {
		b.Owns(&corev1.ConfigMap{}).Watches(&api.Banner{}, r.ofBanner())
	}
	return b.Complete(r)
}

// Reconcile brings one Website closer to its spec. It can be called at any time, any number of times.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var site api.Website
	if err := r.Client.Get(ctx, request.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !site.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	live := &appsv1.Deployment{}
	o, err := r.run(ctx, &site, live)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.writeStatus(ctx, &site, status(&site, live, o)); err != nil {
		return ctrl.Result{}, err
	}
	if o.reason == api.VersionNotFound || o.reason == api.NameAlreadyTaken {
		return ctrl.Result{RequeueAfter: retryStalled}, nil
	}
	return ctrl.Result{}, nil
}

// run applies the objects of a Website, reads its Deployment into live and judges it. An error in run never stops running servers.
func (r *Reconciler) run(ctx context.Context, site *api.Website, live *appsv1.Deployment) (outcome, error) {
	type needed struct {
		kind   string
		object client.Object
	}
	names := []needed{{"Deployment", live}, {"Service", &corev1.Service{}}}
	if api.HasBanners {
		names = append(names, needed{"ConfigMap", &corev1.ConfigMap{}})
	}
	for _, name := range names {
		taken, err := r.taken(ctx, site, name.object)
		if taken || err != nil {
			message := name.kind + " " + objectName(site) + " exists and does not belong to this website"
			return outcome{reason: api.NameAlreadyTaken, message: message}, err
		}
	}
	version := site.Spec.Version
	if version == "" {
		version = r.Version
	}
	image, err := r.image(version)
	if errors.Is(err, config.ErrNotFound) {
		return outcome{reason: api.VersionNotFound, message: err.Error()}, nil
	} else if err != nil {
		return outcome{}, err
	}
	banners, err := r.banners(ctx, site.Namespace)
	if err != nil {
		return outcome{}, err
	}
	// In this order: servers find their content when they start, and their Service before they are ready.
	applied := deployment(site, version, image, banners)
	objects := []runtime.ApplyConfiguration{service(site), applied}
	if api.HasBanners {
		objects = slices.Insert(objects, 0, runtime.ApplyConfiguration(content(site, banners)))
	}
	for _, object := range objects {
		if err := r.apply(ctx, object); err != nil {
			return outcome{}, err
		}
	}
	return judge(live.Status, ptr.Deref(applied.Generation, 0), replicas(site), version), nil
}

func (r *Reconciler) image(version string) (string, error) {
	c, err := r.Config()
	if err != nil {
		return "", err
	}
	return c.Image(version, serverImage)
}

// taken reads the object that has the name a Website needs, if there is one, and reports whether it belongs to another owner: to apply
// over it would take it away from that owner. Then the object is left empty except for its name.
func (r *Reconciler) taken(ctx context.Context, site *api.Website, object client.Object) (bool, error) {
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: site.Namespace, Name: objectName(site)}, object)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return !metav1.IsControlledBy(object, site), nil
}

func (r *Reconciler) apply(ctx context.Context, object runtime.ApplyConfiguration) error {
	return r.Client.Apply(ctx, object, client.FieldOwner(FieldOwner), client.ForceOwnership)
}

func (r *Reconciler) writeStatus(ctx context.Context, site *api.Website, s api.WebsiteStatus) error {
	if equality.Semantic.DeepEqual(site.Status, s) {
		return nil
	}
	before := site.DeepCopy()
	site.Status = s
	// A Website that was deleted meanwhile needs no status.
	return client.IgnoreNotFound(r.Client.Status().Patch(ctx, site, client.MergeFrom(before)))
}
