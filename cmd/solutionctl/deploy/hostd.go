package deploy

import (
	"context"
	"errors"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/hostd"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newHostdCommand(a *cli.App) *cobra.Command {
	c := &hostdRun{}
	cmd := &cobra.Command{
		Use:   "hostd",
		Short: "Import archives for a web console without permissions on this host",
		Long: `Import archives on this host for 'solutionctl deploy ui', which runs as another user. This command runs as root and listens on
a Unix socket. It accepts four requests: examine an archive, import one, unimport a version, and show the progress. Only the
flags here and the trust store decide which archives are trusted, and never a request.

Only programs of the user of --peer are answered. Each request has the token of a person. The cluster is asked whether that
person has the verb import or unimport on archives of group ` + rights.ArchivesGroup + `, and its records are written with the token: of
the kubeconfig only the address of the API server and its authority are used.

systemd opens the socket, and starts the command at the first request: --print-unit prints the service, and --print-unit=socket the socket.`,
		Example: `  solutionctl deploy hostd --print-unit=socket > /etc/systemd/system/` + hostd.UnitName + `.socket
  solutionctl deploy hostd --print-unit > /etc/systemd/system/` + hostd.UnitName + `.service
  solutionctl deploy hostd --listen /run/solutionctl/host.sock`,
		Hidden: true, // systemd starts it
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.unit != "" {
				return c.printUnit(cmd.Flags())
			}
			return c.run(cmd.Context())
		},
	}
	c.hostFlags = &hostFlags{clusterFlags: &clusterFlags{App: a}}
	flags := cmd.Flags()
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "`FILE` with the address of the API server (default $KUBECONFIG, ~/.kube/config, /etc/kubernetes/admin.conf)")
	flags.StringVar(&c.context, "context", "", "context `NAME` of the kubeconfig (default its current one)")
	c.addLockWait(cmd)
	c.addPlaces(cmd)
	flags.StringVar(&c.places.Nginx, "nginx-dir", store.DefaultNginxDir, "where MetalK8s' nginx looks for what it serves, a `DIRECTORY`")
	flags.StringVar(&c.verify.TrustDir, "trust-dir", "", "the trust store, a `DIRECTORY`")
	flags.StringVar(&c.verify.State, "state", "/var/lib/solutionctl/state.json", "`FILE` with the versions that were imported before")
	cli.AddChoice(cmd, flags, &c.mount, "mount", "", "mount archives, which MetalK8s' nginx needs: auto is where the kernel can", "never", "auto", "always")
	flags.StringVar(&c.listen, "listen", hostd.DefaultSocket, "the socket, a `PATH`, where systemd gives none")
	flags.StringVar(&c.peer, "peer", "solutionctl-console", "the `USER` whose programs may ask, and whose group the socket has")
	cli.AddChoice(cmd, flags, &c.unit, "print-unit", "", "print a unit for systemd that runs this command, and do nothing else", "", "service", "socket")
	flags.Lookup("print-unit").NoOptDefVal = "service"
	return cmd
}

// hostdRun is a run of 'deploy hostd'.
type hostdRun struct {
	*hostFlags
	verify                    cli.TrustFlags
	mount, listen, peer, unit string
}

func (c *hostdRun) run(ctx context.Context) error {
	peer, err := user.Lookup(c.peer)
	if err != nil {
		return report.Errorf(report.NotFound, "--peer: %w", err).
			WithHint("make it: useradd --system --user-group --home-dir / --no-create-home --shell /usr/sbin/nologin %s", report.ShellWord(c.peer))
	}
	uid, err := strconv.ParseUint(peer.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(peer.Gid)
	if err != nil {
		return err
	}
	desk, err := c.desk()
	if err != nil {
		return err
	}
	l, err := c.socket(gid)
	if err != nil {
		return err
	}
	return (&hostd.Server{Desk: desk, Peers: []uint32{uint32(uid)}, Sink: c.Sink, Now: c.Now}).Serve(ctx, l)
}

func (c *hostdRun) socket(group int) (*net.UnixListener, error) {
	l, err := hostd.Activated(c.Getenv)
	if err != nil || l != nil {
		return l, err
	}
	return hostd.Listen(c.listen, group)
}

// desk returns a Desk that imports with the flags' options. It opens and connects once, so that errors are reported when the
// program starts.
func (c *hostdRun) desk() (*hostd.Desk, error) {
	imports := importFlags{verify: c.verify, mount: c.mount, registryMode: "auto"}
	d := newDesk(c.hostFlags, imports.options(c.App))
	_, err := d.Open()
	if err == nil {
		_, err = d.Connect("")
	}
	return d, err
}

// newDesk returns a Desk that imports on this host, as the user of each request's token.
func newDesk(f *hostFlags, o host.ImportOptions) *hostd.Desk {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown host"
	}
	return &hostd.Desk{
		Open: func() (*host.Host, error) { return host.Open(f.places) },
		Connect: func(token string) (*cluster.Cluster, error) {
			o := f.clusterOptions()
			o.Sink = nil
			if token != "" {
				o.As, o.AsGroups = "", nil // a request acts only as the user of its token
				o.Token = func(context.Context) (string, error) { return token, nil }
			}
			return cluster.Connect(o)
		},
		Options: o, Version: f.Version, Host: name, LockWait: f.lockWait, Now: f.Now,
	}
}

// printUnit prints what systemd needs. Paths are absolute: systemd knows no current directory.
func (c *hostdRun) printUnit(flags *pflag.FlagSet) error {
	program, err := os.Executable()
	if err == nil {
		err = cli.MakeAbsolute(flags)
	}
	if err != nil {
		return err
	}
	words := []string{program, "deploy", "hostd", "--progress", "plain", "--peer", c.peer, "--mount", c.mount}
	for _, path := range []struct {
		flag  string
		value *string
	}{
		{"--store", &c.places.Store},
		{"--solutions-file", &c.places.Configuration},
		{"--nginx-dir", &c.places.Nginx},
		{"--state", &c.verify.State},
		{"--trust-dir", &c.verify.TrustDir},
		{"--kubeconfig", &c.kubeconfig},
	} {
		if *path.value != "" {
			words = append(words, path.flag, *path.value)
		}
	}
	if c.context != "" {
		words = append(words, "--context", c.context)
	}
	if strings.ContainsAny(strings.Join(append(words, c.listen), ""), "\n\r\x00") {
		return report.Errorf(report.Usage, "a unit cannot name a file with a control character")
	}
	socket, service, err := hostd.Units{
		Socket: c.listen, Group: c.peer, Command: words, Mounts: c.mount != string(host.MountNever),
		ReadWrite: slices.Compact(slices.Sorted(slices.Values([]string{c.places.Store, filepath.Dir(c.places.Configuration), filepath.Dir(c.verify.State)}))),
		Optional:  []string{c.places.Nginx},
	}.Files()
	if c.unit == "socket" {
		service = socket
	}
	return errors.Join(err, c.EmitText(service))
}
