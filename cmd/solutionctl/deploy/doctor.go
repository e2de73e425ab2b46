package deploy

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/support/doctor"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newDoctorCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this host and the cluster for problems",
		Long: `Check this host and the cluster for problems before you change something. On this host: the
store and its free space, MetalK8s' configuration, certificates and, where it is a node, whether its container runtime
knows the registry. In the cluster: the version and the clock of the API server, APIs, webhooks and conversions whose
server is gone, namespaces and definitions that do not go away and what holds them, what you may do, who is at work and
what was begun and has not ended, and whether every endpoint of the registry has every imported version.

Nothing is changed. Each finding comes with what to do. The exit status is 3 when there are problems. Without a cluster
this host is still examined.`,
		Example: `  solutionctl deploy doctor
  solutionctl deploy doctor --output json`,
	}
	f := &hostFlags{clusterFlags: addClusterFlags(a, cmd)}
	f.addPlaces(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.diagnose(cmd.Context()) }
	return cmd
}

func (f *hostFlags) diagnose(ctx context.Context) error {
	x, err := f.examine(ctx)
	if err != nil {
		return err
	}
	d := x.diagnosis
	if err := f.EmitResult(d, func(w *console.Stream) { printDiagnosis(w, d) }); err != nil {
		return err
	}
	if d.Problems > 0 {
		return report.Errorf(report.Findings, "%s", countDiagnosis(d))
	}
	return nil
}

// examined is a host and its cluster after the doctor has looked at them.
type examined struct {
	doctor.Options
	diagnosis *schema.Diagnosis
}

// doctor returns what to check on this host.
func (f *hostFlags) doctor() (doctor.Options, error) {
	s, err := store.Open(f.places.Store)
	if err != nil {
		return doctor.Options{}, err
	}
	node, err := os.Hostname()
	return doctor.Options{
		Store: s, Configuration: &store.Configuration{Path: f.places.Configuration, Identify: archive.Identify},
		Authority: host.AuthorityFile(f.places.Store), Root: "/", Node: node, Now: f.Now,
	}, err
}

// examine runs the doctor. A cluster that does not answer at once is not asked again.
func (f *hostFlags) examine(ctx context.Context) (*examined, error) {
	o, err := f.doctor()
	if err != nil {
		return nil, err
	}
	connection := f.clusterOptions()
	connection.Retry = -1
	c, err := cluster.Connect(connection)
	if err != nil {
		o.Absent = err
	} else {
		o.Deployer = f.deployerOn(c)
	}
	return &examined{o, doctor.Examine(ctx, o)}, ctx.Err()
}

var resultStyles = map[schema.CheckResult]console.Style{
	schema.CheckOK: console.Green, schema.CheckWarning: console.Yellow, schema.CheckProblem: console.Red, schema.CheckSkipped: console.Faint,
}

func printDiagnosis(w *console.Stream, d *schema.Diagnosis) {
	table := &console.Table{Columns: []string{"RESULT", "CHECK", "WHAT WAS FOUND"}}
	for _, c := range d.Checks {
		table.Add(string(c.Result), c.Area+" "+c.Name, c.Message)
	}
	table.Print(w)
	for _, c := range d.Checks {
		if c.Hint == "" || c.Result == schema.CheckOK {
			continue
		}
		fmt.Fprintf(w, "\n%s %s\n", w.Paint(resultStyles[c.Result], c.Area+" "+c.Name+":"), console.Clean(c.Message))
		fmt.Fprintf(w, "  → %s\n", strings.ReplaceAll(console.Clean(c.Hint), "\n", "\n    "))
	}
	fmt.Fprintf(w, "\n%s\n", countDiagnosis(d))
}

// countDiagnosis returns the number of findings of each severity, in words.
func countDiagnosis(d *schema.Diagnosis) string {
	return report.Count(d.Problems, "problem") + ", " + report.Count(d.Warnings, "warning")
}
