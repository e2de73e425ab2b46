package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer/host/service"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/metrics"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// The forms of a status for other programs.
const (
	formatPillar     = "pillar"     // Salt
	formatPrometheus = "prometheus" // node_exporter
)

func newStatusCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status",
		Aliases: []string{"list", "ls"},
		Short:   "Show imported versions, deployments and their health",
		Long: `Show what was imported, which versions are active, what is deployed in which environment and its health: operations
that have not ended, changes since the deployment, and failures with their reasons.

A terminal with room for it shows who has signed the active version, too; JSON has the signers of each version.

A quick check of metadata finds most changes. With --drift, each field of each object is compared
with what was deployed, as 'deploy diff' does it.

With --watch, continue until interrupted: a terminal shows the table as it changes, elsewhere each change is a line, or with
--output json a document on one line.

With --output prometheus, print the same as numbers for Prometheus. Nothing of this program runs between two commands, so
node_exporter passes the numbers on: --textfile writes them to a file in the directory of its textfile collector. When the
cluster cannot be read, the file keeps the last state and marks it (solutionctl_status_run_success 0). --print-timer
prints a timer for systemd that does it every five minutes, and --print-timer=service what it starts.

With --output pillar, print what MetalK8s exposes to Salt as metalk8s:solutions, as YAML for Salt's external pillar
cmd_yaml. MetalK8s' configuration is read on this host; where there is none, that part is empty.`,
		Example: `  solutionctl deploy status
  solutionctl deploy status --watch
  solutionctl deploy status --drift --exit-status
  solutionctl deploy status --drift --output prometheus --textfile /var/lib/prometheus/node-exporter/solutionctl.prom
  solutionctl deploy status --output pillar`,
	}
	c := &statusFlags{clusterFlags: addClusterFlags(a, cmd)}
	cmd.Flags().BoolVar(&c.drift, "drift", false, "compare every field of every object with what was deployed")
	cmd.Flags().BoolVar(&c.exitStatus, "exit-status", false, "with --drift, exit with status 3 when something was changed")
	cmd.Flags().BoolVarP(&c.watch, "watch", "w", false, "continue with each change until interrupted")
	cmd.Flags().StringVar(&c.configuration, "solutions-file", store.DefaultConfiguration, "MetalK8s' configuration for --output pillar, a `FILE`")
	cmd.Flags().StringVar(&c.textfile, "textfile", "", "with --output prometheus, write a `FILE` for node_exporter, NAME.prom")
	cli.AddChoice(cmd, cmd.Flags(), &c.timer, "print-timer", "", "with --textfile, print units for systemd that run this command every five minutes, and do nothing else", "", "timer", "service")
	cmd.Flags().Lookup("print-timer").NoOptDefVal = "timer"
	cli.AddChoice(cmd, cmd.Flags(), &a.Output, "output", "o", "format of the result", "text", "json", "yaml", formatPillar, formatPrometheus)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := c.check(); err != nil {
			return err
		}
		switch {
		case c.timer != "":
			return c.printTimer(cmd.Flags())
		case c.watch:
			return c.watchStatus(cmd.Context())
		case c.Output == formatPillar:
			return c.printPillar(cmd.Context())
		default:
			return c.run(cmd.Context())
		}
	}
	return cmd
}

// statusFlags are the flags of 'deploy status'.
type statusFlags struct {
	*clusterFlags
	drift, exitStatus, watch       bool
	configuration, textfile, timer string
}

func (c *statusFlags) check() error {
	switch {
	case c.exitStatus && !c.drift:
		return report.Errorf(report.Usage, "--exit-status needs --drift")
	case c.textfile != "" && c.Output != formatPrometheus:
		return report.Errorf(report.Usage, "--textfile needs --output prometheus")
	case c.textfile != "" && filepath.Ext(c.textfile) != ".prom":
		return report.Errorf(report.Usage, "--textfile %s: node_exporter reads no file but those whose names end in .prom", c.textfile)
	case c.watch && c.exitStatus:
		return report.Errorf(report.Usage, "--watch does not end by itself: it does not go with --exit-status")
	case c.watch && c.Output != "text" && c.Output != "json":
		return report.Errorf(report.Usage, "--watch prints text or json")
	case c.timer != "" && c.textfile == "":
		return report.Errorf(report.Usage, "--print-timer needs --textfile")
	}
	return nil
}

func (c *statusFlags) run(ctx context.Context) error {
	began := c.Now()
	status, err := c.look(ctx)
	if c.Output == formatPrometheus {
		err = c.writeMetrics(status, began, err)
	} else {
		err = cli.Emit(c.App, status, err, printStatus)
	}
	if err == nil && c.exitStatus && status.HasDrift() {
		return report.Errorf(report.Changes, "something was changed since it was deployed")
	}
	return err
}

func (c *statusFlags) look(ctx context.Context) (*schema.Status, error) {
	d, err := c.deployer()
	if err != nil {
		return nil, err
	}
	return d.Survey.Status(ctx, survey.StatusOptions{Drift: c.drift})
}

// writeMetrics writes the numbers of a status. A file for node_exporter also learns that there is none; why is for the log.
func (c *statusFlags) writeMetrics(s *schema.Status, looked time.Time, failure error) error {
	file := metrics.Textfile{Name: c.textfile, Run: "solutionctl_status_run"}
	switch {
	case failure != nil && c.textfile == "":
		return failure
	case failure != nil:
		return errors.Join(failure, file.Fail(c.Now()))
	}
	var page metrics.Page
	survey.WriteMetrics(&page, s, looked)
	if c.textfile != "" {
		return file.Succeed(&page, c.Now())
	}
	c.Sink.Close()
	_, err := page.WriteTo(c.Out)
	return err
}

// printTimer prints a timer for systemd, or the service that it starts, which looks at the cluster.
func (c *statusFlags) printTimer(flags *pflag.FlagSet) error {
	unit, err := c.unitOf("status", &c.textfile, flags)
	if err != nil {
		return err
	}
	unit.Description = "Numbers about deployed Solutions for node_exporter"
	return printUnit(c.App, unit, c.timer)
}

// unitOf returns a unit that runs a command of 'deploy' every five minutes, with the settings that are in effect now. It runs as root, which
// owns kubeconfigs, and may write where the file of a flag is and nowhere else.
func (f *clusterFlags) unitOf(command string, file *string, flags *pflag.FlagSet) (service.Unit, error) {
	if f.kubeconfig == "" {
		return service.Unit{}, report.Errorf(report.Usage, "a service has no kubeconfig of its own").
			WithHint("name one that may read, such as --kubeconfig /etc/kubernetes/admin.conf")
	}
	program, err := os.Executable()
	if err != nil {
		return service.Unit{}, err
	}
	words, err := cli.ServiceFlags(flags, "print-timer")
	words = append([]string{program, "deploy", command, "--progress", "plain"}, words...)
	return service.Unit{
		User: "root", Capabilities: "CAP_DAC_OVERRIDE", Every: "5min", Command: service.Command(words...), ReadWrite: "-" + service.Word(filepath.Dir(*file)),
	}, err
}

// printUnit prints the timer of a unit for systemd, or the service.
func printUnit(a *cli.App, unit service.Unit, which string) error {
	print := unit.Timer
	if which == "service" {
		print = unit.Text
	}
	text, err := print()
	if err != nil {
		return err
	}
	return a.EmitText(text)
}

// printPillar prints what Salt reads. What is wrong with a document stands in it, as MetalK8s does it.
func (c *statusFlags) printPillar(ctx context.Context) error {
	found, err := c.connect()
	if err != nil {
		return err
	}
	configuration, failure := (&store.Configuration{Path: c.configuration, Identify: archive.Identify}).Load()
	if failure == nil && configuration.IsOlder() {
		failure = report.Errorf(report.Invalid, "%s is in the older form, which MetalK8s does not read", c.configuration)
		configuration = nil
	}
	pillar, err := (&metalk8s.Documents{Cluster: found}).Pillar(ctx, configuration, failure)
	if err != nil {
		return err
	}
	data, err := pillar.Marshal()
	if err != nil {
		return err
	}
	return c.EmitText(string(data))
}

func printStatus(w *console.Stream, s *schema.Status) {
	if s.Cluster != nil {
		fmt.Fprintf(w, "cluster %s\n\n", w.Paint(console.Bold, console.Line(s.Cluster.String())))
	}
	if len(s.Solutions) == 0 && len(s.Environments) == 0 {
		fmt.Fprintln(w, "nothing was imported, and there are no environments")
	}
	printSolutions(w, s.Solutions)
	if len(s.Solutions) > 0 && len(s.Environments) > 0 {
		fmt.Fprintln(w)
	}
	printDeployments(w, s.Environments)
	printWaiting(w, s.Deployments())
	if len(s.Problems) > 0 {
		fmt.Fprintln(w)
	}
	console.PrintEach(w, console.Yellow, "problem:", s.Problems)
}

// printSolutions prints what was imported and what is active.
func printSolutions(w *console.Stream, solutions []schema.SolutionStatus) {
	if len(solutions) == 0 {
		return
	}
	table := &console.Table{Columns: []string{"SOLUTION", "ACTIVE", "HEALTH", "IMPORTED"}}
	signed := &console.Table{Columns: append(slices.Clone(table.Columns), "SIGNED BY")}
	for _, s := range solutions {
		var versions []string
		for _, v := range s.Versions {
			text := v.Version
			if v.SupportedUntil != "" {
				text += " (supported until " + v.SupportedUntil + ")"
			}
			versions = append(versions, text)
		}
		health := "-"
		if s.Deployment != nil {
			health = string(s.Deployment.Health)
		}
		table.Add(s.Name, orDash(s.Active), health, strings.Join(versions, ", "))
		signed.Add(s.Name, orDash(s.Active), health, strings.Join(versions, ", "), signersText(s))
	}
	if signed.Fits(w) {
		table = signed
	}
	table.Print(w)
	for _, s := range solutions {
		if s.Deployment != nil {
			printReasons(w, s.Name, *s.Deployment)
		}
	}
}

// signersText names the signers of the active version, or of the newest one.
func signersText(s schema.SolutionStatus) string {
	if len(s.Versions) == 0 {
		return "-"
	}
	at := slices.IndexFunc(s.Versions, func(v schema.ImportedVersion) bool { return v.Version == s.Active })
	if at < 0 {
		at = len(s.Versions) - 1
	}
	switch signers := s.Versions[at].Signers; {
	case len(signers) > 0:
		return strings.Join(signers, ", ")
	case signers != nil:
		return "no trusted key"
	default:
		return "-" // the record of the import does not have them
	}
}

// printDeployments prints what is deployed in environments, and then why some of it is not well.
func printDeployments(w *console.Stream, environments []schema.EnvironmentStatus) {
	if len(environments) == 0 {
		return
	}
	table := &console.Table{Columns: []string{"ENVIRONMENT", "NAMESPACE", "SOLUTION", "VERSION", "HEALTH"}}
	for _, e := range environments {
		for _, n := range e.Namespaces {
			if n.Terminating {
				table.Add(e.Name, n.Name, "-", "-", "being deleted")
			} else if len(n.Deployments) == 0 {
				table.Add(e.Name, n.Name, "-", "-", "-")
			}
			for _, d := range n.Deployments {
				table.Add(e.Name, n.Name, d.Solution, versionText(d), string(d.Health))
			}
		}
	}
	table.Print(w)
	for _, e := range environments {
		for _, n := range e.Namespaces {
			for _, problem := range n.Problems {
				fmt.Fprintf(w, "\nnamespace %s: %s\n", console.Line(n.Name), console.Line(problem))
			}
			for _, d := range n.Deployments {
				printReasons(w, n.Name+"/"+d.Solution, d)
			}
		}
	}
}

// versionText is the version that is there, and the one that is asked for when that is another one.
func versionText(d schema.DeploymentStatus) string {
	switch {
	case d.Version == "":
		return "- → " + orDash(d.Wanted)
	case d.Wanted != d.Version:
		return d.Version + " → " + orDash(d.Wanted)
	default:
		return d.Version
	}
}

// healthStyles maps each unhealthy state to its colour.
var healthStyles = map[schema.DeploymentHealth]console.Style{
	schema.HealthFailed: console.Red, schema.HealthMissing: console.Red,
	schema.HealthPending: console.Yellow, schema.HealthDrifted: console.Yellow, schema.HealthProgressing: console.Yellow,
	schema.HealthForeign: console.Faint, schema.HealthUnknown: console.Faint,
}

func printReasons(w *console.Stream, what string, d schema.DeploymentStatus) {
	if len(d.Reasons) == 0 {
		return
	}
	progress := ""
	if d.Objects > 0 {
		progress = fmt.Sprintf(" (%d of %s ready)", d.Ready, report.Count(d.Objects, "object"))
		if d.Completed > 0 {
			progress = fmt.Sprintf(" (%d of %s ready, %d of them completed)", d.Ready, report.Count(d.Objects, "object"), d.Completed)
		}
	}
	fmt.Fprintf(w, "\n%s: %s%s\n", console.Line(what), w.Paint(healthStyles[d.Health], string(d.Health)), progress)
	for _, reason := range d.Reasons {
		fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(console.Clean(reason.String()), "\n", "\n  "))
	}
}

// printWaiting lists the kinds whose CustomResourceDefinitions are missing, with the waiting objects, one line for each
// kind.
func printWaiting(w *console.Stream, deployments iter.Seq[schema.PlacedDeployment]) {
	waiting := map[string]int{}
	for d := range deployments {
		for _, object := range d.Waiting {
			waiting[object.Kind+" of "+object.APIVersion]++
		}
	}
	if len(waiting) > 0 {
		fmt.Fprintln(w)
	}
	for _, kind := range slices.Sorted(maps.Keys(waiting)) {
		line := fmt.Sprintf("not created, because the cluster does not have the kind: %s (%s)", kind, report.Count(waiting[kind], "object"))
		fmt.Fprintln(w, w.Paint(console.Faint, console.Clean(line)))
	}
}

// joinVersions writes Solutions and their versions, sorted.
func joinVersions(versions map[string]string) string {
	var texts []string
	for _, solution := range slices.Sorted(maps.Keys(versions)) {
		texts = append(texts, solution+" "+versions[solution])
	}
	return orDash(strings.Join(texts, ", "))
}

func orDash(text string) string { return cmp.Or(text, "-") }
