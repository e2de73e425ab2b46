// Command solutionctl builds, checks, signs and deploys Solutions: Kubernetes applications packed for sites without
// internet as one ISO file.
//
// This package composes: a command is a constructor in a file of its own, which binds flags to locals, calls one function of the
// other packages and prints what it returns; those below "deploy" are in package deploy, and what all share is in internal/cli. Only
// below cmd is the process left, are the environment, the clock and the streams read, and is text written. Start with
// newRootCommand in root.go; docs/layout.md follows one command from here to its result.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	_ "github.com/solutionctl/solutionctl/cmd/solutionctl/internal/start" // no garbage collection before main
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks the command to stop; from then on a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns the exit status of the process.
func run(ctx context.Context, args []string, in io.Reader, out, err io.Writer) int {
	cobra.EnableCommandSorting = false // help has the order of a life; cobra knows no other way to say so
	a := &app{cli.New(in, out, err, os.Getenv, time.Now, readVersion().Version)}
	return a.Execute(ctx, newRootCommand(a, cli.Words(args)...), args)
}
