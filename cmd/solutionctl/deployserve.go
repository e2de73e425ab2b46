package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/deployer/host/authority"
	"github.com/solutionctl/solutionctl/deployer/host/registry"
	"github.com/solutionctl/solutionctl/deployer/host/serve"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
)

// defaultTransfers is how many large blobs are sent at the same time.
const defaultTransfers = 256

// Where the certificate authority of a host's registry lies, below its store.
const (
	authorityDir  = "tls"
	authorityFile = "ca.crt" // in it: what nodes have to know
)

// serveOptions are the flags of serve.
type serveOptions struct {
	store                 string
	archives              []string
	listen, metricsListen string
	accessLog             string
	mirror                bool
	transfers             int
	plain                 bool
	certificate, key      string
	names                 []string
	printUnit             bool
}

func newServeCommand(a *app) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the images of imported archives to the nodes of a cluster",
		Long: `Serve the images of every archive that was imported on this host as a read-only registry, straight from the ISO files:
nothing is unpacked. Imports and unimports are noticed while it runs. An archive that was imported in place is compared with
its digests before it is served.

Connections are encrypted, except on loopback addresses, with a certificate of an authority of its own, which is made at the
first start and kept in the store, in tls/. Nodes learn its certificate, tls/ca.crt, from 'solutionctl deploy node config'.
--plain-http does without; nodes then check the digests of what they pull, but not who tells them the digest of a tag.

SIGHUP looks at everything again: archives that could not be served, the certificate of --tls-cert, and the access log,
which is opened anew. SIGTERM lets clients finish. /healthz, /readyz and /metrics are there for supervision; /readyz names
archives that cannot be served as they were imported, because their file was cut off, removed or replaced.`,
		Example: `  solutionctl deploy serve --listen 10.0.0.1:5000 --access-log /var/log/solutionctl/access.log
  solutionctl deploy serve --listen 10.0.0.1:5000 --print-unit > /etc/systemd/system/solutionctl-registry.service
  solutionctl deploy serve --listen 127.0.0.1:5000 --archive example-solution-1.0.0.iso`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if o.printUnit {
				return a.printUnit(o)
			}
			return a.serve(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.store, "store", store.DefaultDir, "the imported archives, a `DIRECTORY`; empty for none")
	flags.StringArrayVar(&o.archives, "archive", nil, "serve this `FILE` as well, without verifying it (may be repeated)")
	flags.StringVar(&o.listen, "listen", ":5000", "`ADDRESS` to listen on, HOST:PORT or :PORT")
	flags.StringVar(&o.metricsListen, "metrics-listen", "", "`ADDRESS` for /metrics alone, unencrypted, instead of that of --listen")
	flags.StringVar(&o.accessLog, "access-log", "", "append a line of JSON for each request to `FILE`; - is standard output")
	flags.BoolVar(&o.mirror, "mirror-origins", false, "serve images by their original names, too, for nodes that use this registry as a mirror")
	flags.IntVar(&o.transfers, "max-transfers", defaultTransfers, "send at most `N` large blobs at the same time, a quarter of them to one client; others wait")
	flags.BoolVar(&o.plain, "plain-http", false, "do not encrypt")
	flags.StringVar(&o.certificate, "tls-cert", "", "encrypt with the certificate in `FILE`, instead of making one")
	flags.StringVar(&o.key, "tls-key", "", "the key of --tls-cert, a `FILE`")
	flags.StringArrayVar(&o.names, "tls-name", nil, "nodes know this host by `NAME`, a name or an address besides those that it knows itself (may be repeated)")
	flags.BoolVar(&o.printUnit, "print-unit", false, "print a systemd unit that runs this command, and do nothing else")
	return cmd
}

// check refuses flags that do not go together.
func (o *serveOptions) check() error {
	for name, address := range map[string]string{"--listen": o.listen, "--metrics-listen": o.metricsListen} {
		if address == "" && name == "--metrics-listen" {
			continue
		}
		if _, _, err := net.SplitHostPort(address); err != nil {
			return report.Errorf(report.Usage, "%s: %w", name, err).WithHint("write it as HOST:PORT, such as 10.0.0.1:5000 or :5000")
		}
	}
	switch {
	case (o.certificate == "") != (o.key == ""):
		return report.Errorf(report.Usage, "--tls-cert and --tls-key go together")
	case o.plain && o.certificate != "":
		return report.Errorf(report.Usage, "--plain-http and --tls-cert contradict each other")
	case o.transfers < 1:
		return report.Errorf(report.Usage, "--max-transfers %d: nothing could be pulled", o.transfers)
	}
	return nil
}

func (a *app) serve(ctx context.Context, o serveOptions) (err error) {
	options := serve.Options{
		Listen: o.listen, MetricsListen: o.metricsListen, Sink: a.sink, ErrorLog: log.New(withoutProbes{a.err}, "solutionctl: ", 0),
		Registry: registry.Options{MirrorOrigins: o.mirror, MaxTransfers: o.transfers, Now: a.now},
		Ready:    func(string) { a.notify("READY=1") },
		Stopping: func() { a.notify("STOPPING=1") },
	}
	if o.store != "" {
		if options.Store, err = store.Open(o.store); err != nil {
			return err
		}
	}
	switch o.accessLog {
	case "":
	case "-":
		options.AccessLog = serve.NewAccessLog(a.out)
	default:
		if options.AccessLog, err = serve.OpenAccessLog(o.accessLog); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, options.AccessLog.Close()) }()
	}
	pair := &keyPair{certificate: o.certificate, key: o.key}
	if options.TLS, err = a.serverTLS(o, pair); err != nil {
		return err
	}
	for _, file := range o.archives {
		opened, err := openServed(file)
		if err != nil {
			return errors.Join(err, closeAll(options.Archives))
		}
		options.Archives = append(options.Archives, opened)
	}
	reload := make(chan struct{})
	defer a.onHangup(ctx, pair, reload)()
	options.Reload = reload
	// With little that lives, memory is the garbage of two hundred encrypted connections.
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	return serve.Run(ctx, options)
}

// withoutProbes leaves out what supervisors cause that only open a connection to see whether somebody listens.
type withoutProbes struct{ io.Writer }

func (w withoutProbes) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("TLS handshake error")) && bytes.HasSuffix(line, []byte(": EOF\n")) {
		return len(line), nil
	}
	return w.Writer.Write(line)
}

func openServed(file string) (*registry.Archive, error) {
	f, err := sign.Open(file)
	if err != nil {
		return nil, err
	}
	opened, err := archive.Open(f, f.Size)
	if err != nil {
		return nil, errors.Join(report.Errorf(report.CodeOf(err), "%s: %w", file, err), f.Close())
	}
	served, err := registry.NewArchive(opened, f.File)
	if err != nil {
		return nil, errors.Join(report.Errorf(report.CodeOf(err), "%s: %w", file, err), f.Close())
	}
	return served, nil
}

func closeAll(archives []*registry.Archive) error {
	var problems []error
	for _, opened := range archives {
		problems = append(problems, opened.Close())
	}
	return errors.Join(problems...)
}

// serverTLS returns how connections are encrypted; nil when they are not.
func (a *app) serverTLS(o serveOptions, pair *keyPair) (*tls.Config, error) {
	switch {
	case o.certificate != "":
		return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.get}, pair.load()
	case o.plain || isLoopback(o.listen):
		return nil, nil
	}
	if o.store == "" {
		return nil, report.Errorf(report.Usage, "without a store there is no place for the certificate authority").
			WithHint("give --tls-cert and --tls-key, or --plain-http")
	}
	own, err := a.openAuthority(o.store)
	if err != nil {
		return nil, err
	}
	names := append([]string{schema.RegistryHostOwn}, o.names...)
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	if host, _, err := net.SplitHostPort(o.listen); err == nil && host != "" {
		names = append(names, host)
	}
	return own.Server(names...), nil
}

// openAuthority returns the certificate authority of a store. The first one who asks makes it.
func (a *app) openAuthority(dir string) (*authority.Authority, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil { // the store before its first import
		return nil, report.Errorf(report.Failure, "%w", err).WithHint("make it as root: 'solutionctl deploy serve --print-unit' prints a unit that does")
	}
	return authority.Open(filepath.Join(dir, authorityDir), a.now)
}

// isLoopback reports whether nobody but this host can reach an address.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// onHangup makes SIGHUP load the certificate again and then ask for everything else on reload. It returns what ends that.
func (a *app) onHangup(ctx context.Context, pair *keyPair, reload chan<- struct{}) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	hangups, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer close(ended)
		for {
			select {
			case <-hangups:
			case <-ctx.Done():
				return
			}
			if err := pair.load(); err != nil {
				a.sink.Emit(report.Event{Step: "load the certificate", State: report.Failed, Note: err.Error()})
			}
			select {
			case reload <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		signal.Stop(hangups)
		cancel()
		<-ended
	}
}

// notify tells systemd, if it has started the program, how it is.
func (a *app) notify(state string) {
	socket := a.getenv("NOTIFY_SOCKET")
	if socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err == nil {
		_, err = conn.Write([]byte(state))
		err = errors.Join(err, conn.Close())
	}
	if err != nil {
		a.sink.Emit(report.Event{Step: "notify systemd", State: report.Failed, Note: err.Error()})
	}
}
