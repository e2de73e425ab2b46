package deployer

import (
	"context"

	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Request is a verb with the options of its user. The command line fills it from flags, the web console from a form, and [Deployer.Resume]
// from the options that an interrupted run saved. A verb ignores the options that it does not have.
type Request struct {
	Verb string // such as [schema.VerbAdd]
	plan.Options
	Environment, Solution string
	// Namespace is one of the environment's; "" stands for all of them.
	Namespace  string
	Version    string             // as in the options of the verb
	Revision   int64              // of the history; 0 stands for the one before
	Components []string           // that are repaired; nil stands for all
	Rendering  plan.Rendering     // of what is deployed
	Losses     definitions.Losses // its Export is that of Data, too
	Data       plan.DataPolicy
	// With are other Solutions of the environment that change in the same run.
	With []schema.SolutionAt
	// ProtectCRDs is as in [ActivateOptions].
	ProtectCRDs *bool
	// RollBack and WaitApps are as in [ChangeOptions].
	RollBack, WaitApps bool
	// Leaves and Going are as in [DeactivateOptions], and Going is as in [RemoveOptions].
	Leaves string
	Going  []string
	// Others and Release are as in [environments.DeleteOptions].
	Others  []schema.ObjectRef
	Release []environments.Held

	begun bool // as in [DeactivateOptions]; an activation leaves the word "latest" in the list of active versions
}

// Perform carries out the verb of a request.
func (d *Deployer) Perform(ctx context.Context, r Request) (*schema.Operation, error) {
	switch r.Verb {
	case schema.VerbActivate:
		return d.Activate(ctx, ActivateOptions{
			Options: r.Options, Losses: r.Losses, Solution: r.Solution, Version: r.Version, ProtectCRDs: r.ProtectCRDs,
			ClusterWide: r.Rendering.ClusterWide, AcceptHazards: r.Rendering.AcceptHazards, Parts: r.Rendering.Parts, keepLatest: r.begun,
		})
	case schema.VerbDeactivate:
		return d.Deactivate(ctx, DeactivateOptions{
			Options: r.Options, Solution: r.Solution, Data: r.Data, Export: r.Losses.Export, Leaves: r.Leaves, Going: r.Going, begun: r.begun,
		})
	case schema.VerbAdd:
		return d.Add(ctx, AddOptions{
			Options: r.Options, Environment: r.Environment, Solution: r.Solution, Version: r.Version, Namespace: r.Namespace, Rendering: r.Rendering,
		})
	case schema.VerbUpgrade, schema.VerbDowngrade:
		return d.Change(ctx, ChangeOptions{
			Options: r.Options, Losses: r.Losses, Environment: r.Environment, Solution: r.Solution, Direction: records.Direction(r.Verb), Version: r.Version,
			Namespace: r.Namespace, Rendering: r.Rendering, With: r.With, RollBack: r.RollBack, WaitApps: r.WaitApps,
		})
	case schema.VerbRollback:
		return d.Rollback(ctx, RollbackOptions{
			Options: r.Options, Losses: r.Losses, Environment: r.Environment, Solution: r.Solution, Namespace: r.Namespace, Revision: r.Revision,
		})
	case schema.VerbRepair:
		selected := survey.Selection{Environment: r.Environment, Solution: r.Solution, Components: r.Components}
		return d.Repair(ctx, RepairOptions{Options: r.Options, Selection: selected})
	case schema.VerbRemove:
		return d.Remove(ctx, RemoveOptions{
			Options: r.Options, Environment: r.Environment, Solution: r.Solution, Namespace: r.Namespace, Data: r.Data, Export: r.Losses.Export, Going: r.Going,
		})
	case schema.VerbDelete:
		return d.DeleteEnvironment(ctx, r.deletion())
	default:
		return nil, report.Errorf(report.Refused, "this version of solutionctl does not know the operation %q", r.Verb).
			WithHint("resume it with the version that began it, which '%s' names", report.Run("deploy history").With("output", "json"))
	}
}

func (r *Request) deletion() environments.DeleteOptions {
	return environments.DeleteOptions{
		Options: r.Options, Environment: r.Environment, Namespace: r.Namespace, Data: r.Data, Export: r.Losses.Export, Others: r.Others, Release: r.Release,
	}
}

// Confirmation returns the question to ask before data of users is deleted; an empty one where the request deletes none.
func (r *Request) Confirmation() report.Confirmation {
	switch {
	case r.Verb == schema.VerbDelete:
		return r.deletion().Confirmation()
	case r.DryRun || r.Data != plan.DeleteData:
		return report.Confirmation{}
	default:
		return report.Confirmation{Question: "Every custom resource of it will be deleted", Name: r.Solution}
	}
}
