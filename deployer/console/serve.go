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
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

// ServeOptions say where a console is served. What is in Options is as there; Origin may be empty.
type ServeOptions struct {
	Options
	Listen           string // HOST:PORT
	Certificate, Key string // files; "" is without TLS, which only programs on this host can reach
	Errors           io.Writer
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
		return report.Errorf(report.Usage, "%s can be reached from elsewhere, where a link would let anybody act with your rights", o.Listen).
			WithHint("listen on 127.0.0.1:0, or let people log in by themselves: --login token")
	case o.Links && o.Origin != "":
		return report.Errorf(report.Usage, "with a link the console has a name of its own on this host, and no other origin")
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

// stopping is for how long the answers that are under way are waited for.
const stopping = 5 * time.Second

// Serve serves a console until ctx ends. Operations that are at work then are interrupted, as a signal interrupts a command,
// and waited for: the result is how many there were.
func Serve(ctx context.Context, o ServeOptions) (interrupted int, err error) {
	if err = o.Check(); err != nil {
		return 0, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return 0, report.Errorf(report.Unavailable, "%w", err).WithHint("choose another address with --listen")
	}
	if o.Links {
		// Cookies know no ports: what another program of this host serves under the same name would get those of this console.
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
	if o.Certificate != "" {
		pair, failure := tls.LoadX509KeyPair(o.Certificate, o.Key)
		if failure != nil {
			return 0, errors.Join(report.Errorf(report.Usage, "certificate %s: %w", o.Certificate, failure), listener.Close())
		}
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	}
	ended := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		defer close(ended)
		patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopping)
		defer cancel()
		if server.Shutdown(patient) != nil {
			_ = server.Close() // who still waits for an answer gets none
		}
	})()
	if o.Ready != nil {
		o.Ready(c)
	}
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
