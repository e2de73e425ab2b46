package host

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
	"time"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/deployer/host/registry"
	"github.com/solutionctl/solutionctl/deployer/host/serve"
	"github.com/solutionctl/solutionctl/deployer/host/service"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// DefaultTransfers is the number of large blobs that are sent at the same time.
const DefaultTransfers = 256

// accessLogOutput stands for [ServeOptions.Output] where a file is named.
const accessLogOutput = "-"

// ServeOptions are the archives to serve, the address, and how.
type ServeOptions struct {
	Store                 string   // a directory; "" for none
	Archives              []string // files that are served as well, without verifying them
	Listen, MetricsListen string   // addresses; metrics have the one of the registry unless they have their own
	AccessLog             string   // a file, or [accessLogOutput]; "" for none
	MirrorOrigins         bool     // serve images by their original names, too
	MaxTransfers          int      // how many large blobs at the same time
	PlainHTTP             bool
	Certificate, Key      string   // files; without them the authority of the store makes a certificate
	Names                 []string // by which nodes know this host, besides those that it knows itself
	MonitoringLabels      []string // KEY=VALUE, of what [ServeOptions.Monitoring] lets Prometheus select

	Output, Errors io.Writer        // for the access log and for errors of a connection
	Hangup         <-chan os.Signal // asks to look at everything again
	Ready          func()           // called once, when it serves; may be nil
	Manager        service.Notifier
	Sink           report.Sink
	Now            func() time.Time
}

// Check refuses options that do not go together.
func (o ServeOptions) Check() error {
	for name, address := range map[string]string{"--listen": o.Listen, "--metrics-listen": o.MetricsListen} {
		if address == "" && name == "--metrics-listen" {
			continue
		}
		if _, _, err := net.SplitHostPort(address); err != nil {
			return report.Errorf(report.Usage, "%s: %w", name, err).WithHint("write it as HOST:PORT, such as 10.0.0.1:5000 or :5000")
		}
	}
	switch {
	case (o.Certificate == "") != (o.Key == ""):
		return report.Errorf(report.Usage, "--tls-cert and --tls-key go together")
	case o.PlainHTTP && o.Certificate != "":
		return report.Errorf(report.Usage, "--plain-http and --tls-cert contradict each other")
	case o.MaxTransfers < 1:
		return report.Errorf(report.Usage, "--max-transfers %d: nothing could be pulled", o.MaxTransfers)
	}
	return nil
}

// Serve serves the images of this host's archives until ctx ends. It notifies the service manager when it is ready, and
// reloads on request.
func Serve(ctx context.Context, o ServeOptions) (err error) {
	defer o.Manager.KeepAlive()()
	options := serve.Options{
		Listen: o.Listen, MetricsListen: o.MetricsListen, Sink: o.Sink,
		ErrorLog: log.New(withoutProbes{o.Errors}, "solutionctl: ", 0), //nolint:forbidigo // net/http wants one
		Registry: registry.Options{MirrorOrigins: o.MirrorOrigins, MaxTransfers: o.MaxTransfers, Now: o.Now},
		Ready: func(string) {
			o.Manager.Ready()
			if o.Ready != nil {
				o.Ready()
			}
		},
		Stopping: o.Manager.Stopping,
	}
	if o.Store != "" {
		if options.Store, err = store.Open(o.Store); err != nil {
			return err
		}
	}
	switch o.AccessLog {
	case "":
	case accessLogOutput:
		options.AccessLog = serve.NewAccessLog(o.Output)
	default:
		if options.AccessLog, err = serve.OpenAccessLog(o.AccessLog); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, options.AccessLog.Close()) }()
	}
	var pair *service.Renewed[*tls.Certificate] // an externally provided certificate
	if o.Certificate != "" {
		if pair, err = service.KeyPair(o.Sink, o.Certificate, o.Key); err != nil {
			return err
		}
	}
	if options.TLS, err = serverTLS(o, pair); err != nil {
		return err
	}
	for _, file := range o.Archives {
		opened, err := openServed(file)
		if err != nil {
			return errors.Join(err, closeAll(options.Archives))
		}
		options.Archives = append(options.Archives, opened)
	}
	reload := make(chan struct{})
	defer o.onHangup(ctx, pair, reload)()
	options.Reload = reload
	return serve.Run(ctx, options)
}

// withoutProbes drops log lines about connections that supervisors open and close without a request.
type withoutProbes struct{ io.Writer }

func (w withoutProbes) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("TLS handshake error")) && bytes.HasSuffix(line, []byte(": EOF\n")) {
		return len(line), nil
	}
	return w.Writer.Write(line)
}

func openServed(file string) (*registry.Archive, error) {
	f, err := media.OpenNoFollow(file)
	if err != nil {
		return nil, err
	}
	opened, err := archive.Open(f, f.Size)
	if err != nil {
		return nil, errors.Join(report.Errorf(report.CodeOf(err), "%s: %w", file, err), f.Close())
	}
	served, err := registry.NewArchive(opened, f.File())
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
func serverTLS(o ServeOptions, pair *service.Renewed[*tls.Certificate]) (*tls.Config, error) {
	switch {
	case pair != nil:
		return service.TLS(pair), nil
	case o.PlainHTTP || isLoopback(o.Listen):
		return nil, nil
	}
	if o.Store == "" {
		return nil, report.Errorf(report.Usage, "without a store there is no place for the certificate authority").
			WithHint("give --tls-cert and --tls-key, or --plain-http")
	}
	own, err := openAuthority(o.Store, o.Now)
	if err != nil {
		return nil, err
	}
	names := append([]string{schema.RegistryHostOwn}, o.Names...)
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	if host, _, err := net.SplitHostPort(o.Listen); err == nil && host != "" {
		names = append(names, host)
	}
	return own.Server(names...), nil
}

// isLoopback reports whether an address is reachable from this host only.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// onHangup loads the certificate again on a hangup signal, and then sends on reload for everything else. stop ends
// that.
func (o *ServeOptions) onHangup(ctx context.Context, pair *service.Renewed[*tls.Certificate], reload chan<- struct{}) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-o.Hangup:
			case <-ctx.Done():
				return
			}
			if pair != nil {
				pair.Again()
			}
			select {
			case reload <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
