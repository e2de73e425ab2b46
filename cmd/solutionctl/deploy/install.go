package deploy

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/host/node"
	"github.com/solutionctl/solutionctl/deployer/install"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/kube/powers"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newInstallCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "install ARCHIVE... --env ENVIRONMENT",
		Short: "Install Solutions from archives in one step",
		Long: `Install Solutions on a site with one host, from archives to running applications. The plan is shown and confirmed first. Each step
does the work of a single command, and a step that is done is skipped:

  trust     the vendor's public key (--key), after its fingerprint was confirmed
  import    the archives, as 'solutionctl deploy import'
  serve     their images, by a unit of systemd that runs 'solutionctl deploy serve'
  register  the address of this host in the cluster, as 'solutionctl deploy registry add'
  configure the container runtime of this node, as 'solutionctl deploy node config'
  activate  the versions, as 'solutionctl deploy activate'
  create    the environment, as 'solutionctl deploy env create'
  deploy    the Solutions in it, as 'solutionctl deploy add' or 'solutionctl deploy upgrade'

Run it again after an interruption: it continues. Installed already, it changes nothing. A higher version upgrades.

What the Solutions can do to the cluster beyond their own namespaces is part of the plan. --yes confirms the plan and approves
none of it: name the powers with --allow.`,
		Example: `  solutionctl deploy install example-solution-1.0.0.iso --env prod --key acme-release.pub
  solutionctl deploy install example-solution-1.0.0.iso --env prod --dry-run`,
		Args: cli.AtLeastArgs("ARCHIVE"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"iso"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	c := newInstallation(a, cmd)
	c.addRun(cmd, "show the plan, and change nothing", "wait until what was deployed is ready")
	c.addExpect(cmd)
	c.addExitStatus(cmd)
	cmd.Flags().Lookup("key").Usage = "trust this public key of the vendor from now on, a `FILE`, after you have confirmed its fingerprint"
	cli.Must(cmd.Flags().MarkHidden("in-place"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) }
	return cmd
}

// defaultRegistry is where the registry of a host listens unless the user names another address.
const defaultRegistry = ":5000"

// newInstallation adds the flags of a command that takes archives to running applications.
func newInstallation(a *cli.App, cmd *cobra.Command) *installation {
	c := &installation{verbFlags: verbFlags{clusterFlags: addClusterFlags(a, cmd)}}
	c.host = &hostFlags{clusterFlags: c.clusterFlags}
	c.host.addHost(cmd)
	c.addWaitFlags(cmd)
	c.imports.add(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&c.environment, "env", "e", "", "the `ENVIRONMENT` to deploy in; it is created if it does not exist")
	flags.StringVar(&c.listen, "listen", defaultRegistry, "`ADDRESS` that the registry of this host listens on, HOST:PORT or :PORT")
	flags.StringVar(&c.node, "node", "", "`NAME` of this node (default the host's name)")
	flags.StringVar(&c.root, "root", "/", "write the unit and the files of the node below `DIRECTORY`, the file system of an image")
	c.addAllow(cmd, nil)
	c.requireEnvironment(cmd)
	return c
}

// requireEnvironment makes a command require its flag --env, and complete it.
func (f *clusterFlags) requireEnvironment(cmd *cobra.Command) {
	cli.Must(cmd.MarkFlagRequired("env"))
	cli.Must(cmd.RegisterFlagCompletionFunc("env", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return f.complete(cmd, nil, environmentNames)
	}))
}

// installation is a run of 'deploy install', or a round of 'dev'.
type installation struct {
	verbFlags
	host                            *hostFlags
	imports                         importFlags
	environment, listen, node, root string
}

func (c *installation) run(ctx context.Context, archives []string) error {
	installer, o, err := c.prepare(archives)
	if err != nil {
		return err
	}
	plan, err := installer.Plan(ctx, o)
	if plan == nil || err != nil || c.common.DryRun {
		return c.finish(plan, err)
	}
	if !plan.Empty() {
		if err = c.confirmPlan(ctx, plan); err != nil {
			return c.explain(err)
		}
	}
	return c.finish(plan, plan.Run(ctx))
}

// prepare reads what the command line names.
func (c *installation) prepare(archives []string) (*install.Installer, install.Options, error) {
	var o install.Options
	trusted, err := c.imports.verify.TakeKeys() // they are not instead of the trust store, but become a part of it
	if err != nil {
		return nil, o, err
	}
	if len(trusted) > 1 {
		return nil, o, report.Errorf(report.Usage, "--key names %d keys", len(trusted)).WithHint("add the others: %s", report.Run("trust add", "NAME", "FILE"))
	}
	for _, name := range slices.Collect(maps.Keys(trusted)) {
		o.KeyName, o.Key = name, trusted[name]
	}
	h, d, err := c.host.open()
	if err != nil {
		return nil, o, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, o, err
	}
	name, err := nodeName(c.node)
	if err != nil {
		return nil, o, err
	}
	if endpoints := c.imports.Endpoints; len(endpoints) > 0 {
		o.Endpoint = endpoints[0]
	}
	o.Import = c.imports.options(c.App, archives...)
	o.Import.Endpoints = nil
	o.Environment, o.Deploy = c.environment, c.options()
	o.Serve = host.ServeOptions{Store: c.host.places.Store, Listen: c.listen, MaxTransfers: host.DefaultTransfers}
	o.Node = node.Config{Node: name}
	return &install.Installer{
		Host: h, Deployer: d, Services: install.Systemd{Root: c.root}, Root: c.root, Program: program, TrustDir: c.TrustDirs(c.imports.verify.TrustDir)[0],
	}, o, nil
}

// confirmPlan shows the plan and asks once for all of it: the key, the steps and the powers. --yes approves of no power.
func (c *installation) confirmPlan(ctx context.Context, planned *install.Plan) error {
	missing := planned.Unapproved()
	refusal := &plan.PowersError{Powers: missing}
	if len(missing) > 0 && (c.Yes || !c.Interactive || !refusal.CanBeApproved()) {
		return report.Errorf(report.Refused, "not approved, the Solutions ask for the powers to:\n  %w", refusal).WithHint("approve: %s", plan.Approving(missing))
	}
	question := report.Confirmation{Question: "Install this", Lists: []report.ConfirmationList{{Title: "This will be done", Items: stepLines(planned.Steps)}}}
	if len(missing) > 0 {
		question.Question = "Approve these powers and install"
		question.Lists = append(question.Lists, report.ConfirmationList{Title: "It asks for the powers to", Items: powers.Describe(missing)})
	}
	if text := planned.ConsequencesText(); text != "" && c.Interactive && !c.Yes {
		fmt.Fprintf(c.Err, "Afterwards %s.\n", console.Line(text))
	}
	if err := c.Confirm(ctx, question); err != nil {
		return err
	}
	planned.Approve(missing)
	return nil
}

// finish prints a plan, or what was done of it.
func (c *installation) finish(plan *install.Plan, err error) error {
	if plan == nil {
		return err
	}
	if err = cli.Emit(c.App, &plan.Installation, c.explain(err), c.printInstallation); err != nil {
		return err
	}
	return c.checkDone(plan)
}

func (c *installation) printInstallation(w *console.Stream, i *schema.Installation) {
	for _, archive := range i.Archives {
		signed := "not signed by a trusted key"
		if len(archive.Signers) > 0 {
			signed = fmt.Sprintf("signed by %s", console.Clean(strings.Join(archive.Signers, ", ")))
		}
		fmt.Fprintf(w, "%s %s, %s\n", w.Paint(console.Bold, console.Clean(archive.Solution)), console.Clean(archive.Version), signed)
	}
	if text := i.ConsequencesText(); text != "" && c.common.DryRun {
		fmt.Fprintf(w, "afterwards %s\n", console.Line(text))
	}
	printSteps(w, i.Steps, "+", console.Green)
	if c.common.DryRun {
		printUnapproved(w, c.common.Unallowed(i.Powers), byOption)
	}
	console.PrintEach(w, console.Yellow, "note:", i.Notices)
	for _, address := range i.Addresses {
		fmt.Fprintf(w, "open %s\n", console.Clean(address))
	}
	if c.common.DryRun && i.Digest != "" {
		fmt.Fprintf(w, "to do exactly this: --expect %s\n", i.Digest)
	}
}

// nodeName is the name of this node: the host's, unless the user names another one.
func nodeName(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	return os.Hostname()
}

// printSteps prints a line for each step. The mark is for those that are to be done, or were.
func printSteps(w *console.Stream, steps []schema.InstallStep, mark string, style console.Style) {
	for _, s := range steps {
		sign, paint := mark, style
		if s.State == schema.StepUnchanged {
			sign, paint = "=", console.Faint
		}
		fmt.Fprintf(w, "  %s %s\n", w.Paint(paint, sign), console.Clean(stepLine(s)))
	}
}

func stepLines(steps []schema.InstallStep) (lines []string) {
	for _, s := range steps {
		if s.State == schema.StepPlanned {
			lines = append(lines, stepLine(s))
		}
	}
	return lines
}

func stepLine(s schema.InstallStep) string {
	text := s.Step + " " + s.Name
	if s.Note != "" {
		text += " (" + s.Note + ")"
	}
	return text
}
