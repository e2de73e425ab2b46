// Cloud-service is every service of the cloud, by the name that it is given: each is a few lines, and none works without those
// that it needs. A server is booted by compute, which asks identity for the user, and hands on to the scheduler, which chooses
// a host, to the conductor, and to the network, which gives an address. The answer names all of them.
//
//	cloud-service identity|compute|scheduler|conductor|network
//	cloud-service sync NAME     write the ConfigMap NAME, for which pods wait that need a database
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv); err != nil {
		fmt.Fprintln(os.Stderr, "cloud-service: error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string) error {
	switch {
	case len(args) == 2 && args[0] == "sync":
		return inCluster(getenv).sync(ctx, args[1])
	case len(args) != 1:
		return errors.New("usage: cloud-service SERVICE, or cloud-service sync NAME")
	}
	handler, err := newHandler(args[0], getenv)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", ":8080")
	if err != nil {
		return err
	}
	return serve(ctx, listener, handler)
}
