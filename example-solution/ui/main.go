// Example-solution-ui shows the Websites of its namespace and creates new ones. It acts with the rights of its own
// service account (archive/ui/ui.yaml): to read and create Websites in this one namespace. Where people log in before they get
// here (LOGIN=token), each of them acts with rights of their own: those of the token that comes with the request.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/rest"

	"github.com/solutionctl/example-solution/serve"
)

// version is set when the image is built.
var version = "0.0.0-dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("POD_NAMESPACE"), os.Getenv("LOGIN")); err != nil {
		fmt.Fprintln(os.Stderr, "example-solution-ui: error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, namespace, login string) error {
	if namespace == "" {
		return errors.New("the environment variable POD_NAMESPACE must be set")
	}
	if login != "" && login != "token" {
		return fmt.Errorf("the environment variable LOGIN is %q, neither empty nor token", login)
	}
	cluster, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	websites, err := NewWebsites(cluster, namespace)
	if err != nil {
		return err
	}
	site, err := net.Listen("tcp", ":8080")
	if err != nil {
		return err
	}
	health, err := net.Listen("tcp", ":8081")
	if err != nil {
		return errors.Join(err, site.Close())
	}
	return serve.Run(ctx,
		serve.Endpoint{Listener: site, Handler: Handler(websites, login == "token")},
		serve.Endpoint{Listener: health, Handler: serve.Health(ctx, promhttp.Handler()), Internal: true})
}
