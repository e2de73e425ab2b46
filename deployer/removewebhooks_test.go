package deployer_test

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema/report"
)

// guarded is a Solution with a webhook that is asked about Leases.
func guarded() deployertest.Content {
	return deployertest.Content{Files: map[string]string{"operator/cluster/webhook.yaml": `apiVersion: v1
kind: Service
metadata: {name: guard}
spec: {selector: {app: guard}, ports: [{port: 443}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: guard}
webhooks:
  - name: guard.example.com
    clientConfig: {service: {name: guard, namespace: any, path: /}}
    rules: [{apiGroups: [coordination.k8s.io], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [leases]}]
    failurePolicy: Fail
    sideEffects: None
    admissionReviewVersions: [v1]
`}}
}

// refuseLocks makes the API server refuse Leases as long as the webhook is there, as the real one does.
func refuseLocks(b *deployertest.Bed) {
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "/leases") || b.Server.Object("ValidatingWebhookConfiguration", "", "guard") == nil {
			return false
		}
		clustertest.Fail(w, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
			Message: `Internal error occurred: failed calling webhook "guard.example.com": no endpoints available for service "guard"`,
		}})
		return true
	}
}

// TestRemoveWebhooks: a webhook that refuses locks goes without one, and nothing else goes with it.
func TestRemoveWebhooks(t *testing.T) {
	b := deployertest.New(t)
	b.Imported(shop, "1.0.0", guarded())
	approved := true
	activate := deployer.ActivateOptions{Solution: shop, Version: "1.0.0", ClusterWide: &approved}
	if _, err := b.Activate(t.Context(), activate); err != nil {
		t.Fatal(err)
	}
	refuseLocks(b)
	_, err := add("1.0.0")(t.Context(), b.Deployer, plan.Options{})
	deployertest.Refused(t, err, report.Unavailable, "guard.example.com", "deploy doctor")

	o := deployer.RemoveWebhooksOptions{Solution: shop, DryRun: true}
	planned, err := b.RemoveWebhooks(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	deployertest.Valid(t, "operation", planned)
	if got := strings.Join(changes(planned), ", "); got != "delete ValidatingWebhookConfiguration guard" || b.Server.Object("ValidatingWebhookConfiguration", "", "guard") == nil {
		t.Errorf("planned: %s", got)
	}
	o.DryRun = false
	if _, err = b.RemoveWebhooks(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if b.Server.Object("ValidatingWebhookConfiguration", "", "guard") != nil || b.Server.Object("Service", "shop-system", "guard") == nil {
		t.Error("the webhook is there yet, or its Service is gone")
	}
	must(b, add("1.0.0"))
	again, err := b.RemoveWebhooks(t.Context(), o)
	if err != nil || !again.Empty() || !strings.Contains(strings.Join(again.Notices, "\n"), "has no webhook configuration") {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// TestRemoveWebhooksOfOthers: what has the name of a webhook on record, and is another object, stays.
func TestRemoveWebhooksOfOthers(t *testing.T) {
	b := deployertest.New(t)
	b.Imported(shop, "1.0.0", guarded())
	approved := true
	if _, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: shop, Version: "1.0.0", ClusterWide: &approved}); err != nil {
		t.Fatal(err)
	}
	b.Deleted("ValidatingWebhookConfiguration", "", "guard")
	b.Server.Put(t, "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: guard}, webhooks: []}")
	done, err := b.RemoveWebhooks(t.Context(), deployer.RemoveWebhooksOptions{Solution: shop})
	if err != nil || !done.Empty() || b.Server.Object("ValidatingWebhookConfiguration", "", "guard") == nil {
		t.Errorf("%+v, %v", done, err)
	}
	_, err = b.RemoveWebhooks(t.Context(), deployer.RemoveWebhooksOptions{Solution: "nobody"})
	deployertest.Refused(t, err, report.NotFound)
}
