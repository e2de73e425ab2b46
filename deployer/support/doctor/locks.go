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
	err := x.Deployer.Cluster.CheckLocks(x.ctx)
	if err == nil {
		return
	}
	name := cluster.Interceptor(err)
	if name == "" {
		x.failed("records", "locks", err)
		return
	}
	object, err2 := x.interceptor(name)
	if err2 != nil || object == nil {
		x.failed("records", "locks", err)
		return
	}
	message := fmt.Sprintf("%s %s refuses locks, and with them every command that changes something: %v", object.GetKind(), object.GetName(), err)
	solution, err := x.Deployer.WebhookOwner(x.ctx, object)
	hint := fmt.Sprintf("if nobody needs it: kubectl delete %s %s", strings.ToLower(object.GetKind()), object.GetName())
	if err == nil && solution != "" {
		hint = fmt.Sprintf("remove the webhooks of Solution %s, which works without a lock: %s", solution, report.Run("deploy deactivate", solution).With("force-webhooks"))
	}
	x.add(schema.CheckProblem, "records", "locks", message, hint)
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
