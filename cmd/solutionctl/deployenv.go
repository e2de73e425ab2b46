package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
)

func newEnvCommand(a *app) *cobra.Command {
	group := newGroup("env", "Create, show and delete environments",
		newEnvCreateCommand(a, "create"), newEnvListCommand(a), newEnvShowCommand(a), newEnvDeleteCommand(a, "delete"))
	group.Aliases = []string{"environment"}
	group.Long = `Create, show and delete environments: namespaces under one name, in which Solutions are deployed side by side without
getting in each other's way. MetalK8s' tools know the same environments.`
	return group
}

// asInSolutionsSh hides a command that MetalK8s' solutions.sh has under another name.
func asInSolutionsSh(cmd *cobra.Command) *cobra.Command {
	cmd.Hidden = true
	return cmd
}

func newEnvCreateCommand(a *app, use string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use + " ENVIRONMENT",
		Short: "Create an environment, or add a namespace to one",
		Long: `Create an environment with one namespace, or add another namespace to an environment. Where it is there already, nothing
is done. A namespace that exists and is not part of the environment is only taken with --adopt.

The name of the environment is that of the namespace, unless --namespace names another one.`,
		Example: `  solutionctl deploy env create test --description "For acceptance tests"
  solutionctl deploy env create test --namespace test-eu`,
	}
	c := &environmentCreation{clusterFlags: a.addClusterFlags(cmd), flags: cmd.Flags()}
	c.addWaitFlags(cmd)
	c.flags.StringVarP(&c.o.Namespace, "namespace", "N", "", "the `NAMESPACE` to create (default the name of the environment)")
	c.flags.StringVarP(&c.description, "description", "d", "", "what the environment is for, a `TEXT`")
	c.flags.BoolVar(&c.o.Adopt, "adopt", false, "take a namespace that exists already")
	takesArguments(cmd, c.run, environmentArgument)
	cmd.ValidArgsFunction = c.completeEnvironments
	return cmd
}

// environmentCreation is a run of 'deploy env create'.
type environmentCreation struct {
	*clusterFlags
	flags       *pflag.FlagSet
	o           metalk8s.CreateOptions
	description string
}

func (c *environmentCreation) run(ctx context.Context, args []string) error {
	c.o.Name, c.o.Description = args[0], given(c.flags, "description", &c.description)
	d, err := c.deployer()
	if err != nil {
		return err
	}
	done, err := d.CreateEnvironment(ctx, c.o)
	return emit(c.app, done, err, func(w *console.Stream, done *schema.Operation) error {
		_, err := fmt.Fprintln(w, done.Title())
		return err
	})
}

func newEnvDeleteCommand(a *app, use string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use + " ENVIRONMENT",
		Short: "Delete an environment, or one of its namespaces",
		Long: `Delete the namespaces of an environment with everything in them, or only the one that --namespace names. This is refused
while a Solution, a custom resource or a volume claim is there, or anything that is not part of a Solution.

--delete-data removes the former, too: it writes the custom resources to a file that only you can read, deletes them
while their operators still run, then the Solutions, then the namespaces. --delete-others lists the latter and deletes
that, too, without an export. The name of the environment has to be typed, or given with --yes. Roles, quotas and
network policies of the namespaces go with them.

What holds a namespace is told, and never forced. When whoever should remove a finalizer will not come back, run the
command again with --force-finalizers: it lists the objects that were deleted and are held, asks, and removes exactly the
finalizers that it has listed, never those of Kubernetes itself. What they stood for, outside of the cluster for
instance, is then not cleaned up.`,
		Example: "  solutionctl deploy env delete test",
	}
	e := &environmentDeletion{verbFlags: verbFlags{clusterFlags: a.addClusterFlags(cmd)}}
	e.addWaitFlags(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&e.o.Namespace, "namespace", "N", "", "only this `NAMESPACE` of the environment")
	flags.BoolVar(&e.data.remove, "delete-data", false, "export and delete custom resources, and remove the Solutions")
	flags.StringVar(&e.data.export, "export", "", "where --delete-data writes custom resources to, a new `FILE` (default NAME-TIME.json)")
	flags.BoolVar(&e.others, "delete-others", false, "list and delete what is not part of a Solution")
	flags.BoolVar(&e.finalizers, "force-finalizers", false, "list and remove the finalizers of what was deleted and does not go away")
	e.addRun(cmd, "only say what would be deleted", "wait until the namespaces are gone")
	takesArguments(cmd, e.run, environmentArgument)
	cmd.ValidArgsFunction = e.completeEnvironments
	if err := cmd.RegisterFlagCompletionFunc("namespace", e.completeNamespaces); err != nil {
		panic(err) // the flag was added above
	}
	return cmd
}

// environmentDeletion is a run of 'deploy env delete'.
type environmentDeletion struct {
	verbFlags
	o                  deployer.DeleteEnvironmentOptions
	data               dataFlags
	others, finalizers bool // are listed and go, too
}

func (e *environmentDeletion) run(ctx context.Context, args []string) error {
	environment := args[0]
	e.o.Options, e.o.Environment = e.options(), environment
	e.o.Data, e.o.Export = e.data.policy(e.app, environment)
	d, err := e.deployer()
	if err != nil {
		return err
	}
	if e.finalizers {
		if e.o.Release, err = d.Held(ctx, deployer.HeldOptions{Environment: environment, Namespace: e.o.Namespace}); err != nil {
			return err
		}
	}
	if e.others {
		if e.o.Others, err = d.Survey.Others(ctx, survey.OthersOptions{Environment: environment, Namespace: e.o.Namespace}); err != nil {
			return err
		}
	}
	question := e.o.Confirmation()
	if question.Name != "" && (!e.yes || len(question.Lists) > 0) { // what is refused is not asked about
		plan := e.o
		plan.DryRun = true
		if _, err = d.DeleteEnvironment(ctx, plan); err != nil {
			return err
		}
	}
	if err = e.confirm(ctx, question); err != nil {
		return err
	}
	return runVerb(ctx, &e.verbFlags, (*deployer.Deployer).DeleteEnvironment, e.o)
}

func newEnvListCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the environments and which Solutions they ask for",
		Example: "  solutionctl deploy env list",
		Args:    exactArgs(),
	}
	f := a.addClusterFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.listEnvironments(cmd.Context()) }
	return cmd
}

func (f *clusterFlags) listEnvironments(ctx context.Context) error {
	c, err := f.connect()
	if err != nil {
		return err
	}
	environments, err := (&metalk8s.Documents{Cluster: c}).Environments(ctx)
	list := &schema.EnvironmentList{Environments: []schema.EnvironmentEntry{}}
	for _, e := range environments {
		list.Environments = append(list.Environments, environmentEntry(e))
	}
	return emit(f.app, list, err, printEnvironments)
}

func environmentEntry(e metalk8s.Environment) schema.EnvironmentEntry {
	entry := schema.EnvironmentEntry{Name: e.Name, Description: e.Description, Namespaces: []schema.NamespaceEntry{}}
	for _, n := range e.Namespaces {
		versions := n.Versions
		if versions == nil {
			versions = map[string]string{}
		}
		one := schema.NamespaceEntry{Name: n.Name, Terminating: n.Terminating, Versions: versions}
		for _, problem := range n.Problems {
			one.Problems = append(one.Problems, problem.String())
		}
		entry.Namespaces = append(entry.Namespaces, one)
	}
	return entry
}

func printEnvironments(w *console.Stream, list *schema.EnvironmentList) error {
	if len(list.Environments) == 0 {
		_, err := io.WriteString(w, "there are no environments\n")
		return err
	}
	var problems []string
	table := &console.Table{Columns: []string{"ENVIRONMENT", "NAMESPACE", "SOLUTIONS", "DESCRIPTION"}}
	for _, e := range list.Environments {
		for _, n := range e.Namespaces {
			solutions := joinVersions(n.Versions)
			if n.Terminating {
				solutions = "(being deleted)"
			}
			table.Add(e.Name, n.Name, solutions, e.Description)
			problems = append(problems, n.Problems...)
		}
	}
	if err := table.Print(w); err != nil {
		return err
	}
	for _, problem := range problems {
		fmt.Fprintf(w, "%s %s\n", w.Paint(console.Yellow, "problem:"), console.Clean(problem))
	}
	return nil
}

func newEnvShowCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ENVIRONMENT", Short: "Show what is deployed in an environment, and how it is",
		Example: "  solutionctl deploy env show test",
	}
	f := a.addClusterFlags(cmd)
	takesArguments(cmd, f.showEnvironment, environmentArgument)
	cmd.ValidArgsFunction = f.completeEnvironments
	return cmd
}

func (f *clusterFlags) showEnvironment(ctx context.Context, args []string) error {
	d, err := f.deployer()
	if err != nil {
		return err
	}
	status, err := d.Survey.EnvironmentStatus(ctx, survey.EnvironmentOptions{Environment: args[0]})
	return emit(f.app, status, err, printEnvironment)
}

func printEnvironment(w *console.Stream, e *schema.EnvironmentStatus) error {
	title := w.Paint(console.Bold, console.Clean(e.Name))
	if e.Description != "" {
		title += "  " + console.Clean(strings.Join(strings.Fields(e.Description), " "))
	}
	fmt.Fprintln(w, title)
	return printDeployments(w, []schema.EnvironmentStatus{*e})
}
