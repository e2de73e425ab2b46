package deploy

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
)

// completionTime is how long a shell waits for names from the cluster. A user who pressed Tab does not wait longer.
const completionTime = time.Second

// complete completes names from the cluster, except those already on the command line. A cluster that does not answer within
// [completionTime] completes nothing.
func (f *clusterFlags) complete(cmd *cobra.Command, there []string, list func(context.Context, *cluster.Cluster) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	return cli.CompleteNames(func(cmd *cobra.Command) ([]string, error) {
		_ = f.Settings.Apply(cmd) // errors in the settings are reported when the command runs
		c, err := f.connect()
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		return list(ctx, c)
	})(cmd, there, "")
}

// completeList completes the last of a list of names, which commas separate.
func (f *clusterFlags) completeList(cmd *cobra.Command, prefix string, list func(context.Context, *cluster.Cluster) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	begin := strings.LastIndex(prefix, ",") + 1
	found, directive := f.complete(cmd, strings.Split(prefix[:begin], ","), list)
	for i := range found {
		found[i] = prefix[:begin] + found[i]
	}
	return found, directive
}

// completeImported completes the name of an imported Solution and then its versions.
func (f *clusterFlags) completeImported(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return f.complete(cmd, args, func(ctx context.Context, c *cluster.Cluster) ([]string, error) { return f.importedNames(ctx, c, args) })
}

// completeDeployment completes the name of an environment, and then as completeImported does.
func (f *clusterFlags) completeDeployment(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return f.complete(cmd, args, func(ctx context.Context, c *cluster.Cluster) ([]string, error) {
		if len(args) > 0 {
			return f.importedNames(ctx, c, args[1:])
		}
		return environmentNames(ctx, c)
	})
}

// completeEnvironments completes the name of an environment.
func (f *clusterFlags) completeEnvironments(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return f.complete(cmd, args, environmentNames)
}

// completeNamespaces completes the name of a namespace of the environment that is named already.
func (f *clusterFlags) completeNamespaces(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return f.complete(cmd, nil, func(ctx context.Context, c *cluster.Cluster) ([]string, error) {
		environments, err := (&metalk8s.Documents{Cluster: c}).Environments(ctx)
		var names []string
		for _, e := range environments {
			for _, n := range e.Namespaces {
				if len(args) == 0 || e.Name == args[0] {
					names = append(names, n.Name)
				}
			}
		}
		return names, err
	})
}

// completeApps completes the name of an environment and then that of an application in it.
func (f *clusterFlags) completeApps(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return f.complete(cmd, args, func(ctx context.Context, c *cluster.Cluster) ([]string, error) {
		switch len(args) {
		case 0:
			return environmentNames(ctx, c)
		case 1:
		default:
			return nil, nil
		}
		list, err := f.deployerOn(c).Apps.List(ctx, apps.Options{Environment: args[0]})
		if err != nil {
			return nil, err
		}
		var names []string
		for _, one := range list.Apps {
			names = append(names, one.Name)
		}
		return names, nil
	})
}

func environmentNames(ctx context.Context, c *cluster.Cluster) ([]string, error) {
	environments, err := (&metalk8s.Documents{Cluster: c}).Environments(ctx)
	var names []string
	for _, e := range environments {
		names = append(names, e.Name)
	}
	return names, err
}

// importedNames lists Solutions, or the versions of the one that is named already.
func (f *clusterFlags) importedNames(ctx context.Context, c *cluster.Cluster, args []string) ([]string, error) {
	catalog, err := f.deployerOn(c).Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, i := range catalog.Imports() {
		switch {
		case len(args) == 0:
			names = append(names, i.Name)
		case len(args) == 1 && i.Name == args[0]:
			names = append(names, i.Version)
		}
	}
	return slices.Compact(names), nil
}
