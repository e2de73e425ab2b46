package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solutionctl/example-solution/api"
)

func banner(namespace, name, text string) *api.Banner {
	b := &api.Banner{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	b.Spec.Text = text
	return b
}

// TestBannersAreShown: servers start again when the banners of their namespace change, and at no other time.
func TestBannersAreShown(t *testing.T) {
	if !api.HasBanners {
		t.Skip("a release without banners")
	}
	w := newWorld(t, website(nil), banner("shop", "b", "open tomorrow"), banner("shop", "a", "closed today"), banner("bar", "c", "no"))
	w.reconcile()
	if diff := cmp.Diff(w.content(), "closed today\nopen tomorrow\n"); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	digest := w.digest()
	w.reconcile()
	if w.digest() != digest {
		t.Error("started again without a reason")
	}
	for _, name := range []string{"a", "b"} {
		if err := w.client.Delete(t.Context(), banner("shop", name, "")); err != nil {
			t.Fatal(err)
		}
	}
	w.reconcile()
	if w.digest() == digest || w.content() != "" {
		t.Errorf("without banners: got %q", w.content())
	}
}

// TestNoBanners: a release without them writes no ConfigMap, which its role would not allow.
func TestNoBanners(t *testing.T) {
	if api.HasBanners {
		t.Skip("a release with banners")
	}
	w := newWorld(t, website(nil))
	w.reconcile()
	if err := w.client.Get(t.Context(), objects, &corev1.ConfigMap{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("got %v, want none", err)
	}
	if w.digest() != "" {
		t.Error("the servers have an annotation")
	}
}

// content returns the file that the servers of tea read.
func (w world) content() string {
	w.Helper()
	var c corev1.ConfigMap
	w.get(objects, &c)
	return c.Data[bannersFile]
}

// digest returns the digest of the banners in the Deployment of tea.
func (w world) digest() string {
	w.Helper()
	var d appsv1.Deployment
	w.get(objects, &d)
	return d.Spec.Template.Annotations[annotationBanners]
}
