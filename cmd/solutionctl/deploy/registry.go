package deploy

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
)

func newRegistryCommand(a *cli.App) *cobra.Command {
	group := cli.NewGroup("registry", "Manage the endpoints from which nodes pull images",
		newRegistryAddCommand(a), newRegistryListCommand(a), newRegistryRemoveCommand(a))
	group.Long = `Record the addresses from which nodes pull images. Several hosts may serve the same archives, each with a
certificate authority of its own: the cluster keeps all of them, and 'solutionctl deploy node config' brings them to the
nodes. Run that on each node after a change here.`
	return group
}

func newRegistryAddCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add URL...",
		Short: "Add endpoints from which nodes pull images",
		Long: `Add addresses at which nodes find images. Those of other hosts stay.

On the host where 'solutionctl deploy serve' runs, nothing but its URL is needed: nodes trust its authority. Elsewhere
--ca names the authority's certificate, tls/ca.crt in the store of that host. An address that is recorded with another
authority is refused, because another machine may use it. --replace confirms that the new authority is right.`,
		Example: `  solutionctl deploy registry add https://10.0.0.1:5000
  solutionctl deploy registry add https://10.0.0.2:5000 --ca ca-of-the-second-host.crt`,
		Args: cli.AtLeastArgs("URL"),
	}
	f := &hostFlags{clusterFlags: addClusterFlags(a, cmd)}
	f.addLockWait(cmd)
	addStoreFlag(cmd, &f.places.Store)
	var o host.EndpointOptions
	flags := cmd.Flags()
	flags.StringVar(&o.CA, "ca", "", "`FILE` with the certificates by which nodes trust the addresses (default the authority of 'deploy serve' on this host)")
	flags.BoolVar(&o.Replace, "replace", false, "replace addresses that are recorded with another authority")
	flags.BoolVar(&o.DryRun, "dry-run", false, "change nothing, only show what would be recorded")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.URLs = args
		return f.addEndpoints(cmd.Context(), o)
	}
	return cmd
}

func (f *hostFlags) addEndpoints(ctx context.Context, o host.EndpointOptions) error {
	h, err := f.openAlone()
	if err != nil {
		return err
	}
	if err = h.CheckEndpoints(o); err != nil {
		return err
	}
	return show(f.clusterFlags, printEndpoints, func(d *deployer.Deployer) (*schema.EndpointList, error) {
		h.Cluster = host.ClusterOf(d)
		return endpointsOf(h.AddEndpoints(ctx, o))
	})
}

func newRegistryRemoveCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "remove URL...",
		Short:   "Remove endpoints from which nodes pull images",
		Long:    `Forget addresses at which nodes found images, with the authorities that no other address has.`,
		Example: "  solutionctl deploy registry remove https://10.0.0.1:5000",
		Args:    cli.AtLeastArgs("URL"),
	}
	f := addClusterFlags(a, cmd)
	f.addLockWait(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return show(f, printEndpoints, func(d *deployer.Deployer) (*schema.EndpointList, error) {
			return endpointsOf(d.RemoveEndpoints(cmd.Context(), deployer.RemoveEndpointsOptions{Endpoints: args}))
		})
	}
	return cmd
}

func newRegistryListCommand(a *cli.App) *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the endpoints from which nodes pull images",
		Long: `List the addresses at which nodes find images. --check asks each of them for every imported version. 'solutionctl deploy doctor' does so,
too, and names the remedy.`,
		Example: `  solutionctl deploy registry list
  solutionctl deploy registry list --check`,
	}
	f := addClusterFlags(a, cmd)
	cmd.Flags().BoolVar(&check, "check", false, "ask each endpoint which of the imported versions it serves")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return show(f, printEndpoints, func(d *deployer.Deployer) (*schema.EndpointList, error) {
			registry, err := d.Records.Registry(cmd.Context())
			list, err := endpointsOf(registry, err)
			if err != nil || !check || registry == nil || registry.Mode == schema.RegistryMetalK8s {
				return list, err
			}
			imports, err := d.Records.Imports(cmd.Context())
			if err == nil {
				records.AskEndpoints(cmd.Context(), list, registry, imports)
			}
			return list, err
		})
	}
	return cmd
}

// endpointsOf lists where nodes find images, unless that could not be read or changed.
func endpointsOf(registry *schema.ClusterRegistry, err error) (*schema.EndpointList, error) {
	if err != nil {
		return nil, err
	}
	return records.Endpoints(registry), nil
}

func printEndpoints(w *console.Stream, list *schema.EndpointList) {
	if list.Mode == schema.RegistryMetalK8s {
		fmt.Fprintln(w, "MetalK8s' nginx serves the images")
		return
	}
	if len(list.Endpoints) == 0 {
		fmt.Fprintln(w, "the cluster has no record of where nodes find images")
		return
	}
	columns := []string{"ENDPOINT", "AUTHORITY", "VALID UNTIL"}
	checked := list.Endpoints[0].Answer != nil
	if checked {
		columns = append(columns, "ARCHIVES")
	}
	table := &console.Table{Columns: columns}
	for _, endpoint := range list.Endpoints {
		cells := []string{endpoint.URL, authorityNames(endpoint), validUntil(endpoint)}
		if checked {
			cells = append(cells, answerOf(endpoint.Answer))
		}
		table.Add(cells...)
	}
	table.Print(w)
}

func answerOf(a *schema.EndpointAnswer) string {
	switch {
	case a.Problem != "":
		return "does not answer: " + a.Problem
	case len(a.Missing) == 0:
		return fmt.Sprintf("all %d", a.Serves)
	default:
		return fmt.Sprintf("%d of %d, not %s", a.Serves, a.Serves+len(a.Missing), strings.Join(a.Missing, ", "))
	}
}

func authorityNames(e schema.Endpoint) string {
	const enough = len("SHA256:") + 16
	var names []string
	for _, authority := range e.Authorities {
		names = append(names, authority.Fingerprint[:enough])
	}
	return strings.Join(names, ", ")
}

// validUntil is when the first of the authorities expires.
func validUntil(e schema.Endpoint) string {
	var first time.Time
	for _, authority := range e.Authorities {
		if first.IsZero() || authority.NotAfter.Before(first) {
			first = authority.NotAfter
		}
	}
	if first.IsZero() {
		return ""
	}
	return first.Format(time.DateOnly)
}
