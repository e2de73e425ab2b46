package deploy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer/loader"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// defaultLoaderFile specifies the Solutions that a platform starts at boot.
const defaultLoaderFile = "/etc/solutionctl/loader.yaml"

func newLoaderCommand(a *cli.App) *cobra.Command {
	group := cli.NewGroup("loader", "Start a platform's Solutions at boot",
		newLoaderPlanCommand(a), newLoaderStartCommand(a), newLoaderStatusCommand(a), newLoaderRepairCommand(a), newLoaderStopCommand(a),
		newLoaderLogsCommand(a), newLoaderPrintCommand(a), newLoaderRunCommand(a))
	group.Long = `Start a platform's Solutions at boot, without a network and without a process that keeps running: a Job in the cluster applies
a LoaderConfiguration and ends. 'solutionctl schema LoaderConfiguration' describes the file.

  apiVersion: solutionctl.io/v1alpha1
  kind: LoaderConfiguration
  spec:
    environments:
      - name: infra
        solutions: [{name: example-solution}]

The archives are imported before, that of solutionctl itself too, which brings the image of the Job.`
	return group
}

// loaderFlags are the flags of commands that read the configuration of the loader.
type loaderFlags struct {
	*clusterFlags
	file         string
	ifConfigured bool
}

func addLoaderFlags(a *cli.App, cmd *cobra.Command) *loaderFlags {
	f := &loaderFlags{clusterFlags: addClusterFlags(a, cmd)}
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "filename", "f", defaultLoaderFile, "the LoaderConfiguration, a `FILE`")
	flags.BoolVar(&f.ifConfigured, "if-configured", false, "where there is no such file, succeed and do nothing")
	cli.Must(cmd.MarkFlagFilename("filename", "yaml", "yml"))
	return f
}

// withLauncher returns a command's function that calls do with the launcher; it does nothing without a configuration if none
// is required.
func withLauncher(launcher func() (*loader.Launcher, error), do func(ctx context.Context, l *loader.Launcher) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		l, err := launcher()
		if l == nil || err != nil {
			return err
		}
		return do(cmd.Context(), l)
	}
}

// launcher reads the configuration; nil where there is none and none is needed.
func (f *loaderFlags) launcher() (*loader.Launcher, error) {
	data, err := os.ReadFile(f.file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.ifConfigured:
		return nil, nil //nolint:nilnil // there is nothing to launch
	case err != nil:
		return nil, report.As(report.NotFound, err).WithHint("'solutionctl schema LoaderConfiguration' describes the file; --filename names another one")
	}
	c, err := schema.ParseLoaderConfiguration(f.file, data)
	if err != nil {
		return nil, err
	}
	d, err := f.deployer()
	return &loader.Launcher{Deployer: d, Configuration: c}, err
}

// anyLauncher is one for commands that need no configuration.
func (f *loaderFlags) anyLauncher() (*loader.Launcher, error) {
	if _, err := os.Stat(f.file); errors.Is(err, fs.ErrNotExist) && f.ifConfigured {
		return nil, nil //nolint:nilnil // there is nothing to launch
	}
	d, err := f.deployer()
	return &loader.Launcher{Deployer: d, Configuration: &schema.LoaderConfiguration{}}, err
}

func newLoaderPlanCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what starting the loader would do",
		Long: `Show what 'deploy loader start' would do, and change nothing: the changes by the command, those by the Job, and the
permissions of the Job.`,
		Example: "  solutionctl deploy loader plan -f loader.yaml",
	}
	f := addLoaderFlags(a, cmd)
	f.addConfigurationFlag(cmd)
	exitStatus := cmd.Flags().Bool("exit-status", false, "exit with status 3 when there is something to do")
	cmd.RunE = withLauncher(f.launcher, func(ctx context.Context, l *loader.Launcher) error {
		plan, err := l.Plan(ctx)
		if err = cli.Emit(f.App, plan, err, f.printLoaderPlan); err != nil {
			return err
		}
		if *exitStatus && !plan.Empty() {
			return report.Errorf(report.Changes, "there is something to do")
		}
		return nil
	})
	return cmd
}

func newLoaderStartCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Apply the configuration to the cluster",
		Long: `Apply the configuration to the cluster. This command creates environments and activates versions; a Job does everything else,
with an account that has exactly the permissions of the plan. The command follows the Job and returns its result.

If everything is deployed already, no Job is started and nothing is written; the command may still wait for readiness, as after
a boot. Changes by an administrator stay; 'deploy loader repair' reverts them. The next start completes an interrupted run.
Solutions that are not in the configuration any more are listed, and removed with --prune.

With --local the work is done by this command and there is no Job: before there is a network of pods, or an image.`,
		Example: `  solutionctl deploy loader start
  solutionctl deploy loader start -f loader.yaml --local`,
	}
	f := addLoaderFlags(a, cmd)
	f.addLockWait(cmd)
	f.addConfigurationFlag(cmd)
	var o loader.StartOptions
	flags := cmd.Flags()
	flags.BoolVar(&o.Local, "local", false, "do the work in this process, without a Job")
	flags.BoolVar(&o.Prune, "prune", false, "remove what was loaded and is not in the configuration any more")
	flags.BoolVar(&o.NoWait, "no-wait", false, "end when the Job runs")
	cmd.RunE = withLauncher(f.launcher, func(ctx context.Context, l *loader.Launcher) error {
		return f.emitProgress(l.Start(ctx, o))
	})
	return cmd
}

// emitProgress prints how the loader is, also when that is why the command fails.
func (f *clusterFlags) emitProgress(progress *schema.LoadProgress, err error) error {
	if progress == nil {
		return err
	}
	return errors.Join(cli.Emit(f.App, progress, nil, printLoadProgress), err)
}

func newLoaderStatusCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the progress of the loader, and the health of what it deployed",
		Long: `Show how far the loader is. Of a run that has ended well it shows how each part is now.

With --wait it waits until everything that has to be there is ready, and fails with the status of the run when it failed, or with 8
when the time is up: what a health check of the host needs ('deploy loader print greenboot').`,
		Example: `  solutionctl deploy loader status
  solutionctl deploy loader status --wait=5m --if-configured`,
	}
	f := addLoaderFlags(a, cmd)
	var wait time.Duration
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait for `DURATION` (5m when none is given) until everything is ready")
	cmd.Flags().Lookup("wait").NoOptDefVal = "5m"
	cmd.RunE = withLauncher(f.anyLauncher, func(ctx context.Context, l *loader.Launcher) error {
		if wait > 0 {
			return f.emitProgress(l.Wait(ctx, wait))
		}
		return f.emitProgress(l.Status(ctx))
	})
	return cmd
}

func newLoaderRepairCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Restore objects of the loader's Solutions that were changed or deleted",
		Long: `Restore the Solutions of the configuration: create deleted objects again, and reset edited fields. Nothing is removed, and
CustomResourceDefinitions are never changed. A field that changes again after three repairs is left alone, and its manager is named.

With spec.repair.mode in the configuration a CronJob does the same.`,
		Example: "  solutionctl deploy loader repair",
	}
	f := addLoaderFlags(a, cmd)
	f.addLockWait(cmd)
	cmd.RunE = withLauncher(f.launcher, func(ctx context.Context, l *loader.Launcher) error {
		if err := l.Repair(ctx); err != nil {
			return err
		}
		return f.emitProgress(l.Status(ctx))
	})
	return cmd
}

func newLoaderStopCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Stop the loader; its Solutions stay",
		Long: `End a run that is under way, and repairs. Jobs, accounts and parameters of the loader are removed; what was loaded stays, and the
next start finishes what was interrupted. A run of 'start --local', on whichever host, ends within seconds, and one that is about to
begin is waited for, half a minute at least.

With --prune what was loaded and is not in the configuration any more is listed, asked about and removed then, as 'deploy loader start
--prune' does. Where there are custom resources of it that is refused, and nothing is stopped: 'solutionctl deploy remove' asks what
becomes of them.`,
		Example: `  solutionctl deploy loader stop
  solutionctl deploy loader stop --prune --dry-run`,
	}
	f := addLoaderFlags(a, cmd)
	f.addLockWait(cmd)
	var o loader.StopOptions
	flags := cmd.Flags()
	flags.BoolVar(&o.Prune, "prune", false, "remove what was loaded and is not in the configuration any more")
	flags.BoolVar(&o.DryRun, "dry-run", false, "stop nothing, and only show what --prune would remove")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.Prune {
			return withLauncher(f.launcher, func(ctx context.Context, l *loader.Launcher) error { return f.prune(ctx, l, o) })(cmd, args)
		}
		if o.DryRun {
			return report.Errorf(report.Usage, "--dry-run is for --prune")
		}
		return withLauncher(f.anyLauncher, func(ctx context.Context, l *loader.Launcher) error {
			plan, err := l.Stop(ctx, o)
			return cli.Emit(a, plan, err, func(*console.Stream, *schema.LoaderPlan) {})
		})(cmd, args)
	}
	return cmd
}

// prune asks before it stops the loader and removes what the configuration does not list.
func (f *loaderFlags) prune(ctx context.Context, l *loader.Launcher, o loader.StopOptions) error {
	planned := o
	planned.DryRun = true
	plan, err := l.Stop(ctx, planned)
	if err == nil && !o.DryRun {
		if err = f.Confirm(ctx, o.Confirmation(plan)); err == nil {
			plan, err = l.Stop(ctx, o)
		}
	}
	return cli.Emit(f.App, plan, f.explain(err), f.printPruned)
}

func (f *clusterFlags) printPruned(w *console.Stream, p *schema.LoaderPlan) {
	if len(p.Remove) == 0 {
		fmt.Fprintln(w, "nothing to remove")
	}
	for _, o := range p.Remove {
		f.printOperation(w, o)
	}
}

func newLoaderLogsCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "logs",
		Short:   "Show the log of the last run",
		Long:    `Show what the pods of the last run have written, as long as its Job is there (spec.job.ttl in the configuration).`,
		Example: "  solutionctl deploy loader logs",
	}
	f := addLoaderFlags(a, cmd)
	cmd.RunE = withLauncher(f.anyLauncher, func(ctx context.Context, l *loader.Launcher) error {
		lines, err := l.Logs(ctx)
		return cli.Emit(a, lines, err, func(w *console.Stream, lines []schema.LogLine) {
			for _, line := range lines {
				fmt.Fprintln(w, console.Clean(line.Text))
			}
		})
	})
	return cmd
}

// What 'deploy loader print' prints.
var loaderPrints = []string{"job", "cronjob", "unit", "timer", "greenboot"}

func newLoaderPrintCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "print " + strings.Join(loaderPrints, "|"),
		Short: "Print the files that start the loader on a platform",
		Long: `Print what a platform needs to run the loader in its own way, and do nothing.

  job        what starts a run, for kubectl apply: the account, its rights, parameters, the Job
  cronjob    what repairs, for kubectl apply
  unit       a service for systemd that starts the loader with the host
  timer      a timer and a service for systemd that repair, where there is to be no CronJob
  greenboot  a script for /etc/greenboot/check/required.d`,
		Example: `  solutionctl deploy loader print unit --kubeconfig /etc/kubernetes/admin.conf > /etc/systemd/system/solutionctl-loader.service
  solutionctl deploy loader print job | kubectl apply -f -`,
		Args:              cli.ExactArgs("WHAT"),
		ValidArgsFunction: cli.CompleteNames(func(*cobra.Command) ([]string, error) { return loaderPrints, nil }),
	}
	f := addLoaderFlags(a, cmd)
	f.addConfigurationFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return f.print(cmd, args[0]) }
	return cmd
}

func (f *loaderFlags) print(cmd *cobra.Command, what string) error {
	var text []byte
	var err error
	switch what {
	case "unit":
		text, err = f.printForHost(cmd, loader.Unit)
	case "timer":
		text, err = f.printForHost(cmd, loader.Timer, "solutions-file")
	case "greenboot":
		text, err = f.printForHost(cmd, loader.Greenboot, "solutions-file")
	case "job", "cronjob":
		l, failure := f.launcher()
		switch {
		case l == nil || failure != nil:
			return failure
		case what == "job":
			text, err = l.JobManifest(cmd.Context())
		default:
			text, err = l.CronJobManifest(cmd.Context())
		}
	default:
		return report.Errorf(report.Usage, "%q is none of %s", what, strings.Join(loaderPrints, ", "))
	}
	if err == nil {
		_, err = f.Out.Write(text)
	}
	return err
}

// printForHost returns the text of a service. It contains absolute paths and settings, as a service has neither the user's
// working directory nor the user's settings. It has the flags of this command, except those that the command of the service does not have.
func (f *loaderFlags) printForHost(cmd *cobra.Command, text func(program, file string, flags ...string) string, except ...string) ([]byte, error) {
	if f.kubeconfig == "" {
		return nil, report.Errorf(report.Usage, "a service has no kubeconfig of its own").
			WithHint("name that of an administrator, such as --kubeconfig /etc/kubernetes/admin.conf")
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	words, err := cli.ServiceFlags(cmd.Flags(), append(except, "filename", "if-configured")...)
	if err != nil {
		return nil, err
	}
	return []byte(text(program, f.file, words...)), nil
}

func newLoaderRunCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:    "run --parameters FILE",
		Hidden: true, // the Job runs it
		Short:  "Run the loader in this process, as its Job does",
		Long: `Do the work of a run, or of a repair, as the parameters say, and write into ConfigMap solutionctl-system/loader how far it is. The Job
of the loader calls it; people call 'deploy loader start'.`,
		Example: "  solutionctl deploy loader run --parameters /etc/loader/parameters/parameters.json",
	}
	f := addClusterFlags(a, cmd)
	f.lockWait = lockWaitOfRun
	var parameters, values string
	cmd.Flags().StringVar(&parameters, "parameters", "", "`FILE` with the parameters of the run")
	cmd.Flags().StringVar(&values, "values", "", "`FILE` with the values of charts")
	cli.Must(cmd.MarkFlagRequired("parameters"))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		p, err := readParameters(parameters, values)
		if err != nil {
			return err
		}
		d, err := f.deployer()
		if err != nil {
			return err
		}
		if p.Repair != "" {
			return loader.Repair(cmd.Context(), d.Config, p)
		}
		return loader.Run(cmd.Context(), d.Config, p)
	}
	return cmd
}

// lockWaitOfRun is for how long a run waits for a lock: that of a pod that was killed ends after seconds.
const lockWaitOfRun = time.Minute

func readParameters(parameters, values string) (*schema.LoadParameters, error) {
	text, err := os.ReadFile(parameters)
	if err != nil {
		return nil, report.As(report.NotFound, err)
	}
	var hidden []byte
	if values != "" {
		if hidden, err = os.ReadFile(values); err != nil {
			return nil, report.As(report.NotFound, err)
		}
	}
	return loader.ParseParameters(text, hidden)
}

func (f *clusterFlags) printLoaderPlan(w *console.Stream, p *schema.LoaderPlan) {
	if p.Empty() {
		fmt.Fprintln(w, "nothing to do: no Job is started")
	}
	for _, name := range p.Create {
		fmt.Fprintf(w, "%s create environment %s\n", w.Paint(console.Green, "+"), console.Clean(name))
	}
	for i, o := range slices.Concat(p.Activate, p.Environments, p.Afterwards) {
		if o.Empty() {
			if i < len(p.Activate) { // the version is only listed on this host
				console.PrintEach(w, console.Yellow, "note:", o.Notices)
			}
			continue
		}
		if i == len(p.Activate)+len(p.Environments) {
			fmt.Fprintln(w, "after activation:")
		}
		shown := *o
		shown.Notices, shown.Digest, shown.Powers = nil, "", nil
		f.printOperation(w, &shown)
		printPowers(w, o, plan.Accepting)
	}
	if p.Run != "" {
		fmt.Fprintf(w, "run %s, a Job with image %s and these rights:\n%s\n", p.Run, console.Clean(p.Image), p.Rights)
	}
	console.PrintEach(w, console.Yellow, "note:", p.Notices)
}

func printLoadProgress(w *console.Stream, p *schema.LoadProgress) {
	table := &console.Table{Columns: []string{"NAMESPACE", "SOLUTION", "COMPONENT", "VERSION", "STATE", "WHY"}}
	for i := range p.Parts {
		part := &p.Parts[i]
		why := strings.Join(part.WaitingFor, "; ")
		if part.Error != nil {
			why = part.Error.Message
		}
		table.Add(part.Namespace, part.Solution, part.Component, part.Version, string(part.State), why)
	}
	table.Print(w)
	fmt.Fprintf(w, "run %s: %s, %d of %d ready\n", p.Run, p.Phase, p.Ready, len(p.Parts))
	if p.Error != nil {
		fmt.Fprintf(w, "%s %s\n", w.Paint(console.Red, "error:"), console.Clean(p.Error.Message))
	}
	if p.Repair != nil {
		for _, text := range p.Repair.Changed {
			fmt.Fprintf(w, "%s last repair, %s: %s\n", w.Paint(console.Yellow, "note:"), p.Repair.At.Format(time.RFC3339), console.Clean(text))
		}
	}
	console.PrintEach(w, console.Yellow, "note:", p.Notices)
}
