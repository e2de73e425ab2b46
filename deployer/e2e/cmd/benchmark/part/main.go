// Command part is the program of the benchmark's components: it needs others and takes its time to start.
//
//	part DELAY [SERVICE...]
//
// It looks for each Service in the kubelet's environment variables, ends when one does not answer in time, or with PATIENT=yes asks for
// ever, works for DELAY, and then listens.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const (
	patience = 3 * time.Second // for as long a program asks for another one before it ends
	pause    = 100 * time.Millisecond
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv); ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "part: error:", err)
		os.Exit(1)
	}
}

// run serves until the context ends. The error is never nil.
func run(ctx context.Context, args []string, getenv func(string) string) error {
	delay, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	for _, service := range args[1:] {
		host := getenv(strings.ToUpper(strings.ReplaceAll(service, "-", "_")) + "_SERVICE_HOST")
		if err = find(ctx, net.JoinHostPort(host, "80"), getenv("PATIENT") == "yes"); err != nil {
			return fmt.Errorf("%s: %w", service, err)
		}
	}
	if err = sleep(ctx, delay); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", ":8080")
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		_ = conn.Close() // an accepted connection is enough
	}
}

// find connects to an address as soon as it accepts connections.
func find(ctx context.Context, address string, patient bool) error {
	dialer := net.Dialer{Timeout: time.Second}
	for started := time.Now(); ; {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		if !patient && time.Since(started) > patience {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
