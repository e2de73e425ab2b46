package deploy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/site"
	"github.com/solutionctl/solutionctl/schema"
)

func newMonitoringCommand(a *cli.App) *cobra.Command {
	group := cli.NewGroup("monitoring", "Configure how Prometheus and Grafana find Solutions",
		newMonitoringConfigCommand(a), newMonitoringShowCommand(a))
	group.Long = `Record the labels that Prometheus and Grafana of this cluster select. Both find the monitoring objects of Solutions by labels,
which differ from site to site: without the right ones nothing is scraped, no alert fires and no dashboard is shown.`
	return group
}

func newMonitoringConfigCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Record the labels and namespaces that Prometheus and Grafana select",
		Long: `Record the labels and namespaces that Prometheus and Grafana of this cluster select. Every Solution that is activated, added or
upgraded from then on gets them. The command lists the deployed Solutions that have to be deployed again to get them.

KEY=VALUE sets a label, and KEY- removes it. Others stay. --detect reads the selectors from the objects of the Prometheus
operator, and the settings of the sidecar of Grafana's charts.

--prometheus is the URL, inside the cluster, that 'deploy alerts' and the console query. It is for a Prometheus without the
operator, or for users who are not allowed to list the objects of the operator.`,
		Example: `  solutionctl deploy monitoring config --label release=kps
  solutionctl deploy monitoring config --prometheus http://prometheus-operated.monitoring:9090
  solutionctl deploy monitoring config --detect --dry-run
  solutionctl deploy monitoring config --dashboard-label grafana_dashboard=1 --folder-annotation grafana_folder`,
	}
	f := addClusterFlags(a, cmd)
	f.addLockWait(cmd)
	var (
		o                 site.Options
		folder, namespace string
	)
	flags := cmd.Flags()
	flags.StringArrayVar(&o.Labels, "label", nil, "`KEY=VALUE` of every monitor and every PrometheusRule (may be repeated)")
	flags.StringArrayVar(&o.RuleLabels, "rule-label", nil, "`KEY=VALUE` of every PrometheusRule besides (may be repeated)")
	flags.StringArrayVar(&o.DashboardLabels, "dashboard-label", nil, "`KEY=VALUE` of every ConfigMap with a dashboard (may be repeated)")
	flags.StringVar(&folder, "folder-annotation", "", "`KEY` of the annotation in which Grafana looks for the folder of a dashboard")
	flags.StringVar(&namespace, "dashboard-namespace", "", "`NAMESPACE`, which must be there, of all dashboards (default that of each Solution)")
	flags.StringArrayVar(&o.Prometheus, "prometheus", nil, "`URL` of the Prometheus or Alertmanager that is asked for alerts, http://SERVICE.NAMESPACE:PORT, in place of those recorded (may be repeated; '' for none)")
	flags.BoolVar(&o.Detect, "detect", false, "set what the Prometheus objects and the Grafana sidecar of the cluster look for")
	flags.BoolVar(&o.DryRun, "dry-run", false, "change nothing, only show what would be recorded")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if flags.Changed("folder-annotation") {
			o.FolderAnnotation = &folder
		}
		if flags.Changed("dashboard-namespace") {
			o.Namespace = &namespace
		}
		return show(f, printMonitoring, func(d *deployer.Deployer) (*schema.MonitoringReport, error) {
			return d.ConfigureMonitoring(cmd.Context(), o)
		})
	}
	return cmd
}

func newMonitoringShowCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show",
		Short:   "Show the labels and namespaces that Prometheus and Grafana select",
		Long:    `Show what is recorded of the Prometheus and the Grafana of this cluster.`,
		Example: "  solutionctl deploy monitoring show",
	}
	f := addClusterFlags(a, cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return show(f, printMonitoring, func(d *deployer.Deployer) (*schema.MonitoringReport, error) { return d.Site.Monitoring(cmd.Context()) })
	}
	return cmd
}

func printMonitoring(w *console.Stream, m *schema.MonitoringReport) {
	table := &console.Table{Columns: []string{"OF", "WHAT IS RECORDED"}}
	for _, row := range []struct{ of, value string }{
		{"monitors and rules", labelList(m.Labels)},
		{"rules", labelList(m.RuleLabels)},
		{"dashboards", labelList(m.Dashboards.Labels)},
		{"folder of dashboards", m.Dashboards.FolderAnnotation},
		{"namespace of dashboards", m.Dashboards.Namespace},
		{"asked for alerts", strings.Join(schema.Strings(m.Prometheus), ", ")},
	} {
		if row.value != "" {
			table.Add(row.of, row.value)
		}
	}
	if len(table.Rows) == 0 {
		fmt.Fprintln(w, "nothing is recorded: Solutions have the labels of MetalK8s, and those of their archives")
	} else {
		table.Print(w)
	}
	console.PrintEach(w, console.Yellow, "note:", m.Notices)
}

func labelList(labels map[string]string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, key+"="+labels[key])
	}
	return strings.Join(list, ", ")
}
