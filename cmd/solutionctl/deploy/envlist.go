package deploy

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
)

func newEnvListCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the environments and their Solutions",
		Example: "  solutionctl deploy env list",
	}
	f := addClusterFlags(a, cmd)
	takesArguments(cmd, f.listEnvironments, nil)
	return cmd
}

func (f *clusterFlags) listEnvironments(ctx context.Context, _ []string) error {
	return show(f, printEnvironments, func(d *deployer.Deployer) (*schema.EnvironmentList, error) {
		environments, err := d.Survey.Environments(ctx)
		list := &schema.EnvironmentList{Environments: []schema.EnvironmentEntry{}}
		for _, e := range environments {
			list.Environments = append(list.Environments, environmentEntry(e))
		}
		return list, err
	})
}

func environmentEntry(e metalk8s.Environment) schema.EnvironmentEntry {
	entry := schema.EnvironmentEntry{Name: e.Name, Description: e.Description, Namespaces: []schema.NamespaceEntry{}}
	for _, n := range e.Namespaces {
		versions := n.Versions
		if versions == nil {
			versions = map[string]string{}
		}
		one := schema.NamespaceEntry{Name: n.Name, Terminating: n.Terminating, Versions: versions, Problems: schema.Strings(n.Problems)}
		entry.Namespaces = append(entry.Namespaces, one)
	}
	return entry
}

func printEnvironments(w *console.Stream, list *schema.EnvironmentList) {
	if len(list.Environments) == 0 {
		fmt.Fprintln(w, "there are no environments")
		return
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
	table.Print(w)
	console.PrintEach(w, console.Yellow, "problem:", problems)
}

func newEnvShowCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ENVIRONMENT", Short: "Show the deployments of an environment and their health",
		Long: `Show the deployments of an environment and their health; with --members, also the users and their roles in its namespaces.

A user who is allowed to read only a part sees that part, with a note about the rest and the missing permission. A user who
is not allowed to list namespaces sees the one with the name of the environment, or the one of --namespace.`,
		Example: `  solutionctl deploy env show test
  solutionctl deploy env show test --namespace test-1 --members`,
	}
	f := addClusterFlags(a, cmd)
	var o survey.EnvironmentOptions
	cmd.Flags().StringVarP(&o.Namespace, "namespace", "n", "", "only this `NAMESPACE`, for a user who cannot list those of the environment")
	cmd.Flags().BoolVar(&o.Members, "members", false, "list the users and their roles")
	cmd.Flags().BoolVar(&o.Drift, "drift", false, "compare every field of every object with what was deployed")
	takesArguments(cmd, func(ctx context.Context, args []string) error {
		o.Environment = args[0]
		return show(f, printEnvironment, func(d *deployer.Deployer) (*schema.EnvironmentStatus, error) {
			return d.Survey.EnvironmentStatus(ctx, o)
		})
	}, f.completeEnvironments, environmentArgument)
	return cmd
}

func printEnvironment(w *console.Stream, e *schema.EnvironmentStatus) {
	title := w.Paint(console.Bold, console.Line(e.Name))
	if e.Description != "" {
		title += "  " + console.Line(strings.Join(strings.Fields(e.Description), " "))
	}
	fmt.Fprintln(w, title)
	printDeployments(w, []schema.EnvironmentStatus{*e})
	printWaiting(w, e.Deployments())
	printMembers(w, e.Members)
	printUnseen(w, e.Unseen)
}

// printUnseen lists what the user has no permission to see.
func printUnseen(w *console.Stream, unseen []schema.Unseen) {
	for _, u := range unseen {
		fmt.Fprintf(w, "\n%s %s\n", w.Paint(console.Yellow, "not shown:"), console.Line(u.What))
		if u.Rules != "" {
			fmt.Fprintf(w, "  → these rights are missing:\n    %s\n", strings.ReplaceAll(console.Clean(u.Rules), "\n", "\n    "))
		}
	}
}

// printMembers prints the members and their roles.
func printMembers(w *console.Stream, members []schema.Member) {
	if len(members) == 0 {
		return
	}
	fmt.Fprintln(w)
	table := &console.Table{Columns: []string{"WHO", "KIND", "ROLE", "NAMESPACE", "PROGRAM OF"}}
	for _, m := range members {
		table.Add(m.Name, m.Kind, m.Role, m.Namespace, orDash(m.Solution))
	}
	table.Print(w)
}
