package deploy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	web "github.com/solutionctl/solutionctl/deployer/console"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/host/service"
	"github.com/solutionctl/solutionctl/deployer/hostd"
	"github.com/solutionctl/solutionctl/deployer/install"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Ways to log in to the console, as --login names them.
const (
	loginLink     = "link"
	loginToken    = "token"
	loginProvider = "provider"
)

func newUICommand(a *cli.App) *cobra.Command {
	var c consoleRun
	var printUnit bool
	var objects, image string
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Serve the web console",
		Long: `Serve the web console: Solutions, environments and applications in a browser, with every change shown as a plan first. It
has no rights of its own.

Without --login it is for you alone: it listens on a loopback address, prints a link that works once and for a minute, and
acts with your kubeconfig. Press Enter for another link.

With --login token it is for others, too: they paste a token that the cluster knows, and everything is asked with that
token; of the kubeconfig only the address of the API server and its authority are used. Browsers then need TLS: from
--tls-cert and --tls-key, or from a proxy whose address --origin names.

With --login provider they log in at the identity provider of --oidc-issuer, whose tokens the API server has to accept: an
id token of the person goes with each request, and is renewed for as long as the provider does that. With --login token and
an issuer there are both ways.

Where the API server does not know the provider, --impersonate asks it in the name of the person, oidc:ADDRESS, with the credentials of the
kubeconfig: give those nothing but the right to impersonate these people and the groups of --impersonate-group. Archives are then imported on
the host.

With --session-key-file several replicas behind one address share their sessions, and a restart ends none: browsers keep them,
sealed with the keys of the file, one a line, of which the first seals and each opens. Make one with 'openssl rand -base64 32'.
The file and those of --tls-cert and --tls-key are read again when they change, and on SIGHUP.

/healthz answers with 204, under every name, for supervision. --print-unit prints a unit for systemd, with a user of its own.
--print deployment prints what runs the console in a cluster, for 'kubectl apply': two replicas behind a Service, from the image of
solutionctl that was imported, or that of --image. Their files come from Secrets, and comments say how to make these of the files of
--tls-cert, --tls-key, --session-key-file, --oidc-client-secret and --oidc-ca; they listen on port 8443.

It ends with Ctrl-C or SIGTERM. Operations that are at work then are interrupted, and 'solutionctl deploy resume' finishes them.`,
		Example: `  solutionctl deploy ui
  solutionctl deploy ui --login token --listen :8443 --tls-cert tls.crt --tls-key tls.key --origin https://solutions.example.com:8443
  solutionctl deploy ui --login provider --oidc-issuer https://dex.example.com/dex --oidc-client-id solutionctl-console \
    --oidc-client-secret /etc/solutionctl/console-secret --listen 127.0.0.1:8080 --origin https://solutions.example.com
  solutionctl deploy ui --kubeconfig /etc/solutionctl/console.kubeconfig --login token --listen :8443 --tls-cert tls.crt --tls-key tls.key \
    --origin https://solutions.example.com:8443 --print-unit > /etc/systemd/system/solutionctl-console.service
  solutionctl deploy ui --login token --origin https://solutions.example.com --print deployment | kubectl apply -f -`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case printUnit:
				return c.printUnit(cmd.Flags())
			case objects != "":
				return c.printDeployment(cmd.Context(), cmd.Flags(), image)
			default:
				return c.run(cmd.Context())
			}
		},
	}
	c.hostFlags = &hostFlags{clusterFlags: addClusterFlags(a, cmd)}
	c.addLockWait(cmd)
	c.addPlaces(cmd)
	flags := cmd.Flags()
	flags.StringVar(&c.o.Listen, "listen", "127.0.0.1:0", "`ADDRESS` to listen on, HOST:PORT; port 0 is any that is free")
	flags.StringVar(&c.o.Origin, "origin", "", "the `URL` that browsers use, where it is not the link")
	flags.StringVar(&c.o.Certificate, "tls-cert", "", "encrypt with the certificate in `FILE`")
	flags.StringVar(&c.o.Key, "tls-key", "", "the key of --tls-cert, a `FILE`")
	flags.StringVar(&c.o.SessionKeys, "session-key-file", "", "a `FILE` with keys for sessions that several replicas share")
	flags.BoolVar(&printUnit, "print-unit", false, "print a systemd unit that runs this command, and do nothing else")
	cli.AddChoice(cmd, flags, &objects, "print", "", "print the objects that run this command in a cluster, and do nothing else", "", "deployment")
	flags.StringVar(&image, "image", "", "with --print, the `REFERENCE` of an image with solutionctl (default that of the imported Solution solutionctl)")
	flags.StringVar(&c.o.Exports, "export", ".", "a `DIRECTORY` for custom resources that are exported before they are deleted; empty deletes none")
	cli.AddChoice(cmd, flags, &c.login, "login", "", "how people log in: link, token or provider", loginLink, loginToken, loginProvider)
	flags.StringVar(&c.o.Uploads, "uploads", "", "a `DIRECTORY` of its own for archives on their way (default $STATE_DIRECTORY/uploads, else one of the user's cache)")
	flags.StringVar(&c.socket, "host-socket", hostd.DefaultSocket, "where 'deploy hostd' imports on this host for people who log in by themselves, a `PATH`")
	flags.StringVar(&c.verify.TrustDir, "trust-dir", "", "the trust store, a `DIRECTORY`, for imports with --login link")
	flags.StringVar(&c.verify.State, "state", "/var/lib/solutionctl/state.json", "`FILE` with the versions that were imported before, for imports with --login link")
	flags.StringVar(&c.issuer, "oidc-issuer", "", "the `URL` of an identity provider that speaks OpenID Connect")
	flags.StringVar(&c.client, "oidc-client-id", "solutionctl-console", "the `NAME` by which the provider knows the console")
	flags.StringVar(&c.secret, "oidc-client-secret", "", "a `FILE` with the secret that goes with it")
	flags.StringVar(&c.authority, "oidc-ca", "", "a `FILE` with the certificate that the provider's is signed by, in PEM")
	flags.BoolVar(&c.impersonate, "impersonate", false, "with --login provider, act in the name of people whom the API server does not know")
	flags.StringSliceVar(&c.groups, "impersonate-group", nil, "a `GROUP` of the provider that counts then, as oidc:GROUP (may be repeated)")
	return cmd
}

// consoleRun is a run of 'deploy ui'.
type consoleRun struct {
	*hostFlags
	o                                 web.ServeOptions
	login                             string
	socket                            string // of 'deploy hostd'
	verify                            cli.TrustFlags
	issuer, client, secret, authority string // of the identity provider
	impersonate                       bool
	groups                            []string // of the provider
}

func (c *consoleRun) run(ctx context.Context) error {
	// Each look at a large cluster leaves more behind than what is kept.
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	c.o.Connect = func(token session.Token) (*cluster.Cluster, error) {
		o := c.clusterOptions()
		o.Token, o.Sink = token, nil
		if token != nil {
			o.As, o.AsGroups = "", nil // a request acts only as the user of its token
		}
		return cluster.Connect(o)
	}
	if c.impersonate {
		c.o.ConnectAs = func(user string, groups []string, admit func(context.Context) error) (*cluster.Cluster, error) {
			o := c.clusterOptions()
			o.As, o.AsGroups, o.Admit, o.Sink = user, groups, admit, nil
			return cluster.Connect(o)
		}
	}
	if _, err := c.o.Connect(nil); err != nil { // errors in the kubeconfig are reported here, not in a browser
		return err
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	if c.o.Provider, err = c.provider(); err != nil {
		return err
	}
	c.imports()
	if c.login == loginLink { // others have no rights on this host
		c.o.Active = host.ActiveVersions(c.places.Configuration)
		c.o.Examine = c.doctor
	}
	c.choose()
	c.o.Version, c.o.Host, c.o.LockWait = c.Version, name, c.lockWait
	c.o.Errors, c.o.Sink, c.o.Now = c.Err, c.Sink, c.Now
	c.o.Manager = service.NotifierOf(c.Getenv, c.Sink)
	if !c.o.Links { // closing the terminal of a console with a link ends the console
		hangups := make(chan os.Signal, 1)
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
		c.o.Hangup = hangups
	}
	c.o.Ready = func(served *web.Console) {
		debug.FreeOSMemory() // what the start has left behind; a console may wait for its first visitor for long
		c.printAddress(ctx, served)
	}
	interrupted, err := web.Serve(ctx, c.o)
	if err == nil && interrupted > 0 {
		err = report.Errorf(report.Interrupted, "%s interrupted", report.Count(interrupted, "operation")).WithHint("finish what was begun: solutionctl deploy resume")
	}
	return err
}

// choose sets how users log in.
func (c *consoleRun) choose() {
	c.o.Links, c.o.Tokens = c.login == loginLink, c.login == loginToken
}

// printUnit prints a systemd unit that runs the console with the settings that are in effect now.
func (c *consoleRun) printUnit(flags *pflag.FlagSet) error {
	c.choose()
	if err := c.o.Check(); err != nil {
		return err
	}
	if c.kubeconfig == "" && !c.o.Links {
		return report.Errorf(report.Usage, "a service has no kubeconfig of its own").
			WithHint("name one with the address of the API server and its authority, and without credentials: --kubeconfig /etc/solutionctl/console.kubeconfig")
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	arguments := []string{"deploy", "ui", "--progress", "plain"}
	if !flags.Changed("export") {
		arguments = append(arguments, "--export", web.StateDir)
	}
	words, err := cli.ServiceFlags(flags, "print-unit")
	if err != nil {
		return err
	}
	unit, err := c.o.Unit(program, append(arguments, words...), c.o.Key, c.o.SessionKeys, c.secret)
	if err != nil {
		return err
	}
	return c.EmitText(unit)
}

// inPods are the flags that mean the same in a pod as here.
var inPods = []string{"lock-wait", "login", "oidc-client-id", "oidc-issuer", "origin", "qps"}

// printDeployment prints the objects that run the console in the cluster with the settings that are in effect now.
func (c *consoleRun) printDeployment(ctx context.Context, flags *pflag.FlagSet, image string) error {
	c.choose()
	if err := c.checkProvider(); err != nil {
		return err
	}
	if c.impersonate {
		return report.Errorf(report.Usage, "a console in the cluster has no rights of its own, so it cannot impersonate users").
			WithHint("run it on a host with a kubeconfig that may: --print-unit")
	}
	arguments := slices.DeleteFunc(cli.ChangedFlags(flags), func(word string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		return !slices.Contains(inPods, name)
	})
	deployment, err := c.o.Deployment(arguments, web.ProviderFiles{Secret: c.secret, CA: c.authority})
	if err != nil {
		return err
	}
	if image == "" {
		if image, err = c.imported(ctx); err != nil {
			return err
		}
	}
	objects, err := deployment.YAML(image)
	if err != nil {
		return err
	}
	return c.EmitText(objects)
}

// imported is the image of solutionctl that the cluster has.
func (c *consoleRun) imported(ctx context.Context) (string, error) {
	d, err := c.deployer()
	if err != nil {
		return "", err
	}
	image, notice, err := d.Records.ProgramImage(ctx, schema.ProgramImage, "")
	if err != nil {
		return "", report.As(report.CodeOf(err), err).WithHint("or name an image that nodes can pull: --image REFERENCE")
	}
	if notice != "" {
		c.Sink.Emit(report.Event{Step: "find", Name: image, State: report.Warning, Note: notice})
	}
	return image, nil
}

// imports finds out whether archives can be imported from here: by the user who runs the program, or through 'deploy hostd'.
func (c *consoleRun) imports() {
	if c.login == loginLink {
		if !writable(c.places.Store) {
			return
		}
		imports := importFlags{verify: c.verify, mount: "auto", registryMode: "auto"}
		options := imports.options(c.App)
		c.o.Archives, c.o.ArchivePaths, c.o.Trusted = newDesk(c.hostFlags, options), true, options.Trusted
		c.o.Settings = &web.HostSettings{
			Open: func() (*host.Host, error) { return host.Open(c.places) }, TrustDir: c.TrustDirs(c.verify.TrustDir)[0], Images: c.images(),
		}
	} else {
		if c.impersonate { // the host asks with the token of the person
			return
		}
		if info, err := os.Stat(c.socket); err != nil || info.Mode().Type() != os.ModeSocket {
			return
		}
		c.o.Archives = &hostd.Client{Socket: c.socket}
	}
	if c.o.Uploads != "" {
		return
	}
	if state := c.Getenv("STATE_DIRECTORY"); state != "" {
		c.o.Uploads = filepath.Join(state, "uploads")
	} else if cache, err := os.UserCacheDir(); err == nil {
		c.o.Uploads = filepath.Join(cache, "solutionctl", "uploads")
	}
}

// images is how this host can be set up to serve images, and to get them; nil for users who are not allowed to write its files.
func (c *consoleRun) images() *web.HostImages {
	program, err := os.Executable()
	if err != nil || os.Geteuid() != 0 {
		return nil
	}
	return &web.HostImages{
		Services: install.Systemd{Root: "/"}, Root: "/", Program: program,
		Serve: host.ServeOptions{Store: c.places.Store, Listen: defaultRegistry, MaxTransfers: host.DefaultTransfers},
	}
}

// writable reports whether this user can create files in a directory, or create the directory.
func writable(dir string) bool {
	for {
		f, err := os.CreateTemp(dir, ".solutionctl-")
		if err == nil {
			return errors.Join(f.Close(), os.Remove(f.Name())) == nil
		}
		if !errors.Is(err, os.ErrNotExist) || dir == filepath.Dir(dir) {
			return false
		}
		dir = filepath.Dir(dir)
	}
}

// provider is the identity provider that the flags name; nil for none.
func (c *consoleRun) provider() (*session.Provider, error) {
	if err := c.checkProvider(); err != nil || c.issuer == "" {
		return nil, err
	}
	p := &session.Provider{Issuer: c.issuer, ClientID: c.client, Groups: c.groups}
	if c.secret != "" {
		secret, err := os.ReadFile(c.secret)
		if err != nil {
			return nil, err
		}
		p.ClientSecret = strings.TrimSpace(string(secret))
	}
	if c.authority != "" {
		var err error
		if p.CA, err = os.ReadFile(c.authority); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (c *consoleRun) checkProvider() error {
	switch {
	case c.login == loginProvider && c.issuer == "":
		return report.Errorf(report.Usage, "the identity provider is missing").WithHint("name it: --oidc-issuer https://dex.example.com/dex")
	case c.login == loginLink && c.issuer != "":
		return report.Errorf(report.Usage, "--oidc-issuer is for people who log in by themselves").WithHint("add --login provider")
	case c.impersonate && c.issuer == "":
		return report.Errorf(report.Usage, "--impersonate needs users from an identity provider").WithHint("add --login provider --oidc-issuer URL")
	case len(c.groups) > 0 && !c.impersonate:
		return report.Errorf(report.Usage, "--impersonate-group is for --impersonate").WithHint("add --impersonate")
	}
	return nil
}

// printAddress prints the address of the console. A link goes to standard output: a program that starts the console for a user reads
// it there.
func (c *consoleRun) printAddress(ctx context.Context, served *web.Console) {
	c.Sink.Close()
	if !c.o.Links {
		fmt.Fprintln(c.Out, served.Origin)
		return
	}
	fmt.Fprintln(c.Out, served.NewLink())
	if !c.Interactive {
		return
	}
	fmt.Fprintf(c.Err, "The link works once, within %s. Enter prints another one, Ctrl-C ends the console.\n", session.LinkLifetime.Round(time.Second))
	go func() {
		for lines := bufio.NewScanner(c.In); lines.Scan() && ctx.Err() == nil; {
			fmt.Fprintln(c.Out, served.NewLink())
		}
	}()
}
