package console

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/deployer/host/service"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ServeOptions are the address of a console and its Options, whose Origin may be empty.
type ServeOptions struct {
	Options
	Listen           string // HOST:PORT
	Certificate, Key string // files; "" is without TLS, which only programs on this host can reach
	SessionKeys      string // a file with the keys that replicas share; "" for none
	Errors           io.Writer
	Hangup           <-chan os.Signal // asks to read files again; they are also read when they change
	Manager          service.Notifier
	// Ready is called once with the console and its origin, when it answers.
	Ready func(c *Console)
}

// Check refuses options that do not go together.
func (o ServeOptions) Check() error {
	host, _, err := net.SplitHostPort(o.Listen)
	loopback := isLoopback(host)
	switch {
	case err != nil:
		return report.Errorf(report.Usage, "--listen: %w", err).WithHint("write it as HOST:PORT, such as 127.0.0.1:8443")
	case (o.Certificate == "") != (o.Key == ""):
		return report.Errorf(report.Usage, "--tls-cert and --tls-key go together")
	case o.Links && !loopback:
		return report.Errorf(report.Usage, "%s can be reached from other hosts, so that everyone with a link could act with your permissions", o.Listen).
			WithHint("listen on 127.0.0.1:0, or let people log in by themselves: --login token")
	case o.Links && o.Origin != "":
		return report.Errorf(report.Usage, "with a link the console has a name of its own on this host, and no other origin")
	case o.Links && o.SessionKeys != "":
		return report.Errorf(report.Usage, "a link is for this host, and its sessions are for no other").WithHint("leave out --session-key-file")
	case o.Certificate == "" && !loopback:
		return report.Errorf(report.Usage, "%s can be reached from elsewhere, and tokens would travel without encryption", o.Listen).
			WithHint("give --tls-cert and --tls-key, or listen on a loopback address behind a proxy that encrypts")
	case o.Certificate == "" && !o.Links && !strings.HasPrefix(o.Origin, "https://"):
		return report.Errorf(report.Usage, "browsers need an encrypted connection to log in").
			WithHint("give --tls-cert and --tls-key, or with --origin the https address of the proxy in front of it")
	case o.Certificate != "" && o.Origin == "":
		return report.Errorf(report.Usage, "the address that browsers use is missing").WithHint("name it: --origin https://solutions.example.com")
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// files are the files that another program renews.
type files struct {
	pair *service.Renewed[*tls.Certificate] // nil without TLS
	keys *service.Renewed[session.Keys]     // nil without keys
}

// read reads the files, and lets the console use the keys.
func (o *ServeOptions) read() (f files, err error) {
	if o.Certificate != "" {
		if f.pair, err = service.KeyPair(o.Sink, o.Certificate, o.Key); err != nil {
			return f, err
		}
	}
	if o.SessionKeys != "" {
		f.keys, err = service.Read(o.Sink, "load the session keys", o.readKeys, o.SessionKeys)
		o.Keys = f.keys.Current
	}
	return f, err
}

func (o *ServeOptions) readKeys() (session.Keys, error) {
	data, err := os.ReadFile(o.SessionKeys)
	if err != nil {
		return nil, err
	}
	keys, err := session.ParseKeys(data)
	if err != nil {
		return nil, report.Errorf(report.CodeOf(err), "%s: %w", o.SessionKeys, err)
	}
	return keys, nil
}

// follow reads the files again on each hangup signal. stop ends that.
func (f files) follow(ctx context.Context, hangup <-chan os.Signal) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for {
			select {
			case <-hangup:
			case <-ctx.Done():
				return
			}
			if f.pair != nil {
				f.pair.Again()
			}
			if f.keys != nil {
				f.keys.Again()
			}
		}
	}()
	return cancel
}

// stopping is for how long the answers that are under way are waited for.
const stopping = 5 * time.Second

// Serve serves a console until ctx ends. Operations that are at work then are interrupted, as a signal interrupts a command,
// and waited for: the result is how many there were.
func Serve(ctx context.Context, o ServeOptions) (interrupted int, err error) {
	if err = o.Check(); err != nil {
		return 0, err
	}
	if o.Sink == nil {
		o.Sink = report.Discard
	}
	f, err := o.read()
	if err != nil {
		return 0, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return 0, report.As(report.Unavailable, err).WithHint("choose another address with --listen")
	}
	if o.Links {
		// Cookies are shared between ports: another program of this host with the same name would get those of this
		// console.
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		o.Origin = "http://solutionctl-" + strings.ToLower(rand.Text()[:8]) + ".localhost:" + port
	}
	c, err := New(ctx, o.Options)
	if err != nil {
		return 0, errors.Join(err, listener.Close())
	}
	server := &http.Server{
		Handler: c, ErrorLog: log.New(o.Errors, "solutionctl: ", 0), //nolint:forbidigo // net/http wants one
		ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	if f.pair != nil {
		server.TLSConfig = service.TLS(f.pair)
	}
	defer f.follow(ctx, o.Hangup)()
	ended := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		defer close(ended)
		o.Manager.Stopping()
		patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopping)
		defer cancel()
		if server.Shutdown(patient) != nil {
			_ = server.Close() // who still waits for an answer gets none
		}
	})()
	if o.Ready != nil {
		o.Ready(c)
	}
	o.Manager.Ready()
	if o.Certificate != "" {
		err = server.ServeTLS(listener, "", "")
	} else {
		err = server.Serve(listener)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return 0, err
	}
	<-ended
	return c.Wait(), nil
}
