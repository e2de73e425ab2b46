package deploy

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/host/monitoring"
	"github.com/solutionctl/solutionctl/deployer/host/service"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newServeCommand(a *cli.App) *cobra.Command {
	var o host.ServeOptions
	var printUnit bool
	var printMonitoring string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the images of imported archives to the nodes of a cluster",
		Long: `Serve the images of every archive that was imported on this host as a read-only registry, straight from the ISO files:
nothing is unpacked. Imports and unimports are noticed while it runs. An archive that was imported in place is compared with
its digests before it is served.

Connections are encrypted, except on loopback addresses, with a certificate of an authority of its own, which is made at the
first start and kept in the store, in tls/. Nodes learn its certificate, tls/ca.crt, from 'solutionctl deploy node config'.
--plain-http does without; nodes then check the digests of what they pull, but cannot verify who resolves a tag to a digest.

The certificate of --tls-cert is read again when its file changes. SIGHUP looks at everything again: archives that could not
be served, the certificate, and the access log, which is opened again. SIGTERM lets clients finish. /healthz, /readyz and /metrics are there for supervision; /readyz names
archives that are not served as they were imported: their file was cut off, removed or replaced, or is still being verified.

--print-monitoring prints what lets the site's Prometheus and Grafana watch over this registry and over what is deployed, for
'kubectl apply': a scrape of the address of --listen or --metrics-listen, alerts, each with what to do, and a dashboard. With
--print-monitoring=rules it prints the alerts as a rule file of Prometheus, with --print-monitoring=dashboard the dashboard alone.
--print-monitoring=operations leaves out the registry, where MetalK8s' nginx serves the images. MetalK8s' Prometheus selects what is
printed; another one may want labels, which --monitoring-label adds.`,
		Example: `  solutionctl deploy serve --listen 10.0.0.1:5000 --access-log /var/log/solutionctl/access.log
  solutionctl deploy serve --listen 10.0.0.1:5000 --print-unit > /etc/systemd/system/solutionctl-registry.service
  solutionctl deploy serve --listen 10.0.0.1:5000 --print-monitoring | kubectl apply -f -
  solutionctl deploy serve --listen 127.0.0.1:5000 --archive example-solution-1.0.0.iso`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			switch {
			case len(o.MonitoringLabels) > 0 && printMonitoring != "kubernetes" && printMonitoring != "operations":
				return report.Errorf(report.Usage, "--monitoring-label needs --print-monitoring or --print-monitoring=operations")
			case printUnit:
				return writeUnit(a, o)
			case printMonitoring != "":
				return writeMonitoring(a, o, printMonitoring)
			default:
				return serve(cmd.Context(), a, o)
			}
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Store, "store", store.DefaultDir, "`DIRECTORY` with the imported archives; empty for none")
	flags.StringArrayVar(&o.Archives, "archive", nil, "serve this `FILE` as well, without verifying it (may be repeated)")
	flags.StringVar(&o.Listen, "listen", defaultRegistry, "`ADDRESS` to listen on, HOST:PORT or :PORT")
	flags.StringVar(&o.MetricsListen, "metrics-listen", "", "`ADDRESS` for /metrics alone, unencrypted, instead of that of --listen")
	flags.StringVar(&o.AccessLog, "access-log", "", "append a line of JSON for each request to `FILE`; - is standard output")
	flags.BoolVar(&o.MirrorOrigins, "mirror-origins", false, "serve images by their original names, too, for nodes that use this registry as a mirror")
	flags.IntVar(&o.MaxTransfers, "max-transfers", host.DefaultTransfers, "send at most `N` large blobs at the same time, a quarter of them to one client; others wait")
	flags.BoolVar(&o.PlainHTTP, "plain-http", false, "do not encrypt")
	flags.StringVar(&o.Certificate, "tls-cert", "", "encrypt with the certificate in `FILE`, instead of making one")
	flags.StringVar(&o.Key, "tls-key", "", "the key of --tls-cert, a `FILE`")
	flags.StringArrayVar(&o.Names, "tls-name", nil, "nodes know this host by `NAME`, a name or an address besides those that it knows itself (may be repeated)")
	flags.BoolVar(&printUnit, "print-unit", false, "print a systemd unit that runs this command, and do nothing else")
	cli.AddChoice(cmd, flags, &printMonitoring, "print-monitoring", "", "print what watches over this registry and what is deployed, and do nothing else", "", "kubernetes", "operations", "rules", "dashboard")
	flags.Lookup("print-monitoring").NoOptDefVal = "kubernetes"
	flags.StringArrayVar(&o.MonitoringLabels, "monitoring-label", nil, "with --print-monitoring, `KEY=VALUE` by which the Prometheus of the site selects monitors and rules (may be repeated)")
	return cmd
}

// writeMonitoring writes what watches over a registry with these flags.
func writeMonitoring(a *cli.App, o host.ServeOptions, form string) (err error) {
	var text []byte
	switch form {
	case "rules":
		text = monitoring.Rules()
	case "dashboard":
		text = monitoring.Dashboard()
	case "operations":
		text, err = o.MonitoringWithoutRegistry()
	default:
		text, err = o.Monitoring()
	}
	if err != nil {
		return err
	}
	return a.EmitText(string(text))
}

// writeUnit writes a systemd unit that runs serve with these flags.
func writeUnit(a *cli.App, o host.ServeOptions) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	unit, err := o.Unit(program)
	if err != nil {
		return err
	}
	return a.EmitText(unit)
}

func serve(ctx context.Context, a *cli.App, o host.ServeOptions) error {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	o.Hangup, o.Manager = hangups, service.NotifierOf(a.Getenv, a.Sink)
	o.Output, o.Errors, o.Sink, o.Now = a.Out, a.Err, a.Sink, a.Now
	// With little that lives, memory is the garbage of two hundred encrypted connections. Clients wait for the start: until it serves, the first
	// collection comes at 20 MB of heap.
	defer debug.SetGCPercent(debug.SetGCPercent(500))
	collect := func(percent int) { debug.SetGCPercent(percent) }
	o.Ready = func() { collect(50) }
	defer runtime.AddCleanup(new([64]byte), collect, 50).Stop() // after that collection
	return host.Serve(ctx, o)
}
