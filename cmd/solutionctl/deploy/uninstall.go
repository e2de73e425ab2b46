package deploy

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/install"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newUninstallCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "uninstall ARCHIVE|SOLUTION... --env ENVIRONMENT",
		Short: "Uninstall Solutions in one step",
		Long: `Uninstall Solutions on a site with one host: the inverse of 'solutionctl deploy install'. The plan is shown and confirmed first.
Each step does the work of a single command, and a step that is done is skipped:

  remove      the Solutions from the environment, as 'solutionctl deploy remove'
  delete      the environment (only with --delete-env), as 'solutionctl deploy env delete'
  deactivate  what no other environment has, as 'solutionctl deploy deactivate'
  unimport    its archives, as 'solutionctl deploy unimport'
  unconfigure the container runtime of this node (only with --clean-host), as 'solutionctl deploy node config --remove'
  unregister  the address of this host (only with --clean-host), as 'solutionctl deploy registry remove'
  stop        the registry, and remove its unit (only with --clean-host)
  untrust     a key (only with --untrust), as 'solutionctl trust remove'

With an aggregated API of the Solution that does not answer, 'deactivate' comes before 'delete': no namespace is deleted completely
while it is there.

A SOLUTION goes with all of its versions, an ARCHIVE with the version that is in it. The environment, this host and the trusted keys
stay unless an option names them: other Solutions, and the next installation, need them.

While there are custom resources, nothing is done. --keep-data leaves them and their CustomResourceDefinitions. --delete-data writes
them to files in the current directory, NAME-TIME.json, and deletes them while their operators still run.

Run it again after an interruption: it continues. Uninstalled already, it changes nothing.`,
		Example: `  solutionctl deploy uninstall example-solution --env prod
  solutionctl deploy uninstall example-solution --env prod --delete-env --clean-host --dry-run`,
		Args: cli.AtLeastArgs("ARCHIVE|SOLUTION"),
	}
	c := &uninstallation{verbFlags: verbFlags{clusterFlags: addClusterFlags(a, cmd)}}
	c.host = &hostFlags{clusterFlags: c.clusterFlags}
	c.host.addHost(cmd)
	c.addWaitFlags(cmd)
	c.addRun(cmd, "show the plan, and change nothing", "wait until what was removed is gone")
	c.addExpect(cmd)
	c.addExitStatus(cmd)
	c.addFlags(cmd)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return c.completeImported(cmd, nil, "")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) }
	return cmd
}

// uninstallation is a run of 'deploy uninstall'.
type uninstallation struct {
	verbFlags
	host                 *hostFlags
	data                 dataFlags
	o                    install.UninstallOptions
	node, root, trustDir string
}

func (c *uninstallation) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&c.o.Environment, "env", "e", "", "the `ENVIRONMENT` to remove the Solutions from")
	flags.BoolVar(&c.data.keep, "keep-data", false, "leave custom resources without an operator, and keep their CustomResourceDefinitions")
	flags.BoolVar(&c.data.keep, "keep-crds", false, "the same as --keep-data")
	flags.BoolVar(&c.data.remove, "delete-data", false, "export and delete every custom resource")
	flags.BoolVar(&c.o.DeleteEnvironment, "delete-env", false, "delete the environment, too, with its roles, quotas and network policies")
	flags.BoolVar(&c.o.CleanHost, "clean-host", false, "remove what the first installation has set up on this host, too: the registry, its address, the files of this node")
	flags.StringVar(&c.o.Untrust, "untrust", "", "stop trusting the key with this `NAME`, too")
	flags.StringVar(&c.trustDir, "trust-dir", "", "the trust store of --untrust, a `DIRECTORY`")
	flags.StringVar(&c.o.Endpoint, "endpoint", "", "`URL` of the registry on this host, if the installation named one")
	flags.StringVar(&c.o.Serve.Listen, "listen", defaultRegistry, "`ADDRESS` that the registry of this host listens on, HOST:PORT or :PORT")
	flags.StringVar(&c.node, "node", "", "`NAME` of this node (default the host's name)")
	flags.StringVar(&c.o.Node.CertsDir, "certs-dir", "", "`DIRECTORY` that containerd's config_path names, if 'deploy node config' named one")
	flags.StringVar(&c.root, "root", "/", "remove the unit and the files of the node below `DIRECTORY`, the file system of an image")
	flags.BoolVar(&c.common.Adopt, "adopt", false, "remove objects of the Solutions that are on no record, too")
	cli.Must(flags.MarkHidden("keep-crds")) // the hints of a deactivation name it
	cmd.MarkFlagsMutuallyExclusive("keep-data", "delete-data")
	cmd.MarkFlagsMutuallyExclusive("keep-crds", "delete-data")
	cmd.MarkFlagsMutuallyExclusive("keep-data", "delete-env")
	cmd.MarkFlagsMutuallyExclusive("keep-crds", "delete-env")
	c.requireEnvironment(cmd)
}

func (c *uninstallation) run(ctx context.Context, names []string) error {
	installer, err := c.prepare(names)
	if err != nil {
		return err
	}
	planned, err := installer.PlanUninstall(ctx, c.o)
	if planned == nil || err != nil || c.common.DryRun {
		return c.finish(planned, err)
	}
	if !planned.Empty() {
		question := planned.Confirmation()
		question.Lists = []report.ConfirmationList{{Title: "This will be done", Items: stepLines(planned.Steps)}}
		if kept := planned.Kept(); len(kept) > 0 {
			question.Lists = append(question.Lists, report.ConfirmationList{Title: "This is kept", Items: kept})
		}
		if len(planned.Notices) > 0 {
			question.Lists = append(question.Lists, report.ConfirmationList{Title: "Note", Items: planned.Notices})
		}
		if c.Interactive && !c.Yes {
			fmt.Fprintf(c.Err, "Afterwards %s.\n", console.Line(planned.ConsequencesText()))
		}
		if err = c.Confirm(ctx, question); err != nil {
			return err
		}
	}
	return c.finish(planned, planned.Run(ctx))
}

// prepare reads what the command line names.
func (c *uninstallation) prepare(names []string) (*install.Installer, error) {
	h, d, err := c.host.open()
	if err != nil {
		return nil, err
	}
	if c.o.Node.Node, err = nodeName(c.node); err != nil {
		return nil, err
	}
	c.o.Names, c.o.Deploy = names, c.options()
	c.o.Data, _ = c.data.policy(c.App, "")
	c.o.Export = func(name string) definitions.Export { return export(c.App, "", name) }
	return &install.Installer{
		Host: h, Deployer: d, Services: install.Systemd{Root: c.root}, Root: c.root, TrustDir: c.TrustDirs(c.trustDir)[0],
	}, nil
}

// finish prints a plan, or what was done of it.
func (c *uninstallation) finish(planned *install.UninstallPlan, err error) error {
	if planned == nil {
		return c.explain(err)
	}
	printPlan := func(w *console.Stream, u *schema.Uninstallation) { c.printUninstallation(w, u, planned) }
	if err = cli.Emit(c.App, &planned.Uninstallation, c.explain(err), printPlan); err != nil {
		return err
	}
	return c.checkDone(planned)
}

func (c *uninstallation) printUninstallation(w *console.Stream, u *schema.Uninstallation, planned *install.UninstallPlan) {
	if text := planned.ConsequencesText(); text != "" && c.common.DryRun {
		fmt.Fprintf(w, "afterwards %s\n", console.Line(text))
		printLines(w, console.Faint, "kept:", planned.Kept())
	}
	printSteps(w, u.Steps, "-", console.Red)
	console.PrintEach(w, console.Yellow, "note:", u.Notices)
	if c.common.DryRun && u.Digest != "" {
		fmt.Fprintf(w, "to do exactly this: --expect %s\n", u.Digest)
	}
}
