package engine_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	newPod   = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {serviceAccountName: web, priorityClassName: high, restartPolicy: Never, containers: [{name: a, image: a}]}}"
	newClass = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 10}"
)

// admitsPods lets the server refuse Pods without their ServiceAccount and PriorityClass as Kubernetes does. Those that it accepts succeed.
func (w *fixture) admitsPods() {
	w.server.Answer = func(rw http.ResponseWriter, r *http.Request) bool {
		if pod := w.server.Object("Pod", "shop", "a"); pod != nil && pod.Object["status"] == nil {
			w.edit("Pod", "a", map[string]any{"phase": "Succeeded"}, "status")
		}
		if r.Method != http.MethodPost && r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/shop/pods") {
			return false
		}
		var reason string
		switch {
		case w.server.Object("ServiceAccount", "shop", "web") == nil:
			reason = `error looking up service account shop/web: serviceaccount "web" not found`
		case w.server.Object("PriorityClass", "", "high") == nil:
			reason = "no PriorityClass with name high was found"
		default:
			return false
		}
		clustertest.Fail(rw, apierrors.NewForbidden(kube.GroupResource{Resource: "pods"}, "a", errors.New(reason)))
		return true
	}
}

// TestPodsOfNewAccounts checks that a Pod can be planned before the release has created its ServiceAccount and its PriorityClass, and that
// those that the release does not have are reported.
func TestPodsOfNewAccounts(t *testing.T) {
	for _, hook := range []bool{false, true} {
		w := newFixture(t)
		w.admitsPods()
		release := func(version string, documents ...string) engine.Release {
			if !hook {
				return w.release(version, append(documents, newPod)...)
			}
			r := w.release(version, documents...)
			w.add(&r, schema.MomentApplied, newPod)
			return r
		}
		_, err := w.Plan(t.Context(), release("1.0.0", newClass), engine.PlanOptions{})
		w.failed(err, report.Refused, "error looking up service account shop/web")
		_, err = w.Plan(t.Context(), release("1.0.0", newClass, strings.Replace(account, "web", "other", 1)), engine.PlanOptions{})
		w.failed(err, report.Refused, "error looking up service account shop/web")
		w.same("plan", actions(w.deploy(release("1.0.0", newClass, account), engine.PlanOptions{})), []string{"create ServiceAccount web", "create PriorityClass high", "create Pod a"})
		w.remove(cluster.ServiceAccountKind, "web")
		if !hook {
			w.remove(kube.GroupVersionKind{Version: "v1", Kind: "Pod"}, "a")
		}
		w.deploy(release("1.0.0", newClass, account), engine.PlanOptions{Restore: !hook})
		for _, kind := range []string{"ServiceAccount", "Pod"} {
			if len(w.server.Names(kind)) != 1 {
				t.Errorf("there is no %s", kind)
			}
		}
	}
}
