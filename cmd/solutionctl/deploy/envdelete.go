package deploy

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
)

func newEnvDeleteCommand(a *cli.App, use string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use + " ENVIRONMENT",
		Short: "Delete an environment, or one of its namespaces",
		Long: `Delete the namespaces of an environment with everything in them, or only the one that --namespace names. This is refused
while a Solution, a custom resource or a volume claim is there, or anything that is not part of a Solution.

--delete-data removes the former, too: it writes the custom resources to a file that only you can read, deletes them
while their operators still run, then the Solutions, then the namespaces. --delete-others lists the latter and deletes
that, too, without an export. The name of the environment has to be typed, or given with --yes. Roles, quotas and
network policies of the namespaces go with them.

The command lists the finalizers that hold a namespace, and never removes them itself. If the controller that should remove
one is gone for good, run the command again with --force-finalizers: it lists the deleted objects that are held, asks, and
removes exactly the listed finalizers, never those of Kubernetes itself. Resources that the controller would have
cleaned up, for instance outside of the cluster, then remain.`,
		Example: "  solutionctl deploy env delete test",
	}
	e := &environmentDeletion{verbFlags: verbFlags{clusterFlags: addClusterFlags(a, cmd)}, request: deployer.Request{Verb: schema.VerbDelete}}
	e.addWaitFlags(cmd)
	e.addExpect(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&e.request.Namespace, "namespace", "N", "", "only this `NAMESPACE` of the environment")
	flags.BoolVar(&e.data.remove, "delete-data", false, "export and delete custom resources, and remove the Solutions")
	flags.StringVar(&e.data.export, "export", "", "where --delete-data writes custom resources to, a new `FILE` (default NAME-TIME.json)")
	flags.BoolVar(&e.others, "delete-others", false, "list and delete objects outside of Solutions")
	flags.BoolVar(&e.finalizers, "force-finalizers", false, "list and remove the finalizers of what was deleted and does not go away")
	e.addRun(cmd, "only show what would be deleted", "wait until the namespaces are gone")
	takesArguments(cmd, e.run, e.completeEnvironments, environmentArgument)
	cli.Must(cmd.RegisterFlagCompletionFunc("namespace", e.completeNamespaces))
	return cmd
}

// environmentDeletion is a run of 'deploy env delete'.
type environmentDeletion struct {
	verbFlags
	request            deployer.Request
	data               dataFlags
	others, finalizers bool // are listed and go, too
}

func (e *environmentDeletion) run(ctx context.Context, args []string) error {
	d, err := e.deployer()
	if err != nil {
		return err
	}
	r := e.request
	r.Options, r.Environment = e.options(), args[0]
	r.Data, r.Losses.Export = e.data.policy(e.App, r.Environment)
	if e.finalizers {
		if r.Release, err = d.Held(ctx, environments.HeldOptions{Environment: r.Environment, Namespace: r.Namespace}); err != nil {
			return err
		}
	}
	if e.others {
		if r.Others, err = d.Survey.Others(ctx, survey.OthersOptions{Environment: r.Environment, Namespace: r.Namespace}); err != nil {
			return err
		}
	}
	question := r.Confirmation()
	asks := question.Question != "" && e.Interactive && !e.Yes
	switch {
	case question.Name != "" && (!e.Yes || len(question.Lists) > 0): // what is refused is not asked about
		plan := r
		plan.DryRun = true
		planned, failure := d.Perform(ctx, plan)
		if failure != nil {
			return failure
		}
		if asks {
			e.printSentence(planned)
		}
	case asks:
		e.printConsequencesOf(ctx, r)
	}
	if err = e.Confirm(ctx, question); err != nil {
		return err
	}
	return runVerb(ctx, &e.verbFlags, (*deployer.Deployer).Perform, r)
}
