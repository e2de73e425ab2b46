package deploy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newApplyCommand(a *cli.App) *verb {
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Apply a configuration file to this host, the cluster or an environment",
		Long: `Apply a SolutionsConfiguration to this host and the cluster: import the archives that it lists, activate the versions that
it names, deactivate the Solutions that it does not name, and unimport the archives that it does not list. Both forms of
the file are accepted.

All guards of these commands are asked before the first change: a version that an environment uses stays, and so do
definitions of which there are objects. Solutions that need each other are judged as they will be: a file that names both
changes both. Stored objects that would lose data are named, as 'solutionctl deploy activate' does.

With an EnvironmentConfiguration the environment that it names gets the Solutions that it lists, with their versions, components
and values, in one plan: missing ones are added, others upgraded or downgraded, each after its dependencies. They have to be
imported and active. Other Solutions of the environment are listed, and removed with --prune when all others are ready;
'solutionctl deploy remove' asks what to do with their custom resources. It works on any host: flags about archives and the store are
refused with it, as --prune and --expect are with the other document.`,
		Example: "  solutionctl deploy apply -f /etc/metalk8s/solutions.yaml\n  solutionctl deploy plan apply -f prod.yaml --prune\n  solutionctl deploy apply -f prod.yaml",
	}
	flags := cmd.Flags()
	h := &hostFlags{clusterFlags: addClusterFlags(a, cmd)}
	h.addLockWait(cmd)
	c := &convergence{host: h, verb: newVerb(cmd, h.clusterFlags)}
	c.ofArchives = cli.FlagsAddedBy(flags, func() {
		h.addHost(cmd)
		c.imports.add(cmd)
	})
	c.addReplace()
	c.addAllow(cmd, nil)
	c.loss.add(cmd)
	flags.StringVarP(&c.file, "filename", "f", "", "the SolutionsConfiguration or EnvironmentConfiguration, a `FILE`")
	c.ofEnvironment = cli.FlagsAddedBy(flags, func() {
		flags.BoolVar(&c.prune, "prune", false, "remove what an environment has and its EnvironmentConfiguration does not list")
	})
	c.toChange = append(c.toChange, func() {
		c.ofEnvironment = append(c.ofEnvironment, cli.FlagsAddedBy(flags, func() { c.addExpect(cmd) })...)
	})
	flags.DurationVar(&h.timeout, "timeout", defaultTimeout, "wait for `DURATION` until what was deployed is ready")
	cli.Must(cmd.MarkFlagFilename("filename", "yaml", "yml"))
	cli.Must(cmd.MarkFlagRequired("filename"))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) }
	return c.verb
}

// convergence is a run of 'deploy apply'.
type convergence struct {
	*verb
	host    *hostFlags
	imports importFlags
	loss    lossFlags
	file    string
	prune   bool

	ofArchives, ofEnvironment []*pflag.Flag // those that count for one kind of document only
}

func (c *convergence) run(ctx context.Context) error {
	data, err := os.ReadFile(c.file)
	if err != nil {
		return report.As(report.Failure, err)
	}
	kind, err := schema.KindOf(c.file, data)
	if err != nil {
		return err
	}
	if kind == schema.KindEnvironmentConfiguration {
		return c.applyEnvironment(ctx, data)
	}
	configuration, _, err := schema.ParseSolutionsConfiguration(c.file, data)
	if err != nil {
		return err
	}
	if err = c.refuse(c.ofEnvironment, schema.KindEnvironmentConfiguration); err != nil {
		return err
	}
	on, d, err := c.host.open()
	if err != nil {
		return err
	}
	o := host.ConvergeOptions{
		Configuration: configuration, Verbs: d, Import: c.imports.options(c.App),
		Deploy: deployer.ConvergeOptions{Options: c.options(), AcceptDataLoss: c.loss.accepted, AcceptInvalid: c.loss.invalid},
		Export: func(solution string, of int) definitions.Export {
			return export(c.App, exportFile(c.loss.export, solution, of), solution)
		},
	}
	plan, err := on.Converge(ctx, o)
	if again, failure := c.askPowers(ctx, err, &o.Deploy); failure != nil {
		return failure
	} else if again {
		plan, err = on.Converge(ctx, o)
	}
	if err = cli.Emit(c.App, plan, c.explain(err), printConvergence); err != nil {
		return err
	}
	return c.checkDone(plan)
}

// refuse is an error where the command line has one of the flags of another kind of document than the file's.
func (c *convergence) refuse(flags []*pflag.Flag, kind string) error {
	for _, flag := range flags {
		if c.Settings.Given(flag) {
			return report.Errorf(report.Usage, "--%s is for a document of kind %s, and %s is of another one", flag.Name, kind, c.file).WithHint("leave it out")
		}
	}
	return nil
}

// exportFile is where the custom resources of one of several Solutions go.
func exportFile(file, solution string, solutions int) string {
	if file == "" || solutions < 2 {
		return file
	}
	extension := filepath.Ext(file)
	return strings.TrimSuffix(file, extension) + "-" + solution + extension
}

func printConvergence(w *console.Stream, c *schema.Convergence) {
	line := func(style console.Style, mark, verb, what string) {
		fmt.Fprintf(w, "  %s %s %s\n", w.Paint(style, mark), verb, console.Clean(what))
	}
	if text := c.ConsequencesText(); text != "" && c.Planned {
		fmt.Fprintln(w, console.Line(text))
	}
	for _, i := range c.Import {
		line(console.Green, "+", "import", i.ID()+" from "+i.Path)
	}
	for _, s := range c.Activate {
		line(console.Green, "+", "activate", s.ID())
	}
	for _, s := range c.Deactivate {
		line(console.Red, "-", "deactivate", s.ID())
	}
	for _, s := range c.Unimport {
		line(console.Red, "-", "unimport", s.ID())
	}
	if c.Empty() {
		fmt.Fprintln(w, "nothing to do")
	}
	console.PrintEach(w, console.Yellow, "note:", c.Notices)
}
