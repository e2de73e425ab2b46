// Example-solution-server serves one Website. The operator starts it and sets its content by environment variables:
// TITLE, MESSAGE and THEME, and by the file that BANNERS names, if it names one: one banner in each line.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/solutionctl/example-solution/serve"
)

// version is set when the image is built.
var version = "0.0.0-dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv, ":8080", ":8081"); err != nil {
		fmt.Fprintln(os.Stderr, "example-solution-server: error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, getenv func(string) string, siteAddress, healthAddress string) error {
	hostname, err := os.Hostname()
	if err != nil {
		return err
	}
	banners, err := lines(getenv("BANNERS"))
	if err != nil {
		return err
	}
	site, err := net.Listen("tcp", siteAddress)
	if err != nil {
		return err
	}
	health, err := net.Listen("tcp", healthAddress)
	if err != nil {
		return errors.Join(err, site.Close())
	}
	page := Page{
		Title: getenv("TITLE"), Message: getenv("MESSAGE"), Theme: getenv("THEME"),
		Banners: banners, Version: version, Hostname: hostname,
	}
	registry := prometheus.NewRegistry()
	return serve.Run(ctx,
		serve.Endpoint{Listener: site, Handler: page.Handler(registry)},
		serve.Endpoint{Listener: health, Handler: serve.Health(ctx, promhttp.HandlerFor(registry, promhttp.HandlerOpts{})), Internal: true})
}

// lines returns the lines of a file that are not empty; none without a file.
func lines(file string) ([]string, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' }), err
}
