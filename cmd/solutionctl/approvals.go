package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/settings"
)

// approvals are the flags by which a user accepts a loss or a risk. They count on the command line only: in a variable or in the
// configuration file they would accept whatever comes, unread. TestEveryFlagIsClassified lists all others.
var approvals = []string{
	// What a Solution can do to the cluster.
	"allow", "cluster-wide", "accept-hazard",
	// Whose archives and keys are trusted.
	"key", "allow-downgrade", "insecure-skip-verify",
	// What belongs to others, or runs already.
	"adopt", "force-conflicts", "adopt-helm", "accept-restart", "rotate", "force-webhooks", "force-finalizers",
	// What is lost, replaced or left behind.
	"accept-data-loss", "accept-invalid", "clean-host", "delete-data", "delete-env", "delete-others", "keep-crds", "keep-data", "prune", "release", "remove", "replace", "untrust",
}

// unlikeApprovals are flags that have the name of an approval, and accept nothing: a key of one's own, and what only prints a verdict.
var unlikeApprovals = []string{"sign --key", "verify --key", "verify --allow-downgrade"}

// isApproval reports whether a command's flag accepts a loss or a risk.
func isApproval(cmd *cobra.Command, flag string) bool {
	path := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	return slices.Contains(approvals, flag) && !slices.Contains(unlikeApprovals, path+" --"+flag)
}

// keepApprovals keeps the flags of a tree of commands that accept a loss or a risk out of variables and configuration files.
func keepApprovals(cmd *cobra.Command) {
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
		for _, name := range approvals { // VisitAll would sort the flags of all commands at each start
			if flags.Lookup(name) != nil && isApproval(cmd, name) {
				settings.CommandLineOnly(flags, name)
			}
		}
	}
	for _, child := range cmd.Commands() {
		keepApprovals(child)
	}
}
