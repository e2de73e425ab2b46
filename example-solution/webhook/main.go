// Example-solution-webhook converts Websites for the API server, which calls it whenever a client reads or writes one in
// another API version than it is stored in. There is one for the whole cluster (archive/operator/cluster/webhook.yaml),
// and it keeps nothing: run as many as you like.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/solutionctl/example-solution/serve"
)

// certificates is where the Secret with the certificate is mounted.
const certificates = "/cert"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, certificates, ":8443", ":8081"); err != nil {
		fmt.Fprintln(os.Stderr, "example-solution-webhook: error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, certificates, address, healthAddress string) error {
	certificate := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return load(certificates) }
	if _, err := certificate(nil); err != nil { // say so now, not at the first call
		return err
	}
	calls, err := tls.Listen("tcp", address, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate})
	if err != nil {
		return err
	}
	health, err := net.Listen("tcp", healthAddress)
	if err != nil {
		return errors.Join(err, calls.Close())
	}
	return serve.Run(ctx,
		serve.Endpoint{Listener: calls, Handler: Handler()},
		serve.Endpoint{Listener: health, Handler: serve.Health(ctx, promhttp.Handler()), Internal: true})
}

// load reads the certificate. It is read at each handshake, since it is renewed while the program runs; the API server
// keeps its connections, so that is seldom.
func load(dir string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	return &pair, err
}
