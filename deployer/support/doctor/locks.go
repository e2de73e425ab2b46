package doctor

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// refusedLocks finds out whether something in the cluster refuses locks, as then no command works that changes anything.
func (x *examination) refusedLocks() {
	if err := x.Deployer.Cluster.CheckLocks(x.ctx); err != nil {
		x.refusedWrite("records", "locks", "locks, and with them every command that changes something", err)
	}
}

// refusedWrites checks whether something in the cluster refuses writes of locks, records and configuration. A webhook
// can have a Service with ready pods, or none at all, and still not answer: only a request shows that.
func (x *examination) refusedWrites() {
	seen := map[string]bool{}
	for _, namespace := range append([]string{cluster.SystemNamespace}, x.namespaces()...) {
		err := x.Deployer.Cluster.CheckWrite(x.ctx, cluster.ConfigMapKind, namespace)
		name := cluster.Interceptor(err)
		if name == "" || seen[name] || len(seen) == maxProblems {
			continue // that the API server refuses it for another reason shows in the rows about that
		}
		seen[name] = true
		x.refusedWrite("cluster", "webhooks", "ConfigMaps in namespace "+namespace+", and with them commands that record or deploy something", err)
	}
}

// refusedWrite reports a write that was refused, by which webhook or policy, and the remedy.
func (x *examination) refusedWrite(area, row, what string, refused error) {
	name := cluster.Interceptor(refused)
	if name == "" {
		x.failed(area, row, refused)
		return
	}
	if report.CodeOf(refused) == report.Refused { // for a reason in the words of its program, which can quote anything
		refused = report.Errorf(report.Refused, "%s refuses it", name)
	}
	object, err := x.interceptor(name)
	if err != nil || object == nil {
		x.failed(area, row, fmt.Errorf("%s: %w", what, refused))
		return
	}
	hint := fmt.Sprintf("if it is not needed: kubectl delete %s %s", strings.ToLower(object.GetKind()), object.GetName())
	if solution, err := x.Deployer.Definitions.InterceptorOwner(x.ctx, object); err == nil && solution != "" {
		hint = fmt.Sprintf("remove the webhooks of Solution %s, which works without a lock: %s", solution, report.Run("deploy deactivate", solution).With("force-webhooks"))
	}
	x.record(schema.Check{
		Area: area, Name: row, Object: object.GetKind() + " " + object.GetName() + " " + name, Result: schema.CheckProblem, Hint: hint,
		Message: fmt.Sprintf("%s %s refuses %s: %v", object.GetKind(), object.GetName(), what, refused),
	})
}

// interceptor is the object that makes the API server ask an admission webhook, or apply an admission policy; nil where there is none.
func (x *examination) interceptor(name string) (*unstructured.Unstructured, error) {
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding"} {
		gvk := kube.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind}
		for object, err := range x.Deployer.Cluster.List(x.ctx, gvk, "", metav1.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			if policy, _, _ := unstructured.NestedString(object.Object, "spec", "policyName"); policy == name {
				return object, nil
			}
			webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
			for _, webhook := range webhooks {
				if of, ok := webhook.(map[string]any); ok && of["name"] == name {
					return object, nil
				}
			}
		}
	}
	return nil, nil
}
