package controller

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/solutionctl/example-solution/api"
)

// TestOrder checks that content is written before the servers that read it start again, and that a server continues until its successor
// answers. When a part cannot be written, those after it stay as they are.
func TestOrder(t *testing.T) {
	order := []string{"ConfigMap", "Service", "Deployment"}
	if !api.HasBanners {
		order = order[1:]
	}
	for _, test := range []struct {
		broken string
		want   []string
	}{
		{"", order},
		{"Service", order[:len(order)-1]},
	} {
		t.Run("broken: "+test.broken, func(t *testing.T) {
			w := newWorld(t, website(nil))
			var applied []string
			base, ok := w.client.(client.WithWatch)
			if !ok {
				t.Fatal("the simulated client cannot be intercepted")
			}
			w.reconciler.Client = interceptor.NewClient(base, interceptor.Funcs{
				Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, o ...client.ApplyOption) error {
					kind := "Deployment"
					switch object.(type) {
					case *coreac.ConfigMapApplyConfiguration:
						kind = "ConfigMap"
					case *coreac.ServiceApplyConfiguration:
						kind = "Service"
					}
					applied = append(applied, kind)
					if kind == test.broken {
						return errors.New("refused")
					}
					return c.Apply(ctx, object, o...)
				},
			})
			_, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: teaKey})
			if (err != nil) != (test.broken != "") {
				t.Error(err)
			}
			if diff := cmp.Diff(applied, test.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
			if test.broken != "" {
				return
			}
			var d appsv1.Deployment
			w.get(objects, &d)
			if n := d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue(); n != 0 || d.Spec.Template.Spec.Containers[0].ReadinessProbe == nil {
				t.Errorf("%d servers may be missing, or nobody asks whether one answers", n)
			}
		})
	}
}
