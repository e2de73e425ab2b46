package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newRegistryCommand(a *app) *cobra.Command {
	group := newGroup("registry", "Tell the cluster where its images are",
		newRegistryAddCommand(a), newRegistryListCommand(a), newRegistryRemoveCommand(a))
	group.Long = `Tell the cluster at which addresses its nodes find images. Several hosts may serve the same archives, each with a
certificate authority of its own: the cluster keeps all of them, and 'solutionctl deploy node config' brings them to the
nodes. Run that on each node after a change here.`
	return group
}

func newRegistryAddCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add URL...",
		Short: "Add addresses at which nodes find images",
		Long: `Add addresses at which nodes find images. Those of other hosts stay.

On the host where 'solutionctl deploy serve' runs, nothing but its URL is needed: nodes trust its authority. Elsewhere
--ca names the authority's certificate, tls/ca.crt in the store of that host. An address that is recorded with another
authority is refused: somebody else may have taken it. --replace says that the new one is right.`,
		Example: `  solutionctl deploy registry add https://10.0.0.1:5000
  solutionctl deploy registry add https://10.0.0.2:5000 --ca ca-of-the-second-host.crt`,
		Args: atLeastOneArg("URL"),
	}
	f := a.addClusterFlags(cmd)
	var dir, ca string
	var o deployer.EndpointOptions
	addStoreFlag(cmd, &dir)
	flags := cmd.Flags()
	flags.DurationVar(&f.lockWait, "lock-wait", 0, "wait for `DURATION` when somebody else is at work")
	flags.StringVar(&ca, "ca", "", "`FILE` with the certificates by which nodes trust the addresses (default the authority of 'deploy serve' on this host)")
	flags.BoolVar(&o.Replace, "replace", false, "take over addresses that are recorded with another authority")
	flags.BoolVar(&o.DryRun, "dry-run", false, "change nothing, only say what would be recorded")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		authority, err := a.authorityFor(args, ca, dir, isServing)
		if err != nil {
			return err
		}
		d, err := a.deployer(f)
		if err != nil {
			return err
		}
		more := schema.ClusterRegistry{Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn, Endpoints: args, CA: authority}
		if err = deployer.CheckAuthority(cmd.Context(), more); err != nil {
			return err
		}
		registry, err := d.AddEndpoints(cmd.Context(), more, o)
		if err != nil {
			return err
		}
		return a.emitEndpoints(registry)
	}
	return cmd
}

func newRegistryRemoveCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "remove URL...",
		Short:   "Forget addresses at which nodes found images",
		Long:    `Forget addresses at which nodes found images, with the authorities that no other address has.`,
		Example: "  solutionctl deploy registry remove https://10.0.0.1:5000",
		Args:    atLeastOneArg("URL"),
	}
	f := a.addClusterFlags(cmd)
	cmd.Flags().DurationVar(&f.lockWait, "lock-wait", 0, "wait for `DURATION` when somebody else is at work")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := a.deployer(f)
		if err != nil {
			return err
		}
		registry, err := d.RemoveEndpoints(cmd.Context(), args)
		if err != nil {
			return err
		}
		return a.emitEndpoints(registry)
	}
	return cmd
}

func newRegistryListCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the addresses at which nodes find images",
		Long:    `List the addresses at which nodes find images. Whether they answer, 'solutionctl deploy doctor' finds out.`,
		Example: "  solutionctl deploy registry list",
		Args:    exactArgs(),
	}
	f := a.addClusterFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d, err := a.deployer(f)
		if err != nil {
			return err
		}
		registry, err := d.Registry(cmd.Context())
		if err != nil {
			return err
		}
		return a.emitEndpoints(registry)
	}
	return cmd
}

// atLeastOneArg takes one argument or several of the same kind.
func atLeastOneArg(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("argument %s is missing", name)
		}
		return nil
	}
}

// authorityFor returns the certificates by which nodes trust endpoints: those in a file, else that of 'deploy serve' on this
// host, if serves says that it may be the one.
func (a *app) authorityFor(endpoints []string, file, dir string, serves func(dir string) error) (string, error) {
	encrypted := false
	for _, text := range endpoints {
		endpoint, err := schema.ParseEndpoint(text)
		if err != nil {
			return "", err
		}
		encrypted = encrypted || strings.HasPrefix(endpoint, "https://")
	}
	switch {
	case file != "":
		data, err := os.ReadFile(file)
		return string(data), err
	case !encrypted:
		return "", nil
	}
	if err := serves(dir); err != nil {
		return "", err
	}
	own, err := a.openAuthority(dir) // 'deploy serve' may not have been started yet
	if err != nil {
		return "", err
	}
	return string(own.CA()), nil
}

// isServing refuses a host on which nothing was imported: it is not the one that serves.
func isServing(dir string) error {
	s, err := store.Open(dir)
	if err != nil {
		return err
	}
	mode, err := s.RegistryMode()
	if err == nil && mode == "" {
		err = report.Errorf(report.Refused, "nothing was imported on this host: its authority is not the one that nodes have to trust").
			WithHint("run it on the host that serves, or name the file tls/ca.crt in that host's store with --ca")
	}
	return err
}

func (a *app) emitEndpoints(registry *schema.ClusterRegistry) error {
	list := deployer.Endpoints(registry)
	return a.emitResult(list, func(w *console.Stream) error {
		if list.Mode == schema.RegistryMetalK8s {
			_, err := fmt.Fprintln(w, "MetalK8s' nginx serves the images")
			return err
		}
		if len(list.Endpoints) == 0 {
			_, err := fmt.Fprintln(w, "the cluster was not told where nodes find images")
			return err
		}
		table := &console.Table{Columns: []string{"ENDPOINT", "AUTHORITY", "VALID UNTIL"}}
		for _, endpoint := range list.Endpoints {
			table.Add(endpoint.URL, authorityNames(endpoint), validUntil(endpoint))
		}
		return table.Print(w)
	})
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
