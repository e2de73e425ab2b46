package deploy

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newOpenCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "open ENVIRONMENT SOLUTION",
		Short: "Open the user interface of a Solution",
		Long: `Open the user interface of a Solution. The URLs of its Ingresses are printed. Without an Ingress, connections to a port of 127.0.0.1
are forwarded to a pod of its Service, through the API server and with your own rights, until interrupted.

On a terminal with a graphical display, the page is opened in the browser (xdg-open). --print prints and does nothing else.`,
		Example: `  solutionctl deploy open test example-solution
  solutionctl deploy open test example-solution --print -o json`,
	}
	c := &opening{clusterFlags: addClusterFlags(a, cmd)}
	flags := cmd.Flags()
	flags.StringVarP(&c.o.Namespace, "namespace", "n", "", "only in this `NAMESPACE` of the environment")
	flags.StringVar(&c.o.Component, "component", "", "only this `NAME` of what the Solution is made of")
	flags.StringVar(&c.service, "service", "", "the Service `NAME`, although there may be an Ingress")
	flags.IntVar(&c.port, "port", 0, "forward this `PORT` of 127.0.0.1; 0 is any free one")
	flags.BoolVar(&c.print, "print", false, "print the address, and neither open nor forward anything")
	takesArguments(cmd, c.run, c.completeDeployment, environmentArgument, solutionArgument)
	return cmd
}

// opening is a run of 'deploy open'.
type opening struct {
	*clusterFlags
	o       survey.Scope
	service string
	port    int
	print   bool
}

func (c *opening) run(ctx context.Context, args []string) error {
	const ports = 1 << 16
	if c.port < 0 || c.port >= ports {
		return report.Errorf(report.Usage, "--port must be from 0 to %d", ports-1)
	}
	if c.ForMachines() && !c.print {
		return report.Errorf(report.Usage, "--output %s needs --print", c.Output)
	}
	c.o.Environment, c.o.Solution = args[0], args[1]
	d, err := c.deployer()
	if err != nil {
		return err
	}
	found, err := d.Survey.Interface(ctx, c.o, c.service)
	if err != nil {
		return err
	}
	if c.print || len(found.URLs) > 0 {
		if err = cli.Emit(c.App, found, nil, printInterface); err == nil && !c.print {
			c.browse(ctx, found.URLs[0])
		}
		return err
	}
	return c.forward(ctx, d, found.Backend)
}

func (c *opening) forward(ctx context.Context, d *deployer.Deployer, to *schema.ServiceBackend) error {
	c.Sink.Close()
	return d.Cluster.Forward(ctx, to.Namespace, to.Pod, to.Port, c.port, func(port int) {
		scheme := "http"
		if to.TLS {
			scheme = "https"
		}
		address := scheme + "://127.0.0.1:" + strconv.Itoa(port) + "/"
		fmt.Fprintln(c.Out.Text(), address)
		fmt.Fprintf(c.Err.Text(), "forwarded to port %d of pod %s; interrupt to end\n", to.Port, console.Line(to.Pod))
		c.browse(ctx, address)
	})
}

// browse opens a page if the user has a display. Without one, the user has the printed address.
func (c *opening) browse(ctx context.Context, address string) {
	if !c.Out.TTY || c.Getenv("DISPLAY") == "" && c.Getenv("WAYLAND_DISPLAY") == "" {
		return
	}
	if program, err := exec.LookPath("xdg-open"); err == nil {
		_ = exec.CommandContext(ctx, program, address).Run() // the address was printed
	}
}

func printInterface(w *console.Stream, found *schema.UserInterface) {
	for _, address := range found.URLs {
		fmt.Fprintln(w, console.Line(address))
	}
	if b := found.Backend; b != nil {
		fmt.Fprintf(w, "Service %s/%s, port %d of pod %s; '%s' forwards it\n", console.Line(b.Namespace), console.Line(b.Service), b.Port, console.Line(b.Pod),
			report.Run("deploy open", found.Environment, found.Solution))
	}
}
