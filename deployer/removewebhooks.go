package deployer

import (
	"context"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// RemoveWebhooksOptions select a Solution.
type RemoveWebhooksOptions struct {
	DryRun   bool
	Solution string
}

// Confirmation returns the question to ask before webhooks are removed.
func (o RemoveWebhooksOptions) Confirmation() report.Confirmation {
	if o.DryRun {
		return report.Confirmation{}
	}
	return report.Confirmation{Question: "remove every webhook configuration of Solution " + o.Solution + " from the cluster"}
}

// RemoveWebhooks deletes the recorded webhook configurations and bindings of admission policies of a Solution. It rescues a cluster in which such a
// webhook refuses Leases or access reviews, so it takes no lock and asks for no rights first. The API server calls no webhook about webhook
// configurations. The Solution stays active, and activating it again restores them.
func (d *Deployer) RemoveWebhooks(ctx context.Context, o RemoveWebhooksOptions) (*schema.Operation, error) {
	run := d.begin(schema.Operation{Operation: schema.VerbRemoveWebhooks, Solution: o.Solution, Planned: o.DryRun}, plan.Options{})
	found, err := d.Definitions.Interceptors(ctx, o.Solution)
	if err != nil {
		return nil, err
	}
	for _, object := range found {
		run.Changes = append(run.Changes, schema.Change{Action: schema.ActionDelete, Object: records.RefOf(object.GroupVersionKind(), object)})
		if o.DryRun {
			continue
		}
		object.SetResourceVersion("") // in any state
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
