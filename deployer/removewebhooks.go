package deployer

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// RemoveWebhooksOptions say whose webhooks to remove.
type RemoveWebhooksOptions struct {
	DryRun   bool
	Solution string
}

// Confirmation is what to ask before webhooks are removed.
func (o RemoveWebhooksOptions) Confirmation() report.Confirmation {
	if o.DryRun {
		return report.Confirmation{}
	}
	return report.Confirmation{Question: "remove every webhook configuration of Solution " + o.Solution + " from the cluster"}
}

// RemoveWebhooks deletes the webhook configurations, and the bindings of admission policies, that the record of a Solution lists, and
// nothing else. It is the way out of a cluster in which such a webhook refuses what everything else begins with: it takes no lock and
// asks for no rights before, as a webhook can refuse Leases and access reviews, too. No webhook is asked about webhook configurations.
//
// The Solution stays active, and activating it again brings them back.
func (d *Deployer) RemoveWebhooks(ctx context.Context, o RemoveWebhooksOptions) (*schema.Operation, error) {
	run := d.begin(schema.Operation{Operation: schema.VerbRemoveWebhooks, Solution: o.Solution, Planned: o.DryRun}, plan.Options{})
	found, err := d.recordedInterceptors(ctx, o.Solution)
	if err != nil {
		return nil, err
	}
	for _, object := range found {
		run.Changes = append(run.Changes, schema.Change{Action: schema.ActionDelete, Object: records.RefOf(object.GroupVersionKind(), object)})
		if o.DryRun {
			continue
		}
		object.SetResourceVersion("") // whatever was changed of it
		if err := d.Cluster.Delete(ctx, object, cluster.DeleteOptions{}); err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		run.Notice("the cluster has no webhook configuration that the record of Solution " + o.Solution + " lists")
		return run.Report(), nil
	}
	run.Notice("Solution " + o.Solution + " is still active, and activating or repairing it brings the webhooks back; to remove the rest: " +
		report.Run("deploy deactivate", o.Solution).String())
	return run.Report(), nil
}

// recordedInterceptors are the objects on the record of a Solution by which the API server asks it about requests, as far as they are
// still the same objects.
func (d *Deployer) recordedInterceptors(ctx context.Context, solution string) ([]*unstructured.Unstructured, error) {
	own, err := d.Records.Engine.State(ctx, engine.Key{Name: solution})
	if err != nil {
		return nil, err
	}
	if plan.LastRevision(own) == nil {
		return nil, records.NotDeployed(solution)
	}
	parts, err := d.planner().ComponentStates(ctx, own)
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	for _, state := range append([]*engine.State{own}, parts...) {
		for _, revision := range state.Recent() {
			for _, object := range revision.Objects {
				if !intercepts(object.ObjectRef) || object.Name == definitions.ProtectionName(own.Key) || slices.ContainsFunc(found, func(o *unstructured.Unstructured) bool {
					return records.RefOf(o.GroupVersionKind(), o) == object.ObjectRef
				}) {
					continue
				}
				live, err := d.Cluster.Get(ctx, kube.FromAPIVersionAndKind(object.APIVersion, object.Kind), "", object.Name)
				if err != nil {
					return nil, err
				}
				if live != nil && isRecorded(state, object, live) {
					found = append(found, live)
				}
			}
		}
	}
	return found, nil
}

// intercepts tells of which objects the API server asks about requests. It asks about none of these themselves.
func intercepts(o schema.ObjectRef) bool {
	gvk := kube.FromAPIVersionAndKind(o.APIVersion, o.Kind)
	return gvk.Group == "admissionregistration.k8s.io" && slices.Contains([]string{
		"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding",
	}, gvk.Kind)
}

// isRecorded reports whether an object is the one on a record. A run that was stopped before it had the UID on record has left its label.
func isRecorded(state *engine.State, known schema.DeployedObject, live *unstructured.Unstructured) bool {
	if known.UID != "" {
		return known.UID == string(live.GetUID())
	}
	return live.GetLabels()[schema.LabelRelease] == state.ID()
}

// WebhookOwner returns the Solution whose record lists an object by which the API server asks about requests; "" where none does.
func (d *Deployer) WebhookOwner(ctx context.Context, object *unstructured.Unstructured) (solution string, err error) {
	states, err := d.Records.Engine.StatesIn(ctx, "")
	if err != nil {
		return "", err
	}
	ref := records.RefOf(object.GroupVersionKind(), object)
	for _, state := range states {
		for _, revision := range state.Recent() {
			for _, known := range revision.Objects {
				if known.ObjectRef == ref && isRecorded(state, known, object) {
					return state.Name, nil
				}
			}
		}
	}
	return "", nil
}
